"""How far a sample is from what it should be drawn from. The limits are passed by one honest sample in a thousand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt


def is_drawn_from(sample: Sequence[float], distribution: Callable[[float], float]) -> bool:
    """Kolmogorov and Smirnov: the largest distance between the sample's steps and a distribution function."""
    n = len(sample)
    assert n >= 100, "the limit is that of large samples"
    distance = 0.0
    for index, value in enumerate(sorted(sample)):
        expected = distribution(value)
        distance = max(distance, expected - index / n, (index + 1) / n - expected)
    return distance < 1.95 / sqrt(n)


def is_uniform(sample: Sequence[float]) -> bool:
    """On [0, 1)."""
    assert all(0 <= value < 1 for value in sample)
    return is_drawn_from(sample, lambda value: value)


def are_equally_frequent(counts: Sequence[int]) -> bool:
    """Pearson's chi-square, its limit by Wilson and Hilferty."""
    freedom = len(counts) - 1
    expected = sum(counts) / len(counts)
    assert expected >= 5, "too few for the test"
    square = sum((count - expected) ** 2 for count in counts) / expected
    return square < freedom * (1 - 2 / (9 * freedom) + 3.09 * sqrt(2 / (9 * freedom))) ** 3
