"""The figures of README.md, as the results of the benchmarks and `tickwheel cost` have them; `python -m bench.cost_page` writes them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.cost_inputs import model_of
from bench.cost_terms import Assumed, Workload
from bench.prices import read_prices_of_one
from bench.results import FOLDER
from infra.stage import Stage

PAGE = Path(__file__).resolve().parent.parent / "README.md"

_HOURS = 720
_LAGS = {
    "lag, default precision, near": "near-default",
    "lag, `exact`, near": "near-exact",
    "lag, default precision, far": "far-default",
    "lag, `exact`, far": "far-exact",
}
_PATHS = {
    "near, `at_least_once`": ("paths", "near, at_least_once"),
    "near, `exactly_once`": ("paths", "near, exactly_once"),
    "far, `at_least_once`": ("paths", "far, at_least_once"),
    "far, `exactly_once`": ("paths", "far, exactly_once"),
    "far, `exactly_once`, with an idempotency key": ("paths", "far, exactly_once, keyed"),
    "a fire of a schedule": ("occurrences", "allow"),
    "a fire of a schedule with `forbid`": ("occurrences", "forbid"),
}


def written(page: str) -> str:
    """The page as it should be."""
    lag, units, promotion, fires = (_read(name) for name in ("lag", "units", "promotion", "schedules"))
    found = fires["next_fires_a_cpu_second"]
    idle = model_of(Stage.named("dev"), Assumed()).bill(Workload(jobs_a_day=0)).usd / _HOURS
    prices = read_prices_of_one()
    sentences = {
        **{rf"^\| {re.escape(name)} \|.*$": _lag(name, lag["groups"][group]) for name, group in _LAGS.items()},
        **{rf"^\| {re.escape(name)} \|.*$": _units(name, units[part][path]) for name, (part, path) in _PATHS.items()},
        r"costs [0-9.]+ USD on `dev`": f"costs {idle:.3f} USD on `dev`",
        r"the API is [0-9.]+ USD a million requests": (
            f"the API is {(prices['http_api_request'] + prices['lambda_request']) * 1e6:.2f} USD a million requests"
        ),
        r"[0-9.]+ USD a million ticks": f"{units['idle_tick_of_a_shard']['usd_a_million']:.2f} USD a million ticks",
        r"for [0-9,]+ jobs, without the network": f"for {promotion['jobs_a_cpu_second']:,} jobs, without the network",
        r"finds [0-9,]+ next fires of crons, [0-9,]+ of\nintervals, [0-9,]+ of Poisson schedules and [0-9,]+ of RRULEs": (
            f"finds {found['cron']:,} next fires of crons, {found['every']:,} of\nintervals, {found['poisson']:,} of Poisson "
            f"schedules and {found['rrule']:,} of RRULEs"
        ),
    }
    for pattern, sentence in sentences.items():
        page, count = re.subn(pattern, lambda _, sentence=sentence: sentence, page, flags=re.MULTILINE)
        assert count == 1, f"README.md says {count} times: {pattern}"
    return page


def _lag(name: str, group: Mapping[str, Any]) -> str:
    return f"| {name} | {group['lag_ms']['p50']:,.0f} ms | {group['lag_ms']['p99']:,.0f} ms |"


def _units(name: str, used: Mapping[str, Any]) -> str:
    return f"| {name} | {used['writes']:g} | {used['reads']:.3g} | {used['usd_a_million']:.2f} USD |"


def _read(name: str) -> Mapping[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())
