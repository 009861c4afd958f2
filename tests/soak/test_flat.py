"""Made-up curves: what the analysis of a soak calls flat."""

import math
import random

import pytest

from soak.flat import Budget, InvalidBudget, Piece, judge_flat, phases_of, trend_of

SPAN = 1_200.0
STEP = 10.0
BUDGET = Budget(share=0.05, floor=2.0)
TIMES = [STEP * number for number in range(int(SPAN / STEP))]


def a_curve(level: float = 100.0, *, rise: float = 0.0, noise: float = 0.0, seed: int = 1) -> Piece:
    """rise: over the whole span."""
    chance = random.Random(seed)
    return [(at, level + rise * at / SPAN + chance.gauss(0, noise)) for at in TIMES]


def is_flat(*pieces: Piece, budget: Budget = BUDGET) -> bool | None:
    return judge_flat(pieces, budget, span=SPAN).is_flat


def test_a_constant_is_flat() -> None:
    verdict = judge_flat([a_curve()], BUDGET, span=SPAN)
    assert (verdict.is_flat, verdict.rise, verdict.allowed) == (True, 0.0, 5.0)


def test_a_leak_is_not() -> None:
    verdict = judge_flat([a_curve(rise=12)], BUDGET, span=SPAN)
    assert verdict.is_flat is False
    assert verdict.rise == pytest.approx(12)


def test_a_leak_within_the_budget_is_let_pass_and_reported() -> None:
    verdict = judge_flat([a_curve(rise=4)], BUDGET, span=SPAN)
    assert verdict.is_flat is True
    assert verdict.rise == pytest.approx(4)


def test_noise_is_flat_but_for_one_curve_in_hundreds() -> None:
    flats = [is_flat(a_curve(noise=20, seed=seed)) for seed in range(60)]
    assert flats.count(False) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_is_found_in_noise_as_large_as_itself(seed: int) -> None:
    assert is_flat(a_curve(rise=40, noise=20, seed=seed)) is False


def test_a_sawtooth_is_flat_where_only_the_same_phases_are_compared() -> None:
    sawtooth = [(at, 100 + at % 240 / 4) for at in TIMES]
    assert is_flat(*phases_of(sawtooth, cycle=240))
    # As it is, most of its pairs rise.
    assert judge_flat([sawtooth], BUDGET, span=SPAN).rise > 10


def test_a_sawtooth_on_rising_ground_is_not() -> None:
    rising = [(at, 100 + at % 240 / 4 + at / 20) for at in TIMES]
    verdict = judge_flat(phases_of(rising, cycle=240), BUDGET, span=SPAN)
    assert verdict.is_flat is False
    assert verdict.rise == pytest.approx(60)


@pytest.mark.parametrize("seed", range(20))
def test_a_noisy_sawtooth_is_flat(seed: int) -> None:
    curve = [(at, value + at % 240 / 4) for at, value in a_curve(noise=10, seed=seed)]
    assert is_flat(*phases_of(curve, cycle=240))


def test_spikes_of_faults_hide_no_leak_and_are_none() -> None:
    spikes = [100_000.0 if number % 5 == 4 else 0.0 for number in range(len(TIMES))]
    calm = [(at, value + spike) for (at, value), spike in zip(a_curve(noise=1), spikes, strict=True)]
    leaking = [(at, value + spike) for (at, value), spike in zip(a_curve(rise=30, noise=1), spikes, strict=True)]
    assert is_flat(calm)
    assert is_flat(leaking) is False


def test_growth_that_ends_as_caches_fill_is_flat_where_the_warm_up_is_left_out() -> None:
    filling = [(at, 100 - 60 * math.exp(-at / 100)) for at in TIMES]
    assert is_flat(filling[40:])


def test_growth_that_a_restart_resets_is_found_in_the_lives_of_the_processes() -> None:
    def a_life(begin: int) -> Piece:
        return [(at, 60 + (at - TIMES[begin]) / 30) for at in TIMES[begin : begin + 30]]

    lives = [a_life(begin) for begin in (0, 30, 60, 90)]
    assert is_flat(*lives) is False
    # At the same age each of them is as large.
    assert is_flat(*phases_of([point for life in lives for point in life], cycle=300))


def test_processes_of_different_sizes_that_do_not_grow_are_flat() -> None:
    assert is_flat(*([(at, size) for at in TIMES[begin:]] for begin, size in ((0, 60.0), (30, 80.0), (60, 120.0))))


def test_what_shrinks_is_flat() -> None:
    assert is_flat(a_curve(rise=-50))


def test_a_count_that_is_mostly_zero_is_flat() -> None:
    assert is_flat([(at, float(number % 7 == 0)) for number, at in enumerate(TIMES)], budget=Budget(0.1, 1))


def test_nothing_is_said_of_a_few_points() -> None:
    assert trend_of([a_curve()[:11]]) is None
    assert trend_of([[point] for point in a_curve()]) is None
    assert is_flat(a_curve(rise=500)[:11]) is None
    assert is_flat() is None


def test_a_short_look_at_noise_is_not_taken_for_growth() -> None:
    flats = [is_flat(a_curve(noise=20, seed=seed)[:15], budget=Budget(0, 0.1)) for seed in range(40)]
    assert flats.count(False) <= 1


@pytest.mark.parametrize(("share", "floor"), [(-0.1, 1.0), (1.0, 1.0), (0.1, 0.0)])
def test_a_budget_that_means_nothing_is_refused(share: float, floor: float) -> None:
    with pytest.raises(InvalidBudget, match="use 0 <= share < 1, and a floor above 0"):
        Budget(share, floor)
