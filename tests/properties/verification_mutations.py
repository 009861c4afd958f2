"""What a review's run of `tickwheel verify` did not see: schedulers that break one rule each, and what names them.

A mutation is applied to the code, and answers which of its classes stand in for the real ones. See
`tests.properties.mutations`.
"""

from __future__ import annotations

from typing import Any

import pytest

from functions.api.jobs.submit import Submitter
from functions.dead_letters import dead_message as bury
from functions.domain.jobs import claims
from functions.domain.jobs.claims import Defer, Drop
from functions.domain.lifecycle import State
from functions.scanner.fair_scan import _ClassScan
from functions.sweeper.heal import Healer, HealReport
from testkit.fakes import ledger as fake_ledger
from tests.properties.mutations import Lambdas, places_without_looking_back

__all__ = ["places_without_looking_back"]


def claims_in_any_order(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """A message of an attempt that has failed is as good as that of the next one."""
    may_claim = claims.may_claim

    def may_claim_any(row: Any, **given: Any) -> bool:
        waits = row is not None and row.state in (State.RETRYING, State.SCHEDULED)
        return waits or may_claim(row, **given)

    monkeypatch.setattr(claims, "may_claim", may_claim_any)
    monkeypatch.setattr(fake_ledger, "may_claim", may_claim_any)
    return {}


class _PlacesForTheNewTime(Submitter):
    def _replay(self, job: Any, submission: Any, row: Any, **given: Any) -> Any:
        answer = super()._replay(job, submission, row, **given)
        if hasattr(answer, "job"):
            object.__setattr__(answer, "job", job)
        return answer


def places_a_used_key_for_the_new_time(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Submitter: _PlacesForTheNewTime}


def drops_what_is_leased(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """The consumer of the dead-letter queues takes a live lease for the end of a job."""
    judge = claims.decide_claim

    def decide_claim(row: Any, **given: Any) -> Any:
        verdict = judge(row, **given)
        return Drop("leased") if isinstance(verdict, Defer) else verdict

    monkeypatch.setattr(bury, "decide_claim", decide_claim)
    return {}


def heals_no_chain(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(Healer, "heal", lambda *_, **__: HealReport())
    return {}


def never_renews_a_row(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """A row of the ledger dies when its first writer thought that it might."""
    write = fake_ledger.InMemoryLedger._write

    def write_once(ledger: Any, key: str, *given: Any, **named: Any) -> Any:
        before = ledger.expiry.get(key)
        answer = write(ledger, key, *given, **named)
        if before is not None:
            ledger.expiry[key] = before
        return answer

    monkeypatch.setattr(fake_ledger.InMemoryLedger, "_write", write_once)
    return {}


def renews_only_what_is_paused(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """Rows that wait for the cap of their tenant are left where they are until they expire."""
    old = _ClassScan._old

    def old_of_paused(scan: Any) -> list[str]:
        return [name for name in old(scan) if name not in scan._own or scan._plans.of(name).is_paused]

    monkeypatch.setattr(_ClassScan, "_old", old_of_paused)
    return {}
