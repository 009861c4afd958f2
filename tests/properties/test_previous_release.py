"""What is stored and queued, between this release and the one before: each reads what the other has written.

During a deployment, and after a rollback, functions of both are at work. The code of the release before runs in a process
of its own, out of the repository's history.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.cursor import Cursors, decode_cursors, encode_cursors
from functions.domain.envelope import decode_alarm, decode_envelope, decode_timer, encode_alarm, encode_envelope
from functions.domain.envelope import encode_timer as encode
from functions.domain.job import Timer
from functions.domain.schedule_record import decode_schedule, encode_schedule
from functions.domain.tenant_plan import Tenant, TenantStatus, decode_tenant, encode_tenant
from tests.builders import NOON, a_link, a_schedule, an_alarm, an_occurrence_timer
from tests.e2e.releases import archive_of, previous_release
from tests.infra.synthesis import ROOT
from tests.properties.test_domain import cursors, timers
from tests.unit.test_schedule_record import EVERYTHING

NEWS: dict[str, Any] = {}
"""Fields of a job that the release before leaves out, with the values that they have then; empty again with each release."""

READER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from functions.domain import cursor, envelope, schedule_record, tenant_plan

def schedule(text, **names):
    return json.dumps(schedule_record.encode_schedule(schedule_record.decode_schedule(text, **names)))

READ = {
    "timer": lambda text, **names: envelope.encode_timer(envelope.decode_timer(text, **names)),
    "envelope": lambda text: envelope.encode_envelope(envelope.decode_envelope(text)),
    "alarm": lambda text, **names: envelope.encode_alarm(envelope.decode_alarm(text, **names)),
    "cursors": lambda text: cursor.encode_cursors(cursor.decode_cursors(text)),
    "schedule": schedule,
    "tenant": lambda text: tenant_plan.encode_tenant(tenant_plan.decode_tenant(text)),
}
for line in sys.stdin:
    kind, text, names = json.loads(line)
    try:
        answer = {"text": READ[kind](text, **names)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""
"""Reads a text as the release before does, and writes what it has understood."""


class Before:
    """The release before this one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def reads(self, kind: str, text: str, **names: str) -> str:
        """What it writes after it has read that text; fails where it cannot read it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([kind, text, names]) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            pytest.fail(f"the release before cannot read this {kind}: {answer['error']}\n{text}")
        return answer["text"]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Before]:
    archive, why_not = archive_of(previous_release(), ROOT, paths=["functions"])
    if archive is None:
        pytest.skip(str(why_not))
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    command = [sys.executable, "-c", READER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        yield Before(process)
        process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]  it ends with its input


def without_news(timer: Timer) -> Timer:
    """As the release before takes it."""
    return replace(timer, job=replace(timer.job, **NEWS))


@given(timers())
def test_a_timer_means_the_same_to_both(before: Before, timer: Timer) -> None:
    tenant = timer.job.tenant
    written = encode(timer)

    again = decode_timer(before.reads("timer", written, tenant=tenant), tenant=tenant)

    assert again == without_news(decode_timer(written, tenant=tenant))


@given(st.lists(timers(), min_size=1, max_size=3))
def test_a_message_means_the_same_to_both(before: Before, batch: list[Timer]) -> None:
    written = encode_envelope(batch[:1])

    assert decode_envelope(before.reads("envelope", written)) == [
        without_news(timer) for timer in decode_envelope(written)
    ]


def test_a_fire_of_a_schedule_means_the_same_to_both(before: Before) -> None:
    timer = an_occurrence_timer(a_schedule())
    written = encode(timer)

    again = decode_timer(before.reads("timer", written, tenant=timer.job.tenant), tenant=timer.job.tenant)

    assert again == without_news(decode_timer(written, tenant=timer.job.tenant))


def test_an_alarm_means_the_same_to_both(before: Before) -> None:
    alarm = an_alarm(a_schedule(), rings_at=NOON, link=a_link(index=7, previous_at=NOON, merged_count=3))

    again = before.reads("alarm", encode_alarm(alarm), tenant=alarm.tenant)

    assert decode_alarm(again, tenant=alarm.tenant) == alarm


@given(cursors)
def test_cursors_mean_the_same_to_both(before: Before, found: Cursors) -> None:
    assert decode_cursors(before.reads("cursors", encode_cursors(found))) == found


@pytest.mark.parametrize("schedule", [EVERYTHING, a_schedule()], ids=["everything", "as usual"])
def test_a_definition_of_a_schedule_means_the_same_to_both(before: Before, schedule: Any) -> None:
    names = {"tenant": schedule.tenant, "schedule_id": schedule.schedule_id}

    again = before.reads("schedule", json.dumps(encode_schedule(schedule)), **names)

    assert decode_schedule(again, **names) == schedule


def test_a_tenant_means_the_same_to_both(before: Before) -> None:
    tenant = Tenant(
        plan="gold",
        limits={"weight": 5},
        principals=("*",),
        status=TenantStatus.DRAINING,
        status_since=NOON,
        note="moves",
        version=7,
        changed_at=NOON,
    )

    assert decode_tenant(before.reads("tenant", encode_tenant(tenant))) == tenant
