"""What is stored and queued, between this release and the one before: each reads what the other has written.

During a deployment, and after a rollback, functions of both are at work. What is compared is what they understand, not what
they would write: two releases that mean different things by the same bytes may each read their own again without a
difference. The code of the release before runs in a process of its own, out of the repository's history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.far_ring.cursor import Cursors, encode_cursors
from functions.domain.far_ring.timer_record import encode_alarm, encode_envelope, encode_timer
from functions.domain.jobs.job import Timer
from functions.domain.jobs.retry import Jitter
from functions.domain.schedules.record import encode_stored
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.targets.flows import FlowScope
from functions.domain.tenants.plan import encode_tenant
from scripts.synthesis import ROOT
from testkit.builders import NOON, a_link, a_schedule, an_alarm, an_occurrence_timer
from testkit.releases import archive_of, previous_release, unpack
from tests.contract.test_stored_meaning import (
    OTHER_DEFAULTS,
    STORED_BYTES,
    VALUES_STORED,
    source_of,
    with_other_default,
    with_rotated_values,
)
from tests.properties.test_domain import cursors, timers
from tests.stored_meaning import Release, release_in
from tests.unit.test_schedule_record import EVERYTHING
from tests.unit.test_tenant_plan import FULL
from tickwheel.local.checkout import Checkout

NEWS = {
    "timer": {
        "trace",
        "counted_on",
        "submitted_at",
        "intervals",
        "jitter",
        "flows",
        "is_ordered",
        "turns",
        "run_deadline",
        "keeps",
        "callbacks",
        "collect",
        "reads_cancel",
    },
    "message": {
        "trace",
        "counted_on",
        "submitted_at",
        "intervals",
        "jitter",
        "flows",
        "is_ordered",
        "turns",
        "run_deadline",
        "keeps",
    },
    "ledger row": {"spent", "counted_from", "asked", "tried", "waits_for"},
    "schedule_state row": {"aside_at", "asides", "asked_runs", "figures", "kept_runs", "share"},
    "conditions": {"marked_since", "unseen_since"},
    "cursors": {"unhandled"},
    "definition": {
        "callbacks",
        "collect",
        "failure_history",
        "flows",
        "is_ordered",
        "run_deadline",
        "spread_from",
        "success_history",
    },
    "shards row": {"unhandled"},
    "tenant": {"spread"},
}
"""Fields, by kinds, that the release before does not know, and leaves out; empty again with each release."""

NEW_KINDS = {"pulse row", "schedule sum row"}
"""Rows that it does not have."""

NEW_FORMS = {("cursors", "written closely"), ("deletion", "part flows")}
"""What it refuses to read (docs/upgrading.md): written only where it could have recorded nothing itself, or not before this release works on."""

NEW_ENUMS = {FlowScope, Jitter, SpreadFrom}
"""Values of fields that it does not know."""

NEW_OPTIONS = {
    ("definition", about)
    for about in ("retry intervals", "retry intervals, attempts and jitter", "retry fixed with equal jitter")
}
"""What it reads without an option that it does not know, and does without (docs/upgrading.md)."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    archive, why_not = archive_of(previous_release(Checkout(ROOT)), ROOT, paths=["functions"])
    if archive is None:
        pytest.skip(f"NOT TESTED: {why_not}")
    folder = tmp_path_factory.mktemp("previous")
    unpack(archive, folder)
    with release_in(folder) as release:
        yield release


def known(kind: str, meaning: Any) -> Any:
    """As far as the release before knows it."""
    if isinstance(meaning, dict):
        return {name: known(kind, value) for name, value in meaning.items() if name not in NEWS.get(kind, ())}
    return [known(kind, value) for value in meaning] if isinstance(meaning, list) else meaning


def differences(before: Release, this_release: Release, stored: list[tuple[str, Any]]) -> list[str]:
    """What the two take for different things."""
    meanings = [
        (kind, text, before.meaning(kind, text), known(kind, this_release.meaning(kind, text))) for kind, text in stored
    ]
    return [f"{kind} {text}: {then} before, {today} now" for kind, text, then, today in meanings if then != today]


