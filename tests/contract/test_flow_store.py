"""What every store of flows keeps: tokens that are spent once, and a room that nobody is forgotten in."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.targets.flows import (
    THE_STAGE,
    FlowId,
    FlowLimits,
    FlowOrder,
    FlowState,
    NamedFlow,
    OrderRow,
    parse_rate,
    place_in_order,
    place_in_room,
)
from functions.ports.flows import FlowStore, NoRoom
from functions.ports.ledger import Applied
from testkit.builders import NOON, a_timer

STRIPE = FlowId("acme", "stripe")
COST = SECOND
LIMITS = FlowLimits(rate=parse_rate("60/min"), burst=3, concurrency=2)


def spend(flows: FlowStore, *, now: datetime = NOON, burst: int = 1, has_had_turn: bool = False) -> Applied | NoRoom:
    latest = now + (burst - 1) * COST
    return flows.spend(STRIPE, cost=COST, now=now, latest=latest, has_had_turn=has_had_turn)


def a_waiting_timer(tenant: str = "acme", *, due_at: datetime = NOON, **given: Any) -> Timer:
    return a_timer(tenant=tenant, due_at=due_at, flows=(NamedFlow(key="stripe"),), **given)


def places(flows: FlowStore, *, after: str = "", limit: int = 100) -> list[str]:
    return [waiting.place for waiting in flows.waiting(STRIPE, after=after, limit=limit)]


def test_nothing_is_known_of_a_flow_at_first(flows: FlowStore):
    assert flows.state(STRIPE) == FlowState()
    assert flows.limits(STRIPE) is None
    assert flows.waiting(STRIPE, after="", limit=10) == []


@pytest.mark.parametrize(
    "limits", [LIMITS, FlowLimits(concurrency=1), FlowLimits(rate=parse_rate("1/d")), FlowLimits(is_ordered=True)]
)
def test_limits_are_read_as_they_were_set(flows: FlowStore, limits: FlowLimits):
    flows.set_limits(STRIPE, limits)

    assert flows.limits(STRIPE) == limits
    assert flows.page("acme", after="", limit=10) == ({"stripe": limits}, False)


def test_limits_that_are_forgotten_are_gone(flows: FlowStore):
    flows.set_limits(STRIPE, LIMITS)

    assert flows.forget_limits(STRIPE)
    assert not flows.forget_limits(STRIPE)
    assert flows.limits(STRIPE) is None


def test_flows_of_an_owner_are_listed_in_pages_by_their_keys(flows: FlowStore):
    for owner, key in [("acme", "b"), ("acme", "a"), ("acme", "c"), ("other", "a"), (THE_STAGE, "a")]:
        flows.set_limits(FlowId(owner, key), LIMITS)

    first, has_more = flows.page("acme", after="", limit=2)
    rest, is_more = flows.page("acme", after="b", limit=2)

    assert (list(first), has_more, list(rest), is_more) == (["a", "b"], True, ["c"], False)
    assert list(flows.page(THE_STAGE, after="", limit=9)[0]) == ["a"]


def test_a_burst_is_spent_and_then_one_token_an_interval(flows: FlowStore):
    assert [isinstance(spend(flows, burst=3), Applied) for _ in range(4)] == [True, True, True, False]
    assert isinstance(spend(flows, burst=3, now=NOON + COST), Applied)
    assert spend(flows, burst=3, now=NOON + COST) == NoRoom(NOON + 4 * COST)


def test_what_was_not_spent_is_not_saved_up_beyond_the_burst(flows: FlowStore):
    spend(flows)

    later = NOON + 100 * COST
    assert [isinstance(spend(flows, burst=2, now=later), Applied) for _ in range(3)] == [True, True, False]


def test_a_token_that_is_refunded_can_be_spent_again(flows: FlowStore):
    spend(flows)
    flows.refund(STRIPE, cost=COST)

    assert isinstance(spend(flows), Applied)
    assert isinstance(spend(flows), NoRoom)


def test_a_refund_of_a_flow_that_nobody_has_used_changes_nothing(flows: FlowStore):
    flows.refund(STRIPE, cost=COST)

    assert flows.state(STRIPE) == FlowState()


def test_while_somebody_waits_only_who_has_had_a_turn_spends(flows: FlowStore):
    flows.note_turn(STRIPE, NOON + SECOND)

    assert spend(flows) == NoRoom(None, is_waited_for=True)
    assert isinstance(spend(flows, has_had_turn=True), Applied)
    assert isinstance(spend(flows, has_had_turn=True), NoRoom)


def test_who_waits_is_found_by_tenant_and_then_by_time(flows: FlowStore):
    timers = [
        a_waiting_timer("b", due_at=NOON),
        a_waiting_timer("a", due_at=NOON + SECOND),
        a_waiting_timer("a", due_at=NOON),
    ]
    for timer in timers:
        flows.wait(STRIPE, timer)

    found = flows.waiting(STRIPE, after="", limit=10)

    assert [waiting.timer for waiting in found] == [timers[2], timers[1], timers[0]]
    assert [waiting.tenant for waiting in found] == ["a", "a", "b"]
    assert places(flows, after=found[0].place) == [waiting.place for waiting in found[1:]]
    assert places(flows, after="a$") == [found[2].place]
    assert places(flows, limit=1) == [found[0].place]


def test_places_are_counted_behind_one_and_up_to_another(flows: FlowStore):
    timers = [a_waiting_timer(tenant, due_at=NOON + n * SECOND) for tenant in "ab" for n in range(3)]
    for timer in timers:
        flows.wait(STRIPE, timer)
    taken = places(flows)

    assert flows.places(STRIPE, limit=6) == (taken, False)
    assert flows.places(STRIPE, limit=5) == (taken[:5], True)
    assert flows.places(STRIPE, after="b#", limit=9) == (taken[3:], False)
    assert flows.places(STRIPE, after="a#", upto=taken[1], limit=9) == (taken[:2], False)
    job = timers[4].job
    assert place_in_room("b", scheduled_at=job.scheduled_at, identity=job.identity) == taken[4]


def test_a_later_attempt_of_a_job_keeps_its_place(flows: FlowStore):
    timer = a_waiting_timer()
    flows.wait(STRIPE, timer)
    later = replace(timer, attempt=2, due_at=NOON + SECOND)

    flows.wait(STRIPE, later)

    assert [waiting.timer for waiting in flows.waiting(STRIPE, after="", limit=10)] == [later]


@pytest.mark.parametrize("count", [1, 25, 60])
def test_what_has_left_is_taken_out_of_the_room(flows: FlowStore, count: int):
    for number in range(count + 1):
        flows.wait(STRIPE, a_waiting_timer(due_at=NOON + number * MILLISECOND))
    everybody = places(flows)

    flows.remove(STRIPE, everybody[:-1])
    flows.remove(STRIPE, everybody[:-1])

    assert places(flows) == everybody[-1:]


def test_a_room_is_closed_when_nobody_has_entered_since(flows: FlowStore):
    flows.note_entry(STRIPE)
    flows.note_turn(STRIPE, NOON)
    seen = flows.state(STRIPE)

    assert (seen.turn_at, flows.is_waited_for(STRIPE)) == (NOON, True)
    assert flows.close(STRIPE, seen=seen)
    assert (flows.state(STRIPE).turn_at, flows.is_waited_for(STRIPE)) == (None, False)


def test_a_room_stays_open_for_who_has_entered_meanwhile(flows: FlowStore):
    flows.note_entry(STRIPE)
    flows.note_turn(STRIPE, NOON)
    seen = flows.state(STRIPE)
    entered = flows.note_entry(STRIPE)

    assert entered.turn_at == NOON
    assert not flows.close(STRIPE, seen=seen)
    assert flows.state(STRIPE).turn_at == NOON


def test_only_one_of_two_who_have_seen_the_same_lets_something_leave(flows: FlowStore):
    seen = flows.state(STRIPE)
    after = FlowState(
        version=1, cursor="acme", granted=3, planned_at=NOON + timedelta(microseconds=1_500), busy_until=NOON + SECOND
    )

    assert flows.leave(STRIPE, seen=seen, state=after)
    assert not flows.leave(STRIPE, seen=seen, state=after)
    assert flows.state(STRIPE) == after
    assert flows.leave(STRIPE, seen=after, state=replace(after, version=2))


def test_rooms_are_found_a_page_at_a_time_from_any_place(flows: FlowStore):
    for key in ("a", "b", "c"):
        for n in range(2):
            flows.wait(FlowId("acme", key), a_waiting_timer(due_at=NOON + n * SECOND))
    flows.note_entry(FlowId("acme", "nobody-waits"))
    flows.set_limits(STRIPE, LIMITS)

    found, after, pages = set[FlowId](), "", 0
    while pages == 0 or after:
        page, after = flows.waited_for(after=after, limit=2)
        found |= page
        pages += 1

    assert found == {FlowId("acme", key) for key in "abc"}
    assert pages >= 3
    assert flows.waited_for(after="anything", limit=100)[0] <= found


def a_row(n: int) -> OrderRow:
    return OrderRow(
        place=place_in_order(scheduled_at=NOON, asked_at=NOON + n * SECOND, identity=f"j{n}"), job_id=f"j{n}"
    )


FIRST, NEXT, LAST = (a_row(n) for n in range(3))


def test_nobody_is_in_an_order_at_first(flows: FlowStore):
    assert flows.order(STRIPE) == FlowOrder()


def test_who_is_first_in_an_order_is_who_comes_by_its_place_and_not_who_came(flows: FlowStore):
    for row in (LAST, NEXT, FIRST, NEXT):
        flows.line_up(STRIPE, row)
    flows.line_up(FlowId("acme", "stripe2"), LAST)

    assert flows.order(STRIPE) == FlowOrder(head=FIRST)


def test_only_one_holds_an_order_until_it_has_finished(flows: FlowStore):
    for row in (FIRST, NEXT):
        flows.line_up(STRIPE, row)

    assert flows.hold(STRIPE, NEXT)
    assert [flows.hold(STRIPE, row) for row in (FIRST, NEXT)] == [False, True]
    assert flows.order(STRIPE) == FlowOrder(holder=NEXT, head=FIRST)
    for _ in range(2):
        flows.finish(STRIPE, NEXT.place)
        assert flows.order(STRIPE) == FlowOrder(head=FIRST)
    assert flows.hold(STRIPE, FIRST)


def test_who_finishes_without_holding_the_order_leaves_it_to_its_holder(flows: FlowStore):
    for row in (FIRST, NEXT):
        flows.line_up(STRIPE, row)
    flows.hold(STRIPE, FIRST)

    flows.finish(STRIPE, NEXT.place)

    assert flows.order(STRIPE) == FlowOrder(holder=FIRST, head=FIRST)


def test_who_lets_another_start_keeps_its_place(flows: FlowStore):
    for row in (FIRST, NEXT):
        flows.line_up(STRIPE, row)
    flows.hold(STRIPE, FIRST)

    flows.release(STRIPE, NEXT.place)
    assert flows.order(STRIPE) == FlowOrder(holder=FIRST, head=FIRST)
    for _ in range(2):
        flows.release(STRIPE, FIRST.place)
        assert flows.order(STRIPE) == FlowOrder(head=FIRST)


def test_when_somebody_was_missed_is_noted_for_an_order(flows: FlowStore):
    for row in (NEXT, FIRST):
        flows.line_up(STRIPE, row)

    for n in range(2):
        flows.miss(STRIPE, now=NOON + n * SECOND)

    assert flows.order(STRIPE) == FlowOrder(head=FIRST, missed_at=NOON + SECOND)
    assert flows.order(FlowId("acme", "stripe2")) == FlowOrder()


def test_since_when_the_holder_of_an_order_is_missed_is_noted_once(flows: FlowStore):
    flows.line_up(STRIPE, FIRST)
    flows.hold(STRIPE, FIRST)

    for n in range(2):
        flows.miss(STRIPE, now=NOON + n * SECOND, holder=FIRST)
    flows.miss(STRIPE, now=NOON, holder=NEXT)

    assert flows.order(STRIPE) == FlowOrder(holder=replace(FIRST, missed_at=NOON), head=FIRST)


def test_nobody_is_missed_who_does_not_hold_the_order(flows: FlowStore):
    flows.miss(STRIPE, now=NOON, holder=FIRST)

    assert flows.order(STRIPE) == FlowOrder()


def test_who_starts_anew_is_not_missed(flows: FlowStore):
    flows.line_up(STRIPE, FIRST)
    flows.hold(STRIPE, FIRST)
    flows.miss(STRIPE, now=NOON, holder=FIRST)

    flows.hold(STRIPE, FIRST)

    assert flows.order(STRIPE) == FlowOrder(holder=FIRST, head=FIRST)


def test_the_room_of_a_flow_whose_state_was_lost_is_closed(flows: FlowStore):
    assert flows.close(STRIPE, seen=flows.state(STRIPE))
    flows.note_turn(STRIPE, NOON)
    seen = flows.state(STRIPE)
    assert flows.close(STRIPE, seen=seen)
    assert flows.state(STRIPE).turn_at is None

    flows.note_turn(STRIPE, NOON)
    flows.note_entry(STRIPE)

    assert not flows.close(STRIPE, seen=seen)


def test_an_order_is_not_the_room_and_not_its_state(flows: FlowStore):
    flows.line_up(STRIPE, FIRST)
    flows.hold(STRIPE, FIRST)

    assert flows.state(STRIPE) == FlowState()
    assert flows.waiting(STRIPE, after="", limit=10) == []
    assert flows.waited_for(after="", limit=100)[0] == set()


def test_what_waits_is_found_by_its_place(flows: FlowStore):
    timer = a_waiting_timer()
    flows.wait(STRIPE, timer)
    (place,) = places(flows)

    found = flows.waiting_at(STRIPE, place)

    assert found is not None
    assert (found.place, found.tenant, found.timer) == (place, "acme", timer)
    assert flows.waiting_at(STRIPE, f"{place}-another") is None
