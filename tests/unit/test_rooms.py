"""The sweep of the rooms of flows: none stays shut because a message was lost."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.targets.flows import FlowId, FlowLimits, FlowState, NamedFlow, parse_rate
from functions.services.far_ring.flow_turns import STALE
from functions.sweeper import rooms
from testkit.builders import a_timer
from testkit.scheduler import World

STRIPE = FlowId("acme", "stripe")
ONE_AT_A_TIME = NamedFlow(key="stripe", limits=FlowLimits(rate=parse_rate("6/min"), burst=1))


@pytest.fixture
def world() -> World:
    return World()


def shut(world: World, *, count: int = 3, key: str = "stripe") -> None:
    """Let jobs wait in a room, and lose the message of its turn."""
    flow = NamedFlow(key=key, limits=ONE_AT_A_TIME.limits)
    world.placer.place([a_timer(flows=(flow,), retry=RetryPolicy()) for _ in range(count + 1)])
    world.receive_and_work()
    assert len(world.flows.rooms[FlowId("acme", key)]) == count
    world.ready.messages.clear()


def run(world: World, until: datetime) -> None:
    while world.clock.now() < until:
        world.receive_and_work()
        world.clock.tick(SECOND)


def swept(world: World, *, times: int = 2) -> int:
    """The first may begin behind the room."""
    return sum(world.open_rooms() for _ in range(times))


@pytest.mark.parametrize("after", [STALE + SECOND, timedelta(days=15), timedelta(days=40)])
def test_a_room_whose_turn_was_lost_is_opened_however_long_ago_that_was(world: World, after: timedelta):
    shut(world)
    world.clock.tick(after)
    if after > timedelta(days=30):
        world.flows.states.clear()  # their ttl

    assert swept(world) == 1

    run(world, world.clock.now() + 2 * MINUTE)
    assert not world.flows.rooms[STRIPE]
    assert world.events("flow_turn_sent_anew")[0]["flow"] == "acme#stripe"


def test_a_room_whose_turn_is_to_come_is_left_alone(world: World):
    shut(world)
    world.clock.tick(STALE / 2)

    assert swept(world) == 0
    assert not world.ready.messages


def test_a_turn_is_sent_once_however_often_rooms_are_swept(world: World):
    shut(world)
    world.clock.tick(STALE + SECOND)

    assert swept(world, times=20) == 1
    assert len(world.ready.messages) == 1


def test_a_sweep_goes_on_where_the_one_before_ended(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rooms, "PAGE", 2)
    for key in ("a", "b", "c"):
        shut(world, key=key)
    world.clock.tick(STALE + SECOND)

    assert swept(world, times=12) == 3


def test_a_sweep_looks_into_so_many_rooms(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rooms, "MOST_ROOMS", 2)
    for key in ("a", "b", "c"):
        shut(world, key=key, count=1)
    world.clock.tick(STALE + SECOND)
    world.open_rooms()

    assert len(world.ready.messages) <= 2


@pytest.mark.parametrize("call", ["waited_for", "state"])
def test_a_store_that_fails_fails_no_sweep(world: World, call: str, monkeypatch: pytest.MonkeyPatch):
    shut(world)
    world.clock.tick(STALE + SECOND)

    def fails(*_: Any, **__: Any) -> FlowState:
        raise OSError("no route to the table")

    with monkeypatch.context() as broken:
        broken.setattr(world.flows, call, fails)
        assert swept(world) == 0
    assert world.events("flow_rooms_not_swept")

    assert swept(world) == 1
