"""Give jobs that have failed for good another budget of attempts.

The dead letter is marked; the ledger lets the job continue, and in the same transaction a far row of its attempt is put; the
attempt is placed, its dead letter is forgotten, and the far row is taken back where it is not needed any more. So a death at
any point leaves a job that has failed or one that continues, by its far row at the latest, and a dead letter that can be
replayed again: the ledger lets an attempt be claimed once, however often it was placed. A dead letter outlives its ledger
row: one that was marked so long ago that the row may have expired is not replayed.

A dead letter is forgotten only where its job is known to have continued: its own row says so, by its id and a later attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.api.admission.gate import Gate
from functions.api.dead_letters.finder import DeadLetterFilter, DeadLetterFinder, DeadLetterPage, obstacle_of
from functions.domain import errors
from functions.domain.audit import Action, ActionName
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.faults import fault_of
from functions.domain.instants import SECOND, format_instant, to_ms, to_the_millisecond
from functions.domain.jobs.claims import ABSENT_IS_OVER, REQUEST_LIMIT, LedgerRow, awaits_replay, has_gone_on
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import attempt_id, job_id_of
from functions.domain.lifecycle import State
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.ledger import Applied, Ledger
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.timers import TimerStore
from functions.services.far_ring.placer import Placer

REPLAYED = "replayed"
ALREADY_REPLAYED = "already_replayed"

MOST_DEAD_LETTERS = 200
"""That one request replays or purges."""

WORKING_TIME = timedelta(seconds=10)
"""How long one request works; API Gateway ends it after 30 seconds."""

FARTHEST = timedelta(hours=12)
"""How far ahead a staggered replay may be due."""

ROW_IS_SURE = ABSENT_IS_OVER - timedelta(days=1)
"""How long after the mark of a dead letter the row of its replay is surely there, whatever the clocks say."""

_CHUNK = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The job continues: its next attempt is due then."""

    letter_id: DeadLetterId
    job_id: str
    attempt: int
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyReplayed:
    """The job has continued before, and is in this state by now; absent, where its ledger row has expired since."""

    letter_id: DeadLetterId
    job_id: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReplayed:
    """Nothing follows, for this reason; the letter stays."""

    letter_id: DeadLetterId
    error: errors.TickwheelError


ReplayOutcome = Replayed | AlreadyReplayed | NotReplayed


