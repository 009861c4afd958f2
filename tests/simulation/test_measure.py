"""What runs are judged by: percentiles against sorted truth, Jain's index, and fair shares."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.jobs.job import Priority
from simulation.calls import CallColumns
from simulation.measure import (
    entitlements,
    fairness,
    jain,
    lag_by_class,
    lag_of,
    percentile,
    points_of,
    shares_between,
)
from simulation.orders import Order


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values: list[float], quantile: float) -> None:
    found = percentile(np.sort(np.array(values)), quantile)

    assert found in values
    covered = sum(value <= found for value in values) / len(values)
    below = sum(value < found for value in values) / len(values)
    assert below < quantile <= covered


def test_percentiles_of_a_thousand_are_those_of_their_places() -> None:
    values = list(range(1, 1_001))
    Random(1).shuffle(values)

    lag = lag_of(np.array(values, dtype=float))

    assert (lag.p50, lag.p95, lag.p99, lag.p999, lag.longest) == (500, 950, 990, 999, 1_000)
    assert lag.count == 1_000


def test_nothing_has_no_lag() -> None:
    assert lag_of(np.array([])).count == 0


def test_jains_index_is_one_when_all_are_equal() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)


def test_jains_index_is_one_in_n_when_one_has_everything() -> None:
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


def test_jains_index_of_a_known_case() -> None:
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / (3 * 14))


def test_what_a_modest_tenant_leaves_is_the_others() -> None:
    found = entitlements(
        {"modest": 10.0, "big": 1_000.0, "bigger": 1_000.0},
        {"modest": 1.0, "big": 1.0, "bigger": 2.0},
        capacity=310.0,
    )

    assert found == pytest.approx({"modest": 10.0, "big": 100.0, "bigger": 200.0})


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.tuples(st.floats(0, 1e3), st.floats(0.1, 10)), min_size=1, max_size=6
    ),
    st.floats(0.001, 1),
)
def test_entitlements_share_out_everything_and_give_nobody_more_than_it_asks_for(
    tenants: dict[str, tuple[float, float]], part: float
) -> None:
    demands = {name: demand for name, (demand, _) in tenants.items()}
    capacity = part * sum(demands.values())

    found = entitlements(demands, {name: weight for name, (_, weight) in tenants.items()}, capacity=capacity)

    assert sum(found.values()) == pytest.approx(capacity, abs=1e-6)
    assert all(found[name] <= demand + 1e-6 for name, demand in demands.items())


def calls_of(*calls: tuple[str, Priority, float, float]) -> CallColumns:
    columns = CallColumns()
    for tenant, priority, at, lag in calls:
        columns.add(tenant, "host", priority, at=at, lag=lag, is_first=True)
    return columns


def test_lags_are_distinguished_by_class() -> None:
    calls = calls_of(("a", Priority.HIGH, 5, 1.0), ("a", Priority.LOW, 6, 3.0), ("b", Priority.LOW, 6, 3.0))

    found = lag_by_class(calls.table())

    assert {name: (lag.count, lag.p99) for name, lag in found.items()} == {"high": (1, 1.0), "low": (2, 3.0)}


def test_a_tenant_is_entitled_by_its_weight_to_what_was_served() -> None:
    orders = [Order(0, 10, tenant, Priority.NORMAL, "host") for tenant in ("light", "heavy") for _ in range(100)]
    calls = calls_of(*[("light", Priority.NORMAL, 20, 1.0)] * 20, *[("heavy", Priority.NORMAL, 20, 1.0)] * 20)

    found = shares_between(calls.table(), orders, {"light": 1.0, "heavy": 3.0}, between=(15, 25))

    assert {share.tenant: (share.served, share.entitled) for share in found} == {
        "light": (20, pytest.approx(10)),
        "heavy": (20, pytest.approx(30)),
    }
    assert fairness(found) == pytest.approx(jain([2.0, 2 / 3]))


def test_a_run_is_cut_into_pieces_by_when_jobs_came_due() -> None:
    calls = calls_of(("a", Priority.HIGH, 1.5, 1.0), ("a", Priority.HIGH, 1.9, 0.5), ("a", Priority.HIGH, 3.0, 0.0))

    points = points_of(calls.table(), until=4.0, share=0.5)

    assert [(point.at, point.due, point.called, point.lag) for point in points[:4]] == [
        (0.0, 2.0, 0.0, 1.0),
        (1.0, 2.0, 4.0, 0.5),
        (2.0, 0.0, 0.0, 0.0),
        (3.0, 2.0, 2.0, 0.0),
    ]
