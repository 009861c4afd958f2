import pytest

from functions.domain.errors import InvalidSchedule, TooCostly
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.step_budget import Budget
from testkit.builders import NOON, a_schedule
from tests.wall_clock import a_cron


def test_a_budget_gives_what_it_has_and_no_more():
    budget = Budget(3)

    budget.spend(2)
    budget.spend()
    with pytest.raises(TooCostly):
        budget.spend()


def test_what_a_part_spends_is_spent_of_the_whole():
    request = Budget(10)
    Budget(8, within=request).spend(6)

    assert request.left == 4
    with pytest.raises(TooCostly):
        Budget(8, within=request).spend(5)


def test_a_part_may_spend_less_than_the_whole_has():
    with pytest.raises(TooCostly):
        Budget(2, within=Budget(10)).spend(3)


def test_what_is_worked_out_once_in_a_call_is_spent_for_once():
    request = Budget(10)

    Budget(8, within=request).spend_once("holidays", 6)
    Budget(8, within=request).spend_once("holidays", 6)

    assert (request.left, request.affordable) == (4, 4)
    assert Budget(8, within=request).affordable == 4
    assert request.paid == {"holidays"}
    with pytest.raises(TooCostly):
        Budget(8, within=request).spend_once("windows", 6)
    assert request.paid == {"holidays"}


def test_one_budget_pays_for_all_fires_of_a_call():
    with pytest.raises(TooCostly):
        list(fires(a_schedule(rule=CronRule("* * * * *")), after=NOON, budget=Budget(100)))


def test_what_is_too_costly_names_the_rule_and_says_what_to_change():
    with pytest.raises(InvalidSchedule) as refused:
        next_fire(a_cron("0 9 * * *"), after=NOON, budget=Budget(0))

    assert refused.value.field == "cron"
    assert "split it into schedules that are simpler" in str(refused.value)
