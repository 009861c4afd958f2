"""The budgets of the scanners."""

from functions.domain.fairness import budgets_of, grant, order_from, quantum_of
from functions.domain.job import Priority
from functions.sweeper.publish import Publisher
from tests.builders import a_timer
from tests.unit.world import World


def test_the_room_in_a_queue_is_divided_by_the_shards():
    depths = {Priority.CRITICAL: 0, Priority.HIGH: 99, Priority.NORMAL: 100, Priority.LOW: 1_000}

    budgets = budgets_of(depths, capacity=100, shards=8)

    assert budgets == {Priority.CRITICAL: 13, Priority.HIGH: 1, Priority.NORMAL: 0, Priority.LOW: 0}


def test_what_is_published_is_what_the_next_tick_may_promote():
    world = World()
    world.ready.send([a_timer() for _ in range(5)])
    publisher = Publisher(wheel=world.wheel, ready=world.ready, shards=world.shards, journal=world.journal, capacity=10)

    assert publisher.publish()[Priority.NORMAL] == 3
    assert world.shards.budgets() == {
        Priority.CRITICAL: 5,
        Priority.HIGH: 5,
        Priority.NORMAL: 3,
        Priority.LOW: 5,
    }
    assert world.events("budgets_published")[0]["depths"] == {"critical": 0, "high": 0, "normal": 5, "low": 0}


def test_a_quantum_is_a_part_of_the_budget_within_bounds():
    assert [quantum_of(budget) for budget in (None, 0, 100, 1_000, 10**6)] == [500, 10, 10, 50, 500]


def test_a_turn_is_at_least_one_job():
    assert [grant(10, weight) for weight in (0.01, 0.5, 1, 3)] == [1, 5, 10, 30]


def test_a_round_goes_on_where_it_was_cut_off_also_when_that_tenant_is_gone():
    assert order_from("", ["b", "a"]) == ["", "a", "b"]
    assert order_from("b", ["c", "a"]) == ["c", "", "a"]
    assert order_from("z", ["a"]) == ["", "a"]
