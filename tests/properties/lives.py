"""Histories that are lived through: with the code as it is, and with a rule of it left out, which breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from testkit.world.world import World
from tests.properties.machine import SCHEDULER_SETTINGS, Machine
from tests.properties.shared import have_flows

History = Callable[[World], None]
Mutation = Callable[[pytest.MonkeyPatch], Any]
BRIEF = 40

Broken = tuple[History, Mutation, str]
"""A history, what breaks a promise in it, and what the world says of that."""


def live_through(history: History, **options: Any) -> None:
    """Raises AssertionError when a promise is broken on the way, or at the end."""
    world = World(audits=False, **options)
    have_flows(world)
    try:
        history(world)
        world.look()
        world.come_to_an_end()
    finally:
        world.end()


def run_mutant(machine: type[Machine], lambdas: dict[type, type]) -> None:
    """Raises AssertionError when the machine notices that a promise is broken."""

    class Mutant(machine):
        pass

    Mutant.lambdas = lambdas
    run_state_machine_as_test(Mutant, settings=settings(SCHEDULER_SETTINGS, report_multiple_bugs=False))


def run_briefly(machine: type[Machine]) -> None:
    """The first of the histories that a test of the mark `long` goes through. Raises AssertionError as that does."""
    run_state_machine_as_test(machine, settings=settings(SCHEDULER_SETTINGS, max_examples=BRIEF))


def kept_in_each_history(*histories: History, of: Iterable[Broken]) -> Callable[..., None]:
    """A test: every promise is kept in each of these, with the code as it is; and in others."""

    @in_each_history(*histories, of=of)
    def test(history: History) -> None:
        live_through(history)

    return test


def broken_by_each_mutation(broken: Sequence[Broken]) -> Callable[..., None]:
    """A test: each mutation breaks a promise in its history."""

    @pytest.mark.parametrize(("history", "mutation", "violation"), broken, ids=name_of)
    def test(history: History, mutation: Mutation, violation: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(AssertionError, match=violation):
            live_through(history, lambdas=mutation(monkeypatch))

    return test


def in_each_history(*histories: History, of: Iterable[Broken]) -> pytest.MarkDecorator:
    """Runs a test with the `history` of each of these, once, and with others."""
    found = dict.fromkeys((*(history for history, _, _ in of), *histories))
    return pytest.mark.parametrize("history", list(found), ids=name_of)


def name_of(given: object) -> str:
    """Of a history, a mutation or a machine; nothing for a violation."""
    return getattr(given, "__name__", "")
