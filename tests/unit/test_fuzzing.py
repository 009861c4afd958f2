"""A share of what `make fuzz` feeds, in every run of the tests; and that the fuzzer finds what it looks for."""

import json
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.rrules import parse_rrule
from functions.domain.schedules.zones import zone_of
from functions.domain.tenants.plan import read_limits
from fuzzing import run as fuzzing_run
from fuzzing.inputs import Inputs
from fuzzing.parsers import PARSERS, Parser
from fuzzing.run import feed

SHARE = 150
AT = datetime(2027, 3, 1)  # noqa: DTZ001  rules are of local time


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_takes_an_input_or_refuses_it_in_its_own_words(parser: Parser) -> None:
    report = feed(parser, SHARE, seed=7)
    assert report.inputs == SHARE
    assert report.findings == []


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_takes_what_its_inputs_begin_from(parser: Parser) -> None:
    for seed in parser.seeds:
        try:
            parser.read(seed)
        except parser.refusals:
            continue
        return
    pytest.fail("it refuses all of them: nothing near to what it takes is tried")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
    max_leaves=8,
)


def edited(parser: Parser) -> st.SearchStrategy[Any]:
    """A text, or a seed with a part of it replaced; or any JSON, and a seed with some fields replaced."""
    seeds = st.sampled_from(list(parser.seeds))
    if parser.is_of_text:
        cut = st.integers(0, max(len(seed) for seed in parser.seeds))
        return st.text() | st.builds(lambda seed, at, to, by: seed[:at] + by + seed[to:], seeds, cut, cut, st.text())
    names = st.sampled_from(sorted({name for seed in parser.seeds for name in seed})) | st.text()
    changes = st.dictionaries(names, JSON_VALUES, max_size=3)
    return JSON_VALUES | st.builds(lambda seed, change: {**seed, **change}, seeds, changes)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_takes_or_refuses_whatever_hypothesis_thinks_of(parser: Parser) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(edited(parser))
    def takes_or_refuses(value: Any) -> None:
        with suppress(*parser.refusals):
            parser.read(value)

    takes_or_refuses()


def test_inputs_are_the_same_for_the_same_seed() -> None:
    first, second, other = Inputs("a"), Inputs("a"), Inputs("b")
    texts = [[inputs.text(("PT1H",)) for _ in range(50)] for inputs in (first, second, other)]
    assert texts[0] == texts[1] != texts[2]


def test_an_error_that_is_no_refusal_is_found_with_its_input() -> None:
    def read(text: str) -> None:
        if text != "PT1H":
            raise KeyError("lost")

    report = feed(Parser(name="broken", read=read, seeds=("PT1H",)), 100, seed=1)
    assert {(finding.parser, finding.what) for finding in report.findings} == {("broken", "raises KeyError: 'lost'")}
    assert len(report.findings) == fuzzing_run.MOST_SHOWN
    assert all(finding.given != "PT1H" for finding in report.findings)


def test_an_input_that_takes_much_of_a_processor_is_found() -> None:
    def read(text: str) -> None:
        began = time.process_time()
        while time.process_time() < began + 0.02:
            pass

    report = feed(Parser(name="dear", read=read, seeds=("x",)), 2, seed=1, most_cpu_s=0.01)
    assert [finding.what for finding in report.findings] == ["takes more than 0.01 s of CPU"] * 2


def test_a_hang_is_found_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing_run, "HANG_S", 0.05)
    seen: list[str] = []
    slow = Parser(name="slow", read=lambda text: time.sleep(30 if seen else seen.append(text) or 0), seeds=("x",))
    report = feed(slow, 2, seed=1)
    assert [finding.what for finding in report.findings] == ["takes more than 0.05 s"] * 2
    assert report.inputs == 2


FOUND = {
    "a field that croniter would part": lambda: parse_cron("0 0\x0b12 * * 1"),
    "a weekday that no month has so often": lambda: parse_rrule("FREQ=MONTHLY;BYDAY=11FR", AT),
    "one that no month of a year has so often": lambda: parse_rrule("FREQ=YEARLY;BYMONTH=12;BYDAY=53FR", AT),
    "a number that no float holds": lambda: read_limits({"weight": 10**400}),
}


@pytest.mark.parametrize("parse", FOUND.values(), ids=FOUND)
def test_what_the_fuzzer_has_found_is_refused(parse: Any) -> None:
    with pytest.raises((InvalidSchedule, InvalidInput)):
        parse()


def steps_of(call: Any) -> int:
    """Lines of Python that a call runs."""
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except InvalidInput:
        pass
    finally:
        sys.settrace(before)
    return count


GROWING = {
    "crons": lambda size: lambda: parse_cron.__wrapped__("1," * size + " * * * *"),
    "rrules": lambda size: lambda: parse_rrule.__wrapped__("FREQ=MONTHLY;BYMONTHDAY=" + ",".join(["1"] * size), AT),
    "zones": lambda size: lambda: zone_of.__wrapped__("Europe/" + "n" * size),
}


@pytest.mark.parametrize("parse", GROWING.values(), ids=GROWING)
def test_a_text_that_is_too_long_is_refused_before_its_parts_are_looked_at(parse: Any) -> None:
    short, long = steps_of(parse(500)), steps_of(parse(50_000))
    assert long <= short * 1.5 + 100


@pytest.mark.parametrize("parser", [parser for parser in PARSERS if parser.is_of_text], ids=lambda parser: parser.name)
def test_ten_times_the_text_takes_no_more_than_ten_times_the_steps(parser: Parser) -> None:
    seed = max(parser.seeds, key=len)
    short, long = (steps_of(lambda size=size: parser_outcome(parser, seed * size)) for size in (20, 200))
    assert long <= 12 * short + 2_000


def parser_outcome(parser: Parser, text: str) -> None:
    try:
        parser.read(text)
    except parser.refusals:
        return


def test_json_values_are_changed_and_stay_json() -> None:
    inputs = Inputs("x")
    seeds = ({"a": [1, {"b": "c"}]},)
    values = [inputs.value(seeds) for _ in range(300)]
    assert any(value != seeds[0] for value in values)
    for value in values:
        json.dumps(value)
