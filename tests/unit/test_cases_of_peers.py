"""What the test suites of other schedulers expect of schedules, and where we do something else: which sentence says so.

The cases are data of their own, with the suites' licences, and are no part of the repository: they are read from
TICKWHEEL_SCHEDULE_CASES, or from beside the checkout. What they taught stands in tests of our own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from functions.api.http.problems import Misshapen, problem_of
from functions.api.schedules.bodies import read_schedule
from functions.domain.errors import InvalidInput
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.firing import fires
from functions.domain.schedules.rules import CronRule, Fold, Gap
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.validation import check_consistency, check_new
from functions.domain.schedules.zones import local_of, zone_of
from fuzzing.parsers import RULES

REPOSITORY = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TICKWHEEL_SCHEDULE_CASES", REPOSITORY.parent / "shared" / "data" / "schedule-cases"))
FILES = sorted(FOLDER.glob("*.jsonl"))
DOCS = (REPOSITORY / "docs" / "schedules.md").read_text(encoding="utf-8")
NOW = datetime(2027, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """A fact of a suite. name: its file and place in it. expected: one of its keys is next, none, notnext, refused, accepted."""

    name: str
    definition: Mapping[str, Any]
    after: datetime
    expected: Mapping[str, Any]

    @property
    def cron(self) -> str:
        return str(self.definition.get("cron", ""))

    @property
    def rule(self) -> str:
        return str(self.definition.get("rrule", {}).get("rule", ""))

    @property
    def next(self) -> list[datetime]:
        return [datetime.fromisoformat(text) for text in self.expected.get("next", [])]


class Outcome(NamedTuple):
    """schedule: None where it is refused, with the message and what to write instead."""

    schedule: Schedule | None
    refusal: str = ""
    instead: Sequence[Mapping[str, Any]] = ()


class Choice(NamedTuple):
    """Why we differ: a sentence, or a part of one, of docs/schedules.md. It has a say in the cases that `covers` says."""

    sentence: str
    covers: Callable[[Case, Outcome], bool]


def cases_of(file: Path) -> Iterator[Case]:
    for line in file.read_text(encoding="utf-8").splitlines():
        written = json.loads(line)
        after = datetime.fromisoformat(written["after"]) if written.get("after") else NOW
        expected = {key: value for key, value in written.items() if key not in {"id", "def", "after"}}
        yield Case(f"{file.stem} {written['id']}", written["def"], after, expected)


def asked(definition: Mapping[str, Any]) -> Outcome:
    """What the API makes of a new definition."""
    try:
        schedule = read_schedule({**definition, "job": {"target": "handler:echo"}}, RULES).schedule("acme", "nightly")
        check_new(schedule, before=None)
        check_consistency(schedule)
    except (Misshapen, InvalidInput) as error:
        (problem, *_) = problem_of(error)["errors"]
        return Outcome(None, problem["message"], problem.get("instead", ()))
    return Outcome(schedule)


def agrees(case: Case, outcome: Outcome) -> bool:
    """Whether it does what the suite expects, or is refused with a definition that does."""
    if outcome.schedule is not None:
        return "refused" not in case.expected and does_as_expected(case, outcome.schedule)
    if "refused" in case.expected or "none" in case.expected:
        return True
    translated = (asked({**without_rule(case.definition), **definition}).schedule for definition in outcome.instead)
    return any(schedule is not None and does_as_expected(case, schedule) for schedule in translated)


def without_rule(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != "cron"}


def does_as_expected(case: Case, schedule: Schedule) -> bool:
    if "accepted" in case.expected:
        return True
    found = [fire.at for fire in islice(fires(schedule, after=case.after), max(1, len(case.next)))]
    if "notnext" in case.expected:
        return found != [datetime.fromisoformat(case.expected["notnext"])]
    return found == case.next


def _does_by_another_policy(case: Case, outcome: Outcome) -> bool:
    """Whether it would do as expected if the definition said otherwise what a clock change does."""
    schedule = outcome.schedule
    policies = product(Gap, Fold)
    return schedule is not None and any(
        does_as_expected(case, replace(schedule, gap=gap, fold=fold)) for gap, fold in policies
    )


def _names_a_time(schedule: Schedule) -> bool:
    return isinstance(schedule.rule, CronRule) and not parse_cron(schedule.rule.expression).follows_elapsed_time


def _joins_days_otherwise(case: Case, outcome: Outcome) -> bool:
    """Whether the suite joins two day fields in another way: each expected day matches one of them at least."""
    schedule = outcome.schedule
    if schedule is None or not case.cron:
        return False
    *_, of_month, months, of_week = case.cron.split()
    if {of_month, of_week} & {"*", "?"}:
        return False
    either = [parse_cron(f"0 0 {of_month} {months} *"), parse_cron(f"0 0 * {months} {of_week}")]
    days = [local_of(at, zone_of(schedule.timezone)) for at in case.next]
    return all(any(day.day in cron.days_of(day.year, day.month) for cron in either) for day in days)


def says(text: str) -> Callable[[Case, Outcome], bool]:
    """A refusal that says so."""
    return lambda _, outcome: text in outcome.refusal


def taken(pattern: str) -> Callable[[Case, Outcome], bool]:
    """An expression of this kind that is taken, and refused or read otherwise there."""
    return lambda case, outcome: outcome.schedule is not None and bool(re.search(pattern, case.cron, re.IGNORECASE))


OUT_OF_A_GAP = {
    "croniter test_croniter:128",
    "croniter test_croniter:130",
    "cron_parser DST start */20 3",
    "cronos_dst CronExpressionFacts:1238",
    "cronos_dst CronExpressionFacts:1674",
}

CHOICES = (
    # What a clock change does.
    Choice(
        "a cron whose minute or hour begins with a star follows elapsed time, which is `skip` and `both`",
        lambda case, outcome: (
            _does_by_another_policy(case, outcome)
            and outcome.schedule is not None
            and not _names_a_time(outcome.schedule)
        ),
    ),
    Choice(
        "a rule that names a time of day is `next_valid` and `first`",
        lambda case, outcome: (
            _does_by_another_policy(case, outcome) and outcome.schedule is not None and _names_a_time(outcome.schedule)
        ),
    ),
    # Others move it by the length of the gap; in Amman we fire at one, which is when those cases begin to look.
    Choice("`next_valid` fires at the first valid time after it", lambda case, _: case.name in OUT_OF_A_GAP),
    # How a cron is read.
    Choice(
        "As in Debian's cron a day must match both day fields when one of them begins with a star, and either of them otherwise",
        _joins_days_otherwise,
    ),
    Choice("A range of one, such as `23-23/24`, is that number.", taken(r"\b(\w+)-\1\b")),
    Choice(
        "a range that runs backwards wraps around the end of its field, with its step",
        taken(r"apr-mar/2|thu-tue/2|\b5-3$|fri-tue|^18-13 "),
    ),
    Choice("all, one, a range, a list of all that is in this table", taken(r"1,2W")),
    Choice("names; in numbers 1 is January, and Sunday is 0 and 7", taken("SUNDAY")),
    Choice(
        "A step that is larger than its range, such as `15-23/24`, means the first number alone.",
        taken(r"\*/31 |4-6/3 "),
    ),
    Choice(
        "`end`: no fire at or after it", lambda case, outcome: "end" in case.definition and outcome.schedule is not None
    ),
    # What is refused.
    Choice("A cron fires on the minute: other seconds than 0 are refused", says("is an expression with seconds")),
    Choice(
        "Where there is no exact translation, the answer says what cannot be expressed.",
        says("is a cron with a sixth field after it"),
    ),
    Choice("Where there is no exact translation, the answer says what cannot be expressed.", says("is Jenkins' H")),
    Choice("the same as `*`", lambda case, _: case.cron.startswith("?")),
    Choice(
        "Names are three letters or the full name: `tues` is neither.",
        lambda case, outcome: not outcome.schedule and "thurs" in case.cron,
    ),
    # Intervals and recurrence rules.
    Choice(
        "at `start` (or the epoch) + phase + n intervals",
        lambda case, outcome: "every" in case.definition and outcome.schedule is not None,
    ),
    Choice("for seconds use `every`", says("FREQ=SECONDLY is not one of")),
    Choice('"N/A" in the table of section 3.3.10, are refused', says("has no meaning with FREQ=")),
    Choice("So are numbered days such as `2TU` with any frequency but `MONTHLY`", says("numbered days, such as")),
    Choice("A rule names at most 1,440 times of a day.", says("times of a day, more than 1440")),
    Choice("`starts_at` its DTSTART: a local time in whole seconds", says("must be a local time such as")),
    Choice(
        "`starts_at` its DTSTART: a local time in whole seconds",
        lambda case, _: case.name == "libical icalrecur_test:400",
    ),
    Choice("`BYMONTHDAY` without `BYMONTH` applies to every month.", lambda case, _: "YEARLY;BYMONTHDAY=" in case.rule),
    Choice(
        "`BYWEEKNO` without `BYDAY` takes the weekday of `starts_at`",
        lambda case, _: case.rule.endswith("COUNT=3;BYWEEKNO=20"),
    ),
    Choice(
        "With `BYWEEKNO` years are ISO 8601 years, and `INTERVAL` counts them",
        lambda case, _: "BYWEEKNO" in case.rule and "INTERVAL" in case.rule,
    ),
)


def _plain(text: str) -> str:
    return " ".join(text.replace("**", "").split())


def test_every_choice_is_a_sentence_of_the_docs():
    # Tables and paragraphs are cut into lines wherever they are.
    missing = [choice.sentence for choice in CHOICES if _plain(choice.sentence) not in _plain(DOCS)]

    assert not missing


@pytest.mark.skipif(
    not FILES, reason=f"THE CASES OF PEERS WERE NOT TRIED: {FOLDER} HAS NONE; SET TICKWHEEL_SCHEDULE_CASES"
)
class TestCasesOfPeers:
    def test_there_are_the_cases_of_fifteen_suites(self):
        assert len(FILES) == 15
        assert sum(1 for file in FILES for _ in cases_of(file)) == 3_105

    @pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
    def test_we_do_what_the_suite_expects_or_a_sentence_says_otherwise(self, file: Path):
        differences = [
            (case, outcome) for case in cases_of(file) if not agrees(case, outcome := asked(case.definition))
        ]

        assert not [
            (case.name, case.definition, outcome.refusal)
            for case, outcome in differences
            if not any(choice.covers(case, outcome) for choice in CHOICES)
        ]

    def test_every_choice_is_needed(self):
        differences = [
            (case, outcome)
            for file in FILES
            for case in cases_of(file)
            if not agrees(case, outcome := asked(case.definition))
        ]

        assert not [
            choice for choice in CHOICES if not any(choice.covers(case, outcome) for case, outcome in differences)
        ]
