"""Inputs near what a parser takes: seeds that are cut, doubled, mixed, and filled with what parsers stumble over.

A plain generator with a seed, because a million inputs have to take minutes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

TOKENS = (
    *[
        "0",
        "9",
        "-1",
        "1e999",
        "NaN",
        "Infinity",
        "null",
        "true",
        "[]",
        "{}",
        "*",
        "/",
        ",",
        "-",
        ":",
        ";",
        ".",
        "~",
        "#",
        "@",
        "%",
        "?",
        "&",
        "=",
        '"',
        "\\",
        "'",
    ],
    *("\x00", "\n", "\t", " ", "\ud800", "\uffff", "\u0661", "\u00b2", "\u2028", "\U0001f600", "\u0130", "é"),
    *("9" * 5_000, "1" * 400, "[" * 2_000, '{"a":' * 2_000, "*/" * 500, "1,2," * 500, "((((" * 100, "%25" * 100),
    *("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00+23:59", "2024-02-30T25:61:61Z", "P9999Y", "PT1e9S", "P1.5DT"),
    *("FREQ=SECONDLY", "BYSETPOS=-366", "INTERVAL=0", "COUNT=999999999", "UNTIL=00010101T000000Z", "L", "W", "5#5"),
    *("@reboot", "30 2 31 2 *", "Europe/Berlin", "../etc/passwd", "xn--", "[::1]", "0x7f.1", "::ffff:127.0.0.1/129"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", " ", "x" * 5_000, "\ud800", "\x00", [], {}, [[]], {"": ""}, [None] * 50, {"a": {"b": {"c": []}}}),
)
LONGEST = 20_000


class Inputs:
    """An endless supply of inputs, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311  not a secret

    def text(self, seeds: Sequence[str]) -> str:
        """A text that was one of these."""
        text = self._random.choice(seeds)
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 3, 6))):
            text = self._changed(text, seeds)[:LONGEST]
        return text

    def value(self, seeds: Sequence[Any]) -> Any:
        """A JSON value that was one of these, some of its parts replaced."""
        value = json.loads(json.dumps(self._random.choice(seeds)))
        for _ in range(self._random.choice((1, 1, 2, 3))):
            value = self._with_a_part_changed(value)
        return value

    def _changed(self, text: str, seeds: Sequence[str]) -> str:
        pick = self._random
        start, end = sorted((pick.randint(0, len(text)), pick.randint(0, len(text))))
        match pick.randrange(7):
            case 0:
                return text[:start] + pick.choice(TOKENS) + text[start:]
            case 1:
                return text[:start] + pick.choice(TOKENS) + text[end:]
            case 2:
                return text[:start] + text[end:]
            case 3:
                return text[:end] + text[start:end] * pick.choice((1, 2, 100)) + text[end:]
            case 4:
                other = pick.choice(seeds)
                return text[:start] + other[pick.randint(0, len(other)) :]
            case 5:
                return (
                    text[:start] + chr(pick.choice((pick.randrange(128), pick.randrange(0x3000)))) + text[start + 1 :]
                )
            case _:
                return text.swapcase()

    def _with_a_part_changed(self, value: Any) -> Any:
        pick = self._random
        if isinstance(value, dict) and value and pick.random() < 0.9:  # noqa: PLR2004
            key = pick.choice(list(value))
            match pick.randrange(5):
                case 0:
                    return {name: part for name, part in value.items() if name != key}
                case 1:
                    return {**value, pick.choice(TOKENS): value[key]}
                case _:
                    return {**value, key: self._with_a_part_changed(value[key])}
        if isinstance(value, list) and value and pick.random() < 0.8:  # noqa: PLR2004
            place = pick.randrange(len(value))
            if pick.random() < 0.2:  # noqa: PLR2004
                return (value * pick.choice((0, 2, 60)))[:120]
            return [*value[:place], self._with_a_part_changed(value[place]), *value[place + 1 :]]
        if isinstance(value, str) and pick.random() < 0.7:  # noqa: PLR2004
            return self._changed(value, (value,))[:LONGEST]
        if isinstance(value, int) and not isinstance(value, bool) and pick.random() < 0.5:  # noqa: PLR2004
            return value + pick.choice((-1, 1, -(10**9), 10**9, 10**15, -(10**15)))
        return pick.choice(VALUES)
