"""What an answer over HTTP makes of an attempt."""

from __future__ import annotations

from functions.domain.targets.http_answers import AnswerMeaning, Judgement, result_of
from functions.ports.targets import Failed, Outcome, Pending, Succeeded


def outcome_of(status: int, judgement: Judgement, body: bytes, *, is_whole: bool) -> Outcome:
    """judgement: of that status. body: of a success, as much as was read; is_whole: that is all of it."""
    match judgement.meaning:
        case AnswerMeaning.SUCCESS:
            answer = body.decode("utf-8-sig", errors="replace") if is_whole else ""
            return Succeeded(result_of(status, body, is_whole=is_whole), answer)
        case AnswerMeaning.PENDING:
            return Pending()
        case AnswerMeaning.REDIRECT:
            return Failed(
                f"the target answered {status}, but redirects are not followed: give the address that it leads to",
                error_class="redirect",
                is_permanent=True,
            )
        case AnswerMeaning.TRY_AGAIN | AnswerMeaning.REFUSAL:
            is_permanent = judgement.meaning is AnswerMeaning.REFUSAL
            return Failed(
                f"the target answered {status}",
                error_class=f"http_{status}",
                is_permanent=is_permanent,
                retry_after=judgement.retry_after,
                is_its_own=is_permanent and status >= 400,  # noqa: PLR2004
            )
