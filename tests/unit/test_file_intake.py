"""What comes of the lines of a file: each is one job or one refused line, whatever dies in between, and memory is bounded."""

import itertools
import json
from datetime import timedelta
from typing import Any

import pytest

from functions.api.http.problems import Refusals
from functions.api.http.requests import Rules
from functions.api.jobs.file_intake import FileIntake
from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.jobs.job import Job, Priority
from functions.domain.jobs.submission_files import (
    GIVE_UP_AFTER,
    MOST_BYTES_OF_A_LINE,
    MOST_LINES,
    PART_BYTES,
    LineTooLong,
    first_lines,
    place_of,
)
from functions.domain.tenants.plan import TenantPlan
from testkit.builders import NOON
from testkit.fakes.submission_files import InMemorySubmissionFiles
from testkit.scheduler import World

ECHO = {"target": "handler:echo"}
ALLOWED = timedelta(seconds=24)


class Died(Exception):
    pass


class Filing:
    """Files, and the turns that read them."""

    def __init__(self) -> None:
        self.world = World()
        self.files = InMemorySubmissionFiles(self.world.clock)

    def intake(self) -> FileIntake:
        special = {
            "files": self.files,
            "refusals": self.world.build(Refusals),
            "rules": lambda: Rules(
                now=self.world.clock.now(), allow_plain_http=False, max_timeout=timedelta(seconds=50)
            ),
        }
        return self.world.build(FileIntake, special=special)

    def put(self, *lines: Any, name: str = "jobs.jsonl", tenant: str = "acme") -> None:
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        self.files.put(name, b"\n".join(texts), tenant=tenant)

    def turn(self) -> None:
        """The next turn, when it is due; one that dies comes again."""
        at, file = self.files.turns[0]
        self.world.clock.instant = max(self.world.clock.instant, at)
        try:
            self.intake().take(file, time_left=ALLOWED)
        except Died:
            self.world.clock.tick(timedelta(minutes=3))
            return
        self.files.turns.pop(0)

    def finish(self, *, most: int = 2_000) -> int:
        for turns in range(most):
            if not self.files.turns:
                return turns
            self.turn()
        raise AssertionError(f"not done after {most} turns")

    def progress(self, name: str = "jobs.jsonl") -> dict[str, Any]:
        return self.files.kept[f"results/acme/{name}"]

    def placed(self) -> list[Job]:
        near = [timer for message in self.world.ready.messages.values() for timer in decode_envelope(message.body)]
        far = [timer for put in self.world.timers.puts for timer in put]
        return [timer.job for timer in (*near, *far)]

    def jobs(self) -> set[str]:
        return {job.identity for job in self.placed()}

    def refused(self) -> list[tuple[int, str]]:
        lines = [line for _, part in sorted(self.files.refused.items()) for line in part]
        return [(line["line"], line["problem"]["code"]) for line in lines]


@pytest.fixture
def filing() -> Filing:
    return Filing()


def test_each_line_is_a_job_of_the_tenant_of_its_folder(filing: Filing) -> None:
    filing.put(*({**ECHO, "payload": number} for number in range(1_200)))

    filing.finish()

    assert len(filing.jobs()) == 1_200
    assert {job.tenant for job in filing.placed()} == {"acme"}
    progress = filing.progress()
    assert (progress["state"], progress["lines"], progress["accepted"], progress["refused"]) == (
        "done",
        1_200,
        1_200,
        0,
    )
    assert progress["offset"] == progress["size"]


def test_refused_lines_are_kept_with_their_numbers_problems_and_texts_and_the_others_come_in(filing: Filing) -> None:
    lines = [ECHO, b"hello", b"", {**ECHO, "tenant": "globex"}, b"\xff", ECHO, b"[" * 10_000, b"[]"]
    filing.put(*lines, b'{"target": "' + b"x" * MOST_BYTES_OF_A_LINE + b'"}')

    filing.finish()

    assert filing.refused() == [
        (2, "invalid_input"),
        (4, "forbidden"),
        (5, "invalid_input"),
        (7, "invalid_input"),
        (8, "invalid_job"),
        (9, "invalid_input"),
    ]
    assert len(filing.jobs()) == 2
    (part,) = filing.files.refused.values()
    assert part[0]["job"] == "hello"
    progress = filing.progress()
    assert (progress["lines"], progress["accepted"], progress["refused"]) == (9, 2, 6)


def test_a_file_that_is_announced_twice_or_put_unchanged_makes_no_second_job(filing: Filing) -> None:
    filing.put(*[{**ECHO, "payload": 1}] * 3)
    filing.files.turns *= 2
    filing.finish()
    filing.put(*[{**ECHO, "payload": 1}] * 3)
    filing.finish()

    assert len(filing.jobs()) == 3


def test_a_file_of_another_name_or_content_is_another(filing: Filing) -> None:
    filing.put(ECHO)
    filing.put(ECHO, name="more/jobs.jsonl")
    filing.finish()
    filing.put(ECHO, ECHO)
    filing.finish()

    assert len(filing.jobs()) == 4


