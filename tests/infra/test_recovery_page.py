"""docs/job-lifecycle.md says how soon the job of a dead worker runs again, by the constants of each stage."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from bench.budgets import RECOVERY
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.worker.keeper import FIRST_AFTER, HIDDEN_FOR
from infra.stage import STAGES, Stage
from tests.pages import read_page, values

PAGE = read_page("job-lifecycle.md")
COLUMNS = {"local": 0, "small": 1, "dev": 1, "prod": 2, "scale": 2}
ROWS = {timeout: cells for timeout, *cells in values(PAGE, "| timeout of the job |")}
TIMEOUTS = {int(found[0]): row for row in ROWS if (found := re.findall(r"(\d+) s", row))}
STARTED_WITHIN = 5 * SECOND
"""What the page keeps of the promise for the poll and the start of a worker."""


def longest_wait(stage: Stage, timeout: timedelta) -> timedelta:
    """From the death of a worker that has hidden its messages once, or more often, until message and attempt are free."""
    return max(HIDDEN_FOR, timeout + LEASE_MARGIN + stage.wheel.lease_skew - FIRST_AFTER)


def shown(stage: Stage, row: str) -> str:
    return ROWS[row][COLUMNS[stage.name]]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_job_whose_timeout_is_a_minute_at_most_runs_again_in_time_on_every_stage(stage: Stage):
    longest = min(60 * SECOND, stage.longest_attempt)

    assert longest_wait(stage, longest) + STARTED_WITHIN <= RECOVERY


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_page_says_how_long_a_job_of_each_timeout_waits(stage: Stage):
    assert set(TIMEOUTS) == {20, 30, 50, 60, 110}
    for seconds, row in TIMEOUTS.items():
        timeout = seconds * SECOND
        expected = f"{longest_wait(stage, timeout) // SECOND} s" if timeout <= stage.longest_attempt else ""
        assert shown(stage, row) == expected, row


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_page_says_how_long_a_message_is_hidden_that_nobody_hides_again(stage: Stage):
    untracked, early = (next(row for row in ROWS if text in row) for text in ("at_least_once", "in its first second"))

    assert shown(stage, untracked) == f"{HIDDEN_FOR // SECOND} s"
    assert shown(stage, early) == f"{stage.visibility // SECOND} s"


def test_the_page_says_what_is_promised():
    assert f"runs again within {RECOVERY // SECOND} s on every stage" in PAGE
    assert f"for which {STARTED_WITHIN // SECOND} s of the {RECOVERY // SECOND} are kept" in PAGE
