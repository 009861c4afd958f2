"""What an HTTP answer means for an attempt, and what is kept of it (RFC 9110, sections 10.2.3 and 15)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, NamedTuple

from functions.domain.targets.options import TargetOptions

LONGEST_WAIT = timedelta(hours=12)
"""Before the next attempt, whoever asks for it: with the 14 days that a queue keeps a message, still less than the life of a ledger row."""

RESULT_LIMIT = 400
"""Bytes of a result, and characters of an error, that a ledger row keeps: a row stays within one write unit."""

ACCEPTED = 202
_TOO_MANY_REQUESTS = 429
_UNAVAILABLE = 503
_TRIED_AGAIN = frozenset({408, 425, _TOO_MANY_REQUESTS})
_LONGEST_RETRY_AFTER = 64
_SECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)


class AnswerMeaning(StrEnum):
    """What a status says. REFUSAL: the same request would be refused again. REDIRECT: it asks for another address."""

    SUCCESS = "success"
    PENDING = "pending"
    TRY_AGAIN = "try_again"
    REFUSAL = "refusal"
    REDIRECT = "redirect"


class Judgement(NamedTuple):
    """retry_after: no attempt before this is of any use, says the target; None when it says nothing usable."""

    meaning: AnswerMeaning
    retry_after: timedelta | None = None


def judge(status: int, retry_after: str | None, *, options: TargetOptions, now: datetime) -> Judgement:
    """What a status means under the options of its job. retry_after: the header of that name."""
    if status in options.success_codes:
        return Judgement(AnswerMeaning.SUCCESS)
    if not options.success_codes and status == ACCEPTED:
        return Judgement(AnswerMeaning.PENDING)
    if not options.success_codes and 200 <= status < 300:  # noqa: PLR2004
        return Judgement(AnswerMeaning.SUCCESS)
    if 300 <= status < 400:  # noqa: PLR2004
        return Judgement(AnswerMeaning.REDIRECT)
    is_refused = 200 <= status < 500 and status not in _TRIED_AGAIN  # noqa: PLR2004
    if is_refused and status not in options.retry_codes:
        return Judgement(AnswerMeaning.REFUSAL)
    if retry_after is None or status not in (_TOO_MANY_REQUESTS, _UNAVAILABLE):
        return Judgement(AnswerMeaning.TRY_AGAIN)
    return Judgement(AnswerMeaning.TRY_AGAIN, parse_retry_after(retry_after, now=now))


def parse_retry_after(text: str, *, now: datetime) -> timedelta | None:
    """Seconds or an HTTP date as a duration from now, at most LONGEST_WAIT; None for anything else, and for the past."""
    text = text.strip(" \t")
    if len(text) > _LONGEST_RETRY_AFTER:
        return None
    if _SECONDS.fullmatch(text):
        return min(timedelta(seconds=int(text)), LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(text)
        # The oldest of the three forms of a date names no zone: it is UTC.
        wait = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return min(wait, LONGEST_WAIT) if wait >= timedelta(0) else None


def is_pending(value: Any) -> bool:
    """Whether a function returned a 202, as an HTTP target would: it completes the job later."""
    return isinstance(value, dict) and value.get("statusCode") == ACCEPTED


def result_of(status: int, body: bytes, *, is_whole: bool) -> str:
    """`{"status":200,"body":…}` as JSON, in ASCII where that takes no more than RESULT_LIMIT.

    The body is what it says as JSON, else a text, and left out when there is none. What is not whole is a text, marked by
    `"truncated":true`.
    """
    text = body.decode("utf-8-sig", errors="replace")
    if not is_whole:
        return _dumped({"status": status, **({"body": text} if text else {}), "truncated": True})
    try:
        return _dumped({"status": status, "body": json.loads(text)} if text else {"status": status})
    except (ValueError, RecursionError):
        return _dumped({"status": status, "body": text})


def compact(value: Any) -> str:
    """JSON without spaces that can be encoded: half of a surrogate pair is written as an escape. Raises ValueError for NaN."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def _dumped(value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text if len(text) <= RESULT_LIMIT else compact(value)