@pytest.mark.parametrize("dies_at", range(1, 14))
def test_a_turn_that_dies_at_any_write_loses_no_line_and_doubles_none(filing: Filing, dies_at: int) -> None:
    filing.world.plans.plans = {"acme": TenantPlan(submission_rate=40, submission_burst=300)}
    filing.put(*({**ECHO, "payload": number} if number % 100 else b"bad" for number in range(1_100)))
    writes = itertools.count(1)

    def fails() -> None:
        if next(writes) == dies_at:
            raise Died

    filing.files.fails = fails

    filing.finish()

    assert len(filing.jobs()) == 1_089
    assert filing.refused() == [(number, "invalid_input") for number in range(1, 1_101, 100)]
    progress = filing.progress()
    assert (progress["state"], progress["lines"]) == ("done", 1_100)
    assert progress["refused"] == 11


def test_a_tenant_s_rate_holds_for_its_file_which_goes_on_when_it_may(filing: Filing) -> None:
    filing.world.plans.plans = {"acme": TenantPlan(submission_rate=10, submission_burst=10)}
    filing.put(*({**ECHO, "payload": number} for number in range(1_000)))

    filing.finish()

    assert len(filing.jobs()) == len(filing.placed()) == 1_000
    assert filing.refused() == []
    assert timedelta(seconds=99) <= filing.world.clock.instant - NOON < timedelta(seconds=250)


def test_lines_that_may_not_come_in_for_a_week_are_refused_and_those_behind_them_have_their_turn(
    filing: Filing,
) -> None:
    filing.world.plans.plans = {"acme": TenantPlan(max_pending=1)}
    filing.put(*[{**ECHO, "delay": 30 * 86_400}] * 3)

    filing.finish()

    assert filing.refused() == [(2, "quota_exceeded"), (3, "quota_exceeded")]
    assert filing.world.clock.instant - NOON >= GIVE_UP_AFTER
    assert filing.progress()["accepted"] == 1


def test_the_delay_of_a_line_counts_from_when_its_file_was_put(filing: Filing) -> None:
    filing.put({**ECHO, "delay": 7_200})
    filing.world.clock.tick(timedelta(hours=1))

    filing.finish()

    assert [job.scheduled_at for job in filing.placed()] == [NOON + timedelta(hours=2)]


def test_a_file_that_is_deleted_or_replaced_is_read_no_further(filing: Filing) -> None:
    filing.put(*[ECHO] * 3)
    filing.files.contents.clear()

    filing.finish()

    assert filing.jobs() == set()
    assert [line["state"] for line in filing.world.events("file_ended")] == ["gone"]


def test_a_line_without_an_end_fails_its_file_where_it_stands_and_keeps_what_came_in(filing: Filing) -> None:
    filing.put(ECHO, b"x" * (PART_BYTES + 1))

    filing.finish()

    progress = filing.progress()
    assert (progress["state"], progress["accepted"]) == ("failed", 1)
    assert progress["error"].startswith("line 2 has more than")


def test_an_empty_file_is_done(filing: Filing) -> None:
    filing.put(b"")
    filing.finish()
    assert filing.progress()["state"] == "done"


def test_what_is_refused_for_a_class_of_the_plan_does_not_hold_up_the_others(filing: Filing) -> None:
    filing.world.plans.plans = {"acme": TenantPlan(top_priority=Priority.NORMAL)}
    filing.put(ECHO, {**ECHO, "priority": "high"}, ECHO)
    filing.finish()
    assert filing.refused() == [(2, "priority_not_allowed")]
    assert len(filing.jobs()) == 2


def test_parts_are_whole_lines_and_bounded() -> None:
    assert first_lines(b"a\nb\nc", is_end=False) == ([b"a", b"b"], 4)
    assert first_lines(b"a\nb\nc", is_end=True) == ([b"a", b"b", b"c"], 5)
    assert first_lines(b"a\n", is_end=True) == ([b"a"], 2)
    assert first_lines(b"x\n" * 1_000, is_end=False) == ([b"x"] * MOST_LINES, 2 * MOST_LINES)
    with pytest.raises(LineTooLong):
        first_lines(b"a", is_end=False)


@pytest.mark.parametrize(
    "key", ["submissions/acme/x.json", "submissions/x.jsonl", "results/acme/x.jsonl", "submissions/a b/x.jsonl", ""]
)
def test_a_key_that_is_no_place_of_jobs_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="is no file of jobs"):
        place_of(key)
    assert place_of("submissions/acme/2026/x.jsonl") == ("acme", "2026/x.jsonl")


def test_a_turn_that_is_delivered_again_behind_later_ones_reads_nothing(filing: Filing) -> None:
    filing.world.plans.plans = {"acme": TenantPlan(submission_rate=1, submission_burst=1)}
    filing.put(*({**ECHO, "payload": number} for number in range(100)))
    first = filing.files.turns[0]
    for _ in range(3):
        filing.turn()
    reads = filing.files.reads

    filing.files.turns.insert(0, first)
    filing.turn()

    assert filing.files.reads == reads
    filing.finish()
    assert len(filing.jobs()) == 100
