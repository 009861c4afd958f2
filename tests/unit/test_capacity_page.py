"""docs/capacity.md: its tables are what the command writes, and its sentences what code and models say."""

import json
import re
import shlex
from functools import partial

import pytest

from bench.capacity_page import PAGE, RATES, REGION, written
from bench.cost import HOURS
from bench.cost_inputs import read_measured
from bench.cost_terms import Assumed
from bench.prices import read_prices_of_one
from functions.services.telemetry.usage import ENOUGH_JOBS
from infra.api import GATEWAY_ROUTES
from infra.capacity import CONCURRENCY, JOBS_A_REQUEST, STREAM_BYTES, STREAM_REQUESTS
from infra.queue_sources import BATCH_SIZE
from infra.stage import PRIORITIES, Stage
from infra.throughput import INVOCATIONS_OF_A_POLLER, MESSAGES_OF_A_POLLER
from tests import command_line

TEXT = PAGE.read_text()
SCALE = Stage.named("scale")

run = partial(command_line.run, columns=120)


def test_the_tables_are_what_the_command_writes() -> None:
    assert written(TEXT) == TEXT


def test_an_hour_is_a_month_of_the_cost_command_by_its_hours() -> None:
    (command,) = re.findall(r"^tickwheel (cost [^#]*)#", TEXT, re.MULTILINE)
    arguments = shlex.split(command)
    assert arguments[arguments.index("--jobs-per-day") + 1] == str(RATES[0] * 86_400)

    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| {RATES[0]:,} submissions")]
    assert row.endswith(f"| {json.loads(result.stdout)['tickwheel']['usd'] / HOURS:,.2f} |")


def test_every_column_adds_up_to_its_total() -> None:
    rows = [line for line in TEXT.splitlines() if re.match(r"\| (`scale`, idle|[\d,]+ submissions|and )", line)]
    assert len(rows) == 7
    for row in rows:
        *parts, total = [float(cell.replace(",", "")) for cell in row.strip("|").split("|")[1:]]
        assert sum(parts) == pytest.approx(total, abs=0.04), row


def test_pollers_are_those_of_the_stage() -> None:
    pollers = [each for each in SCALE.pollers if each]
    least, normal = sum(each.minimum for each in pollers), SCALE.pollers[PRIORITIES.index("normal")]
    assert normal is not None
    idle = least * read_prices_of_one()["poller_hour"]

    assert f"keeps {least} of them, for {least * MESSAGES_OF_A_POLLER:,} messages a second at once" in TEXT
    assert f"`normal` may have {normal.maximum:,}: {normal.maximum * MESSAGES_OF_A_POLLER:,} a second" in TEXT
    assert f"`normal` reaches {normal.maximum * INVOCATIONS_OF_A_POLLER * BATCH_SIZE:,} with all" in TEXT
    assert f"An idle hour is nearly all pollers: {idle:.2f} USD" in TEXT


def test_the_api_is_what_its_requests_take() -> None:
    assumed, requests = Assumed(), RATES[1] // JOBS_A_REQUEST
    busy = requests * (assumed.request_s + JOBS_A_REQUEST * assumed.submission_s)

    assert f"{requests:,} requests a second are {busy:.0f} more" in TEXT


def test_the_audit_trail_reaches_its_quota_where_the_page_says() -> None:
    line = read_measured().audit_line

    def executions(region: str) -> int:
        return int(min(STREAM_BYTES.default_in(region) * 2**20 / line, STREAM_REQUESTS.default_in(region) * BATCH_SIZE))

    assert f"us-east-1, us-west-2 and eu-west-1, {executions(REGION):,} executions a second" in TEXT
    assert f"so {executions('eu-central-1'):,} executions, elsewhere" in TEXT
    logged = RATES[1] * line * 3_600 / 1e9 * read_prices_of_one()["log_gb"]
    assert f"all lines of {RATES[1]:,} executions a second are {logged:.0f} USD an hour" in TEXT


def test_numbers_of_the_code_are_its_own() -> None:
    assert f"A stage has {len(GATEWAY_ROUTES) + 1} routes" in TEXT
    assert f"a count is written for {ENOUGH_JOBS} jobs" in TEXT
    assert f"on {SCALE.wheel.write_shards} keys" in TEXT
    assert f"Above {SCALE.warm_throughput['tenants'].writes // 2:,} jobs a second" in TEXT
    assert f"`{CONCURRENCY.code}`" in TEXT
