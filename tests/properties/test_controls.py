"""Jobs in the hands of their targets, owners and operators, under faults; and what the machine notices."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties import control_mutations as mutations
from tests.properties.control_machine import CONTROLLED_SETTINGS, Controlled

TestControlled = Controlled.TestCase
TestControlled.settings = CONTROLLED_SETTINGS


@pytest.mark.parametrize(
    ("mutation", "violation"),
    [
        (mutations.holds_without_a_watchdog, "lost"),
        (mutations.drops_a_watchdog_that_finds_a_lease, "lost"),
        (mutations.listens_to_stale_fences, "a stale fence was heard"),
        (mutations.prolongs_whatever_runs, "two live runs"),
        (mutations.forgets_the_letter_before_its_replay, "failed without a dead letter|lost"),
        (mutations.puts_a_replay_off, "lost"),
        (mutations.moves_in_two_steps, "lost"),
        (mutations.hastens_without_its_row, "lost"),
        (mutations.completes_whoever_asks, "its target was told that it is done"),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_the_machine_notices_a_scheduler_that(mutation, violation, monkeypatch) -> None:
    class Mutant(Controlled):
        lambdas = mutation(monkeypatch)

    with pytest.raises(AssertionError, match=violation):
        run_state_machine_as_test(Mutant, settings=settings(CONTROLLED_SETTINGS, report_multiple_bugs=False))
