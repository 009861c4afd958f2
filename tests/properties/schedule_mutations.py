"""Schedules that break one rule each: see `tests.properties.mutations`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from functions.api.schedules import backfill, extra_runs
from functions.domain.instants import EPOCH, SECOND
from functions.domain.schedules import changes as changing
from functions.domain.schedules import due_fires
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.fire_figures import FireFigures
from functions.domain.schedules.state import ScheduleState
from functions.ports.schedules import Behind, StatePage
from functions.scanner.schedule_alarms import ScheduleAlarms
from functions.services.jobs.occurrences import FireDecision, Occurrences
from functions.services.schedules import materialiser as materialising
from functions.services.schedules.caught_up import CaughtUpChanger
from functions.services.schedules.materialiser import Carried, Chain, Materialiser
from functions.sweeper.heal import Healer
from testkit import fakes
from tests.properties.mutations import Lambdas, retries_what_should_stop

__all__ = ["retries_what_should_stop"]


class _RecordsBeforeItPlaces(Materialiser):
    def materialise(self, chains: Sequence[Chain], *, ends_at: float = inf) -> list[Carried]:
        for chain in chains:
            self._record_first(chain)
        return super().materialise(chains, ends_at=ends_at)

    def _record_first(self, chain: Chain) -> bool:
        stored, link, now = chain.stored, chain.link, self.clock.now()
        decided = due_fires.decide(stored.schedule, link, now=now, guard=self.wheel.guard)
        decided.figures = due_fires.figures_of(stored.schedule, decided.kept, since=stored.changed_at)
        following = decided.link and due_fires.alarm_at(stored.schedule, decided.link, now=now, guard=self.wheel.guard)
        answer = self.schedules.advance(
            stored.key, decided, version=stored.version, before=link, alarm_at=following, history=10
        )
        return not isinstance(answer, Behind)


def records_before_it_places(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Materialiser: _RecordsBeforeItPlaces}


class _DropsWhatItLoses(_RecordsBeforeItPlaces):
    def materialise(self, chains: Sequence[Chain], *, ends_at: float = inf) -> list[Carried]:
        won = [chain for chain in chains if self._record_first(chain)]
        Materialiser.materialise(self, won, ends_at=ends_at)
        return [Carried.ON] * len(chains)


def drops_what_it_loses(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Materialiser: _DropsWhatItLoses}


def counts_what_lies_between_two_versions(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    def counted(schedule: Any, kept: Any, **_: Any) -> FireFigures:
        return due_fires.figures_of(schedule, kept, since=EPOCH)

    monkeypatch.setattr(materialising, "figures_of", counted)
    return {}


class _RecordsItsAlarmFirst(Materialiser):
    def _place_alarms(self, steps: Sequence[Any], allowance: Any) -> None:
        for step in steps:
            if step.decided.link is not None:
                step.alarm_at = self._alarm(step, step.decided.link, now=self.clock.now()).alarm_at
                self._record(step)
        super()._place_alarms(steps, allowance)


def records_its_alarm_before_it_places_it(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Materialiser: _RecordsItsAlarmFirst}


class _PlacesASuccessor(Materialiser):
    def _place_alarms(self, steps: Sequence[Any], allowance: Any) -> None:
        super()._place_alarms([step for step in steps if not self._is_near(step)], allowance)
        for step in steps:
            step.is_placed = step.is_placed or self._is_near(step)

    def _is_near(self, step: Any) -> bool:
        link = step.decided.link
        return link is not None and link.at - self.clock.now() < self.wheel.guard


def places_one_fire_and_no_alarm_for_one_that_is_near(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    def one(schedule: Any, link: Any, **given: Any) -> DueFires:
        return due_fires.decide(
            schedule, link, **{**given, "guard": max(timedelta(0), link.at - given["now"]) + SECOND}
        )

    monkeypatch.setattr(materialising, "decide", one)
    return {Materialiser: _PlacesASuccessor}


def keeps_the_version_of_what_changes(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    changed = changing.changed

    def changed_in_place(state: ScheduleState | None, **given: Any) -> ScheduleState:
        after = changed(state, **given)
        return after if state is None else replace(after, version=state.version, cuts=state.cuts)

    monkeypatch.setattr(changing, "changed", changed_in_place)
    return {}


class _AdmitsWhateverComes(Occurrences):
    def decide(self, timer: Any, occurrence: Any, *, is_closed: bool = False) -> FireDecision:
        return FireDecision.MAY_RUN


def admits_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Occurrences: _AdmitsWhateverComes}


def runs_what_is_stale(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(ScheduleState, "may_run", lambda *_: True)
    return {}


def takes_the_slot_from_whoever_has_it(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    take_slot = fakes.InMemoryScheduleStore.take_slot

    def take_anyway(schedules: Any, key: str, identity: str, *, seen: Any, **given: Any) -> bool:
        return take_slot(schedules, key, identity, seen=schedules.state(key), **given)

    monkeypatch.setattr(fakes.InMemoryScheduleStore, "take_slot", take_anyway)
    return {}


class _SkipsWithoutARow(Occurrences):
    def _skip(self, timer: Any, reason: Any, text: str) -> FireDecision:
        self.schedules.note_skip(
            f"{timer.job.tenant}#{timer.job.occurrence.schedule_id}", reason, fire_at=timer.job.occurrence.fire_at
        )
        return FireDecision.IS_OVER


def skips_without_a_ledger_row(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Occurrences: _SkipsWithoutARow}


class _WaitsWithoutAMessage(Occurrences):
    def _wait(self, timer: Any, **given: Any) -> FireDecision:
        return FireDecision.IS_OVER


def waits_without_a_message(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Occurrences: _WaitsWithoutAMessage}


def takes_each_run_for_ended(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(materialising.Materialiser, "_ended_at", lambda *given, **_: given[-1].at)
    return {}


class _FinishesWhatIsStale(Occurrences):
    def _may_be_decided_again(self, key: str, fire_at: Any) -> bool:
        return False


def finishes_what_another_version_began(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Occurrences: _FinishesWhatIsStale}


class _DropsWhatHasTheSlot(Occurrences):
    def _may_be_decided_again(self, key: str, fire_at: Any) -> bool:
        return True


def drops_what_has_the_slot(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Occurrences: _DropsWhatHasTheSlot}


def changes_before_it_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    def change_at_once(changer: CaughtUpChanger, key: str, rule: Any) -> Any:
        return changer.changer.change(key, rule)

    monkeypatch.setattr(CaughtUpChanger, "change", change_at_once)
    return {}


def forgets_what_has_run(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    placed_ahead = changing.placed_ahead

    def placed_ahead_and_more(*given: Any, **and_given: Any) -> int:
        return placed_ahead(*given, **and_given) + 1

    monkeypatch.setattr(changing, "placed_ahead", placed_ahead_and_more)
    return {}


def takes_whatever_is_late_for_missed(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(due_fires, "MISFIRE_GRACE", timedelta(0))
    return {}


class _TrustsWhatItReads(ScheduleAlarms):
    def _definitions(self, alarms: Any) -> Any:
        return self.schedules.definitions([f"{alarm.tenant}#{alarm.schedule_id}" for alarm in alarms])


def trusts_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {ScheduleAlarms: _TrustsWhatItReads}


def lets_runs_without_a_row_have_the_slot(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    extra_job = backfill.extra_job

    def asked_for_with_any_overlap(stored: Any, *, overlap: Any, **given: Any) -> Any:
        job = extra_job(stored, overlap=None, **given)
        assert job.occurrence is not None
        return replace(job, occurrence=replace(job.occurrence, overlap=overlap or job.occurrence.overlap))

    for module in (backfill, extra_runs):
        monkeypatch.setattr(module, "extra_job", asked_for_with_any_overlap)
    return {}


class _CountsNothing(Healer):
    def recount(self, page: StatePage) -> Iterator[bool]:
        return iter(())


def gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Healer: _CountsNothing}


class _HealsWhateverGoesOn(Healer):
    def is_broken(self, key: str, state: ScheduleState, cursors: Any) -> bool:
        return True


def heals_whatever_goes_on(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """Harmless: a step that is repeated places the same fires."""
    return {Healer: _HealsWhateverGoesOn}