def agree(before: Release, this_release: Release, kind: str, written: str) -> None:
    """What this release wrote means the same to both, and so does what the other writes after it has read that."""
    again = before.written_again(kind, written)

    assert differences(before, this_release, [(kind, written), (kind, again)]) == []
    assert this_release.meaning(kind, again) == known(kind, this_release.meaning(kind, written))


@given(timers())
def test_a_timer_means_the_same_to_both(before: Release, this_release: Release, timer: Timer) -> None:
    agree(before, this_release, "timer", encode_timer(timer))


@given(st.lists(timers(), min_size=1, max_size=3))
def test_a_message_means_the_same_to_both(before: Release, this_release: Release, batch: list[Timer]) -> None:
    agree(before, this_release, "message", encode_envelope(batch[:1]))


def test_a_fire_of_a_schedule_means_the_same_to_both(before: Release, this_release: Release) -> None:
    agree(before, this_release, "timer", encode_timer(an_occurrence_timer(a_schedule())))


def test_an_alarm_means_the_same_to_both(before: Release, this_release: Release) -> None:
    alarm = an_alarm(a_schedule(), alarm_at=NOON, link=a_link(index=7, previous_at=NOON, merged_count=3))

    agree(before, this_release, "alarm", encode_alarm(alarm))


@given(cursors)
def test_cursors_mean_the_same_to_both(before: Release, this_release: Release, found: Cursors) -> None:
    agree(before, this_release, "cursors", encode_cursors(found))


@pytest.mark.parametrize("schedule", [EVERYTHING, a_schedule()], ids=["everything", "as usual"])
def test_a_definition_of_a_schedule_means_the_same_to_both(
    before: Release, this_release: Release, schedule: Any
) -> None:
    agree(before, this_release, "definition", json.dumps(encode_stored(schedule)))


def test_a_tenant_means_the_same_to_both(before: Release, this_release: Release) -> None:
    agree(before, this_release, "tenant", encode_tenant(FULL))


KNOWN = [
    (stored["kind"], stored["bytes"])
    for stored in STORED_BYTES
    if stored["kind"] not in NEW_KINDS and (stored["kind"], stored["about"]) not in NEW_FORMS | NEW_OPTIONS
]


def test_every_kind_of_row_and_message_means_the_same_to_both(before: Release, this_release: Release) -> None:
    assert differences(before, this_release, KNOWN) == []


def test_the_release_before_does_without_an_option_of_retries_that_it_does_not_know(before: Release) -> None:
    read = [
        before.meaning(stored["kind"], stored["bytes"])["job"]["retry"]
        for stored in STORED_BYTES
        if (stored["kind"], stored["about"]) in NEW_OPTIONS
    ]

    assert [(retry["strategy"], retry["attempts"]) for retry in read] == [
        ("Strategy.DECORRELATED_JITTER", 5),
        ("Strategy.DECORRELATED_JITTER", 5),
        ("Strategy.FIXED", 9),
    ]


def test_a_form_that_the_release_before_does_not_know_is_refused_and_never_guessed(before: Release) -> None:
    forms = [stored for stored in STORED_BYTES if (stored["kind"], stored["about"]) in NEW_FORMS]
    assert len(forms) == len(NEW_FORMS)
    for stored in forms:
        assert before.meaning(stored["kind"], stored["bytes"]).startswith("Undecodable: ")


@pytest.mark.parametrize(
    "enum", [enum for enum in VALUES_STORED if enum not in NEW_ENUMS], ids=lambda enum: enum.__name__
)
def test_an_enum_whose_values_change_places_means_something_else_to_the_release_before(
    before: Release, a_copy: Release, enum: type[Any]
) -> None:
    a_copy.becomes({enum.__module__: with_rotated_values(source_of(enum.__module__), enum.__name__)})

    assert differences(before, a_copy, KNOWN)


@pytest.mark.parametrize(
    ("name", "other"), [default for default in OTHER_DEFAULTS.items() if default[0] not in NEWS["timer"]]
)
def test_another_default_means_something_else_to_the_release_before(
    before: Release, a_copy: Release, name: str, other: str
) -> None:
    module = "functions.domain.schedules.defaults"

    a_copy.becomes({module: with_other_default(source_of(module), name, other)})

    assert differences(before, a_copy, KNOWN)
