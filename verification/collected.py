"""Whether jobs were given to their target together, as they asked for it: a part of the checker that knows nothing of how releases are made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim

from functions.domain.instants import MILLISECOND
from functions.domain.jobs.collect import Collect
from functions.domain.lifecycle import State
from verification.history import Answer, Cancel, History, Job, Member, Release, Row

LONGEST = timedelta(days=31)
"""Nobody waits for longer, as docs/collect.md promises it."""

NO_CALL_NEEDED = frozenset({"breaker_open", "worker_died"})
"""Classes of errors with which an attempt fails although no target has said anything of it."""

_FOREVER = datetime.max.replace(tzinfo=UTC)

Expect = Callable[[str, bool, str], None]
"""Key, whether it is kept, and what is to be said where it is not."""


def closes_at(collect: Collect, due_at: datetime) -> datetime:
    """When a job that is due then must be given at the latest: by arithmetic, and another cron library."""
    latest = due_at + (collect.window or LONGEST)
    if not collect.at:
        return latest
    return min(latest, next(CronSim(collect.at, due_at.astimezone(ZoneInfo(collect.timezone)))))


def check_collections(history: History, expect: Expect) -> None:
    """Look at every job that is to be given with others, and at every call that gave any."""
    _Check(history, expect).run()


@dataclass(frozen=True, slots=True)
class _Giving:
    """A job, as one release gave it."""

    release: Release
    member: Member

    def __str__(self) -> str:
        member, release = self.member, self.release
        return f"attempt {member.attempt} by {release.key} with fence {release.fence} at {release.called_at} ({member.answer})"


class _Check:
    def __init__(self, history: History, expect: Expect) -> None:
        self._history = history
        self._expect = expect
        self._jobs = {job.key: job for job in history.jobs if job.collect is not None}
        self._taken = sorted((each for each in history.releases if each.is_taken), key=lambda each: each.called_at)
        self._given: defaultdict[str, list[_Giving]] = defaultdict(list)
        for release in self._taken:
            for member in release.members:
                self._given[member.key].append(_Giving(release, member))
        self._replayed = {replay.key for replay in history.replays}
        self._letters: defaultdict[str, set[str]] = defaultdict(set)
        for letter in history.letters:
            self._letters[letter.key].add(letter.error_class)
        self._cancels: defaultdict[str, list[Cancel]] = defaultdict(list)
        for cancel in history.cancels:
            self._cancels[cancel.key].append(cancel)

    def run(self) -> None:
        for call in self._history.calls if self._jobs else ():
            self._expect(call.key, call.key not in self._jobs, f"was called by itself, at {call.called_at}")
        for release in self._taken:
            self._check_release(release)
        self._check_turns()
        for job in self._jobs.values():
            self._check_job(job)

    def _check_release(self, release: Release) -> None:
        jobs = [self._jobs.get(member.key) for member in release.members]
        known = [job for job in jobs if job is not None]
        strangers = [member.key for member, job in zip(release.members, jobs, strict=True) if job is None]
        self._expect(release.key, not strangers, f"gives whom nobody asked to give: {strangers}")
        self._expect(release.key, bool(release.members), "gives nobody")
        terms = {(job.tenant, job.target, job.collect) for job in known}
        is_one = len(terms) <= 1 and all((job.tenant, job.target) == (release.tenant, release.target) for job in known)
        self._expect(release.key, is_one, f"gives to {release.target} for {release.tenant} what is of {terms}")
        most = min((job.collect.most for job in known if job.collect is not None), default=len(release.members))
        text = f"gives {len(release.members)} at once, of {most}"
        self._expect(release.key, len(release.members) <= most, text)
        twice = [key for key, count in Counter(member.key for member in release.members).items() if count > 1]
        self._expect(release.key, not twice, f"gives twice: {twice}")
        for member, job in zip(release.members, jobs, strict=True):
            if job is None:
                continue
            is_its_own = member.payload == job.payload
            self._expect(member.key, is_its_own, f"was given with {member.payload!r:.80}, not {job.payload!r:.80}")
            early = job.due_at - (release.called_at + release.ahead)
            is_hastened = job.hastened_at is not None and job.hastened_at <= release.called_at
            is_due = (early <= MILLISECOND or is_hastened) and member.scheduled_at == job.due_at
            text = f"was given at {release.called_at} for {member.scheduled_at}, its caller {release.ahead} ahead, due {job.due_at}"
            self._expect(member.key, is_due, text)

    def _check_turns(self) -> None:
        """One call at a time for a collection; who makes a call again has the key of it, a larger fence, and nobody new."""
        of_terms: defaultdict[object, list[Release]] = defaultdict(list)
        of_key: defaultdict[str, list[Release]] = defaultdict(list)
        for release in self._taken:
            job = next((self._jobs[each.key] for each in release.members if each.key in self._jobs), None)
            if job is not None:
                of_terms[job.tenant, job.target, job.collect].append(release)
            of_key[release.key].append(release)
        for releases in of_terms.values():
            for before, release in pairwise(releases):
                text = f"called at {release.called_at}, while {before.key} may be at it until {before.until}"
                self._expect(release.key, release.called_at >= before.until, text)
        for releases in of_key.values():
            for before, release in pairwise(releases):
                new = {each.key for each in release.members} - {each.key for each in before.members}
                is_again = release.fence > before.fence and not new
                text = f"has fence {release.fence} after {before.fence}, and gives besides: {sorted(new)}"
                self._expect(release.key, is_again, text)

    def _check_job(self, job: Job) -> None:
        row, given = self._history.rows.get(job.key), self._given[job.key]
        self._check_time(job, row, given)
        if row is None:
            return
        text = f"is {row.state} at attempt {row.attempt}, settled at {row.settled_at}; was given as {[str(each) for each in given]}"
        over = [*row.over, *([(row.settled_at, _FOREVER)] if row.settled_at else ())]
        late = [each for each in given if any(since < each.release.called_at < until for since, until in over)]
        # A release looks for its tombstone before its call, perhaps before that is written: then its client is not told that it will not run.
        most = 1 if row.state is State.CANCELLED and not self._is_surely_cancelled(job.key) else 0
        self._expect(job.key, len(late) <= most, f"was given after its end: {text}")
        successes = [each for each in given if each.member.is_success]
        is_disturbed = self._is_disturbed(job.key)
        self._expect(job.key, len(successes) <= 1 or is_disturbed, f"was done twice: {text}")
        self._expect(
            job.key, self._agrees(job.key, row, given, is_disturbed=is_disturbed), f"its end is another: {text}"
        )
        if not is_disturbed and job.key not in self._replayed:
            for number, each in enumerate(given):
                before = [other.member for other in given[:number] if other.member.attempt == each.member.attempt - 1]
                is_next = each.member.attempt == 1 or any(not other.is_success for other in before)
                self._expect(job.key, is_next, f"has an attempt that follows no failure: {text}")

    def _check_time(self, job: Job, row: Row | None, given: Sequence[_Giving]) -> None:
        lateness = self._history.lateness
        if lateness is None or not job.is_prompt or job.known_at is None or job.collect is None:
            return
        if row is not None and row.settled_at is not None and not given:
            return  # it was cancelled or moved; or how it ended does not agree
        by = max(closes_at(job.collect, job.due_at), job.known_at) + lateness
        given_at = min((each.release.called_at for each in given), default=self._history.ended_at)
        is_in_time = given_at <= by if given else by > self._history.ended_at
        text = (
            f"due at {job.due_at} and known at {job.known_at}, was to be given by {by}: {[str(each) for each in given]}"
        )
        self._expect(job.key, is_in_time, text)

    def _agrees(self, key: str, row: Row, given: Sequence[_Giving], *, is_disturbed: bool) -> bool:
        successes = [each for each in given if each.member.is_success]
        match row.state:
            case State.SUCCEEDED:
                return any(each.member.attempt == row.attempt for each in successes)
            case State.FAILED:
                is_spared = bool(self._letters[key] & NO_CALL_NEEDED)
                return is_disturbed or is_spared or (bool(given) and not successes)
            case State.CANCELLED:
                return is_disturbed or not (successes and self._is_surely_cancelled(key))
            case _:
                return not successes

    def _is_surely_cancelled(self, key: str) -> bool:
        """Whether a client was told that it will not run."""
        return any(cancel.is_final and cancel.answered_at is not None for cancel in self._cancels[key])

    def _is_disturbed(self, key: str) -> bool:
        disturbed = self._history.disturbed
        return key in disturbed or any(
            each.release.key in disturbed or each.member.answer is Answer.NONE for each in self._given[key]
        )