@dataclass(frozen=True, slots=True)
class _GoesOn:
    """An attempt that is to be placed. far: the same attempt, as its far row has been put; None where none was."""

    timer: Timer
    far: Timer | None = None

    @property
    def spare(self) -> Timer | None:
        """Whose row is another than the one that it is placed into: one that is due far ahead is placed into this one."""
        if self.far is None or to_ms(self.far.wakes_at) == to_ms(self.timer.wakes_at):
            return None
        return self.far


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """What came of a part of the letters that are selected. found: that part, as far as it was worked through."""

    found: DeadLetterPage
    outcomes: Sequence[ReplayOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayer:
    """Replays dead letters. timers: the far ring, to take rows back. token: a fresh owner token.

    side_by_side: maps a function over items at the same time, answers in order. caller: who asks, for the audit line.
    """

    wheel: Wheel
    clock: Clock
    finder: DeadLetterFinder
    dead_letters: DeadLetters
    ledger: Ledger
    timers: TimerStore
    placer: Placer
    payloads: PayloadStore
    journal: Journal
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
    gate: Gate
    audit: AuditTrail

    def replay(self, letter_id: DeadLetterId, *, caller: str) -> Replayed | AlreadyReplayed:
        """Replay one dead letter, now.

        Raises DeadLetterNotFound, NotReplayable, PayloadGone, JobNotFailed, NotPlaced, and what the gate does.
        """
        letter = self.dead_letters.get(letter_id)
        if letter is None:
            again = self._answer_again(letter_id)
            # Whoever repeats a request may have got no answer, and its line may be lost.
            self._note([again], tenant=letter_id.tenant, caller=caller, letter=str(letter_id))
            return again
        now = self.clock.now()
        self.gate.admit(letter_id.tenant, [now])
        outcome = self._replay([(letter, now)])[0]
        self._note([outcome], tenant=letter_id.tenant, caller=caller, letter=str(letter_id))
        if isinstance(outcome, NotReplayed):
            raise outcome.error
        return outcome

    def replay_part(self, wanted: DeadLetterFilter, *, after: str, rate: float | None, caller: str) -> Replays:
        """Replay a bounded part of the letters that are selected; repeating it replays nothing twice.

        rate: jobs a second, None for all at once. Raises InvalidInput, also when none would be due soon enough, and what
        the gate does.
        """
        begin, now = self.finder.begin(wanted, after=after), self.clock.now()
        first_due_at = max(begin.due_at or now, now)
        gap = SECOND / rate if rate is not None else timedelta(0)
        if first_due_at > now + FARTHEST:
            raise errors.InvalidInput(
                f"at this rate the next replay would be due in more than {FARTHEST // SECOND // 3_600} hours: ask again "
                "later, or with a higher rate; what was replayed so far stays so"
            )
        limit = min(MOST_DEAD_LETTERS, (now + FARTHEST - first_due_at) // gap + 1) if gap else MOST_DEAD_LETTERS
        found = self.finder.find(wanted, begin=begin, limit=limit)
        admitted = self.gate.admit(wanted.tenant, [first_due_at + gap * number for number in range(len(found.letters))])
        outcomes: list[ReplayOutcome] = []
        for letters in chunks_of(found.letters[:admitted], clock=self.clock):
            due_at = first_due_at + len(outcomes) * gap
            outcomes += self._replay([(letter, due_at + count * gap) for count, letter in enumerate(letters)])
        found = found.cut(len(outcomes), due_at=first_due_at + len(outcomes) * gap if gap else None)
        self._note(outcomes, tenant=wanted.tenant, caller=caller, filter=wanted.describe())
        return Replays(found=found, outcomes=outcomes)

    def _replay(self, letters: Sequence[tuple[DeadLetter, datetime]]) -> list[ReplayOutcome]:
        """Each dead letter of a tenant with the instant at which its job is due."""
        prepared = self.side_by_side(self._let_go_on_safely, letters)
        # Whoever began a replay before has counted its job: it waits since then, with a message or without.
        begun = [
            each.timer.due_at
            for (letter, _), each in zip(letters, prepared, strict=True)
            if isinstance(each, _GoesOn) and letter.replayed_at is None
        ]
        if begun:
            self.gate.note(letters[0][0].tenant, begun)
        placements = iter(self.placer.place([each.timer for each in prepared if isinstance(each, _GoesOn)]))
        outcomes: list[ReplayOutcome] = []
        placed: list[_GoesOn] = []
        for (letter, _), each in zip(letters, prepared, strict=True):
            if not isinstance(each, _GoesOn):
                outcomes.append(each)
                continue
            placement = next(placements)
            if placement.ring is None:
                outcomes.append(NotReplayed(letter_id=letter.letter_id, error=errors.NotPlaced([placement.fault])))
                continue
            placed.append(each)
            outcomes.append(_replayed(letter, each.timer))
        self.side_by_side(self._forget, [outcome for outcome in outcomes if not isinstance(outcome, NotReplayed)])
        self.side_by_side(self._take_back, [each.spare for each in placed if each.spare is not None])
        return outcomes

    def _let_go_on_safely(self, asked: tuple[DeadLetter, datetime]) -> _GoesOn | AlreadyReplayed | NotReplayed:
        """One dead letter's fault must not keep the others back."""
        letter, due_at = asked
        try:
            return self._let_go_on(letter, due_at)
        except errors.TickwheelError as error:
            return NotReplayed(letter_id=letter.letter_id, error=error)
        except Exception as error:  # noqa: BLE001  reported for the one that it belongs to
            self.journal.event("replay_failed", dead_letter=str(letter.letter_id), error=fault_of(error))
            fault = errors.NotPlaced([f"a store failed: {type(error).__name__}"])
            return NotReplayed(letter_id=letter.letter_id, error=fault)

    def _let_go_on(self, letter: DeadLetter, due_at: datetime) -> _GoesOn | AlreadyReplayed:
        obstacle = obstacle_of(letter)
        if letter.timer is None or obstacle:
            raise errors.NotReplayable(str(letter.letter_id), obstacle)
        timer = letter.timer.replayed(due_at=due_at)
        job, now = timer.job, self.clock.now()
        job_id = letter.job_id or str(job_id_of(job))
        may_have_expired = letter.replayed_at is not None and now - letter.replayed_at >= ROW_IS_SURE
        if job.payload.pointer is not None and self.payloads.get(job.payload.pointer) is None:
            row = self.ledger.get(job.key) if job.is_ledgered else None
            if job.is_ledgered and (
                # Only the replay of a dead letter that is kept takes its payload away.
                may_have_expired
                if row is None
                else has_gone_on(row, failed_attempt=letter.timer.attempt, job_id=job_id)
            ):
                return _already(letter, row)
            raise errors.PayloadGone(str(letter.letter_id))
        if job.is_ledgered:
            self.placer.check_clock()
        # Before anything follows from it: without a row only the mark says that the job may have run.
        if not self.dead_letters.mark(letter.letter_id, now=now):
            return self._answer_again(letter.letter_id)
        if not job.is_ledgered:
            return _GoesOn(timer)
        now = self.clock.now()
        far = self._far(timer, now=now)
        answer = self.ledger.replay(
            timer,
            far=far,
            job_id=job_id,
            fence=letter.fence,
            owner=self.token(),
            now=now,
            needs_row=may_have_expired,
        )
        if isinstance(answer, Applied):
            return _GoesOn(timer, far)
        if answer.row is None and may_have_expired:
            raise errors.NotReplayable(str(letter.letter_id), _unknown(letter))
        if answer.row is None:
            raise errors.JobBusy(job_id)
        if awaits_replay(answer.row, failed_attempt=letter.timer.attempt, job_id=job_id):
            return _GoesOn(timer)
        if has_gone_on(answer.row, failed_attempt=letter.timer.attempt, job_id=job_id):
            return _already(letter, answer.row)
        raise errors.JobNotFailed(str(letter.letter_id), state=answer.row.state)

    def _far(self, timer: Timer, *, now: datetime) -> Timer:
        """The attempt as its far row is put: however long this request takes, no scanner will have been there.

        Nor will the placer put it there, where a cap or a pause holds it back: that row would be taken for the spare one.
        """
        surely_far_at = self.wheel.surely_far_at(now=now + REQUEST_LIMIT + FAR_MARGIN)
        return replace(timer, due_at=max(timer.due_at, surely_far_at))

    def _forget(self, outcome: Replayed | AlreadyReplayed) -> None:
        try:
            self.dead_letters.delete(outcome.letter_id)
        except Exception as error:  # noqa: BLE001  the job continues; a repeat finds out, and forgets the letter then
            self.journal.event("dead_letter_stays", dead_letter=str(outcome.letter_id), error=type(error).__name__)

    def _take_back(self, far: Timer) -> None:
        """Its attempt has a message: the ledger would drop that of its far row."""
        job_id = job_id_of(far.job)
        try:
            self.timers.delete(attempt_id(job_id, far.wakes_at, wheel=self.wheel))
        except Exception as error:  # noqa: BLE001  as said
            self.journal.event("far_row_stays", job_id=str(job_id), error=type(error).__name__)

    def _answer_again(self, letter_id: DeadLetterId) -> AlreadyReplayed:
        """The answer to a repeat, whose first answer was lost: its dead letter is gone."""
        row = self.ledger.get(f"{letter_id.tenant}#{letter_id.identity}")
        # A row that was never replayed had no dead letter, or has it still.
        if row is None or row.state is State.FAILED or row.counted_from is None:
            raise errors.DeadLetterNotFound(str(letter_id))
        return AlreadyReplayed(letter_id=letter_id, job_id=row.job_id, state=row.state)

    def _note(
        self, outcomes: Sequence[ReplayOutcome], *, tenant: str, caller: str, letter: str = "", **asked: object
    ) -> None:
        """One line for the audit trail. letter: the one that was asked for, where it was one."""
        replayed = [str(outcome.letter_id) for outcome in outcomes if isinstance(outcome, Replayed)]
        already = [str(outcome.letter_id) for outcome in outcomes if isinstance(outcome, AlreadyReplayed)]
        counts = {
            **asked,
            "matched": len(outcomes),
            "replayed": len(replayed),
            "already_replayed": len(already),
            "failed": len(outcomes) - len(replayed) - len(already),
            "dead_letters": replayed,
        }
        self.journal.count("dead_letters_replayed", len(replayed))
        self.journal.event("dead_letters_replayed", caller=caller, tenant=tenant, **counts)
        self.audit.note(
            Action(
                action=ActionName.DEAD_LETTERS_REPLAY,
                caller=caller,
                tenant=tenant,
                subject=letter,
                after={**counts, "already": already},
            )
        )


def chunks_of(letters: Sequence[DeadLetter], *, clock: Clock) -> Iterator[Sequence[DeadLetter]]:
    """The dead letters in chunks, as many as there is time for: at least one chunk."""
    started = clock.monotonic()
    for first in range(0, len(letters), _CHUNK):
        yield letters[first : first + _CHUNK]
        if clock.monotonic() - started >= WORKING_TIME.total_seconds():
            return


def _unknown(letter: DeadLetter) -> str:
    """Why a dead letter is not replayed whose replay has begun, and whose ledger row has expired since."""
    began_at = format_instant(letter.replayed_at) if letter.replayed_at is not None else "some time"
    return (
        f"a replay of it began at {began_at}, and nothing says any more whether its job ran. Look in the audit trail for "
        f"{letter.job_id}; where it has run, purge the letter, and where it has not, submit the job anew"
    )


def _already(letter: DeadLetter, row: LedgerRow | None) -> AlreadyReplayed:
    state = row.state if row is not None else State.ABSENT
    return AlreadyReplayed(letter_id=letter.letter_id, job_id=letter.job_id, state=state)


def _replayed(letter: DeadLetter, timer: Timer) -> Replayed:
    due_at = to_the_millisecond(timer.due_at)
    return Replayed(letter_id=letter.letter_id, job_id=letter.job_id, attempt=timer.attempt, due_at=due_at)
