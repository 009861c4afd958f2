"""What goes on in a minute: sums, and who stands out."""

from datetime import timedelta

from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import MOST_NAMED, Figure, Pulse, Rank, minute_of, standing_out, sum_of, worst
from testkit.builders import NOON

STARTED, RETRIED, FAILED, REFUSED = Figure.STARTED, Figure.RETRIED, Figure.FAILED, Figure.REFUSED


def test_pulses_of_processes_add_up():
    one = Pulse(counts={STARTED: 2, FAILED: 1}, lags={Priority.LOW: {3: 1, 4: 1}})
    other = Pulse(counts={STARTED: 5}, lags={Priority.LOW: {4: 2}, Priority.HIGH: {0: 3}})

    both = sum_of([one, other])

    assert both.counts == {STARTED: 7, FAILED: 1}
    assert both.lags == {Priority.LOW: {3: 1, 4: 3}, Priority.HIGH: {0: 3}}
    assert both.all_lags == {0: 3, 3: 1, 4: 3}
    assert (both.of(STARTED), both.of(REFUSED)) == (7, 0)


def test_an_instant_is_in_the_minute_that_has_begun():
    assert minute_of(NOON + timedelta(seconds=59, microseconds=999_999)) == NOON
    assert minute_of(NOON) == NOON


def test_a_tenant_with_a_fourth_of_anything_stands_out():
    assert standing_out({"whale": {STARTED: 25}, **{f"t{n}": {STARTED: 3} for n in range(25)}}) == ["whale"]
    assert standing_out({"whale": {STARTED: 24}, **{f"t{n}": {STARTED: 3} for n in range(25)}}) == []


def test_a_tenant_with_few_attempts_stands_out_by_its_failures():
    quiet = {f"t{n}": {STARTED: 100} for n in range(10)}

    assert standing_out({**quiet, "broken": {STARTED: 3, RETRIED: 2, FAILED: 1}}) == ["broken"]
    assert standing_out({**quiet, "throttled": {REFUSED: 1}}) == ["throttled"]


def test_only_the_largest_shares_are_named():
    found = standing_out({"a": {STARTED: 1}, "b": {STARTED: 1}, "c": {STARTED: 1}, "d": {STARTED: 1, FAILED: 1}})

    assert (found, len(found)) == (["d", "a", "b"], MOST_NAMED)


def test_where_nothing_was_counted_nobody_stands_out():
    assert standing_out({}) == []
    assert standing_out({"acme": {}}) == []


def test_the_worst_have_the_most_and_none_has_nothing():
    tenants = {"a": {STARTED: 1}, "b": {RETRIED: 2, FAILED: 3}, "c": {FAILED: 5}, "d": {FAILED: 1}}

    assert worst(tenants, Rank.FAILURES, limit=2) == [("b", 5), ("c", 5)]
    assert worst(tenants, Rank.EXECUTIONS, limit=2) == [("a", 1)]
    assert worst(tenants, Rank.REFUSALS, limit=2) == []
