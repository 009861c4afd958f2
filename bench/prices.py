"""What units cost, and which of them are free: the numbers of prices.toml and free_tiers.toml, each with its source and date there."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.budgets import Units

_FILE = Path(__file__).with_name("prices.toml")
_FREE = Path(__file__).with_name("free_tiers.toml")
_MILLION = 1_000_000
_HOUR = 3_600


@dataclass(frozen=True, kw_only=True)
class FreeTier:
    """So many units a month that cost an account nothing. of: the units that share them, the first of them first."""

    name: str
    of: tuple[str, ...]
    a_month: float
    page: str


def read_prices() -> Mapping[str, float]:
    """USD per million, by unit. Raises ValueError for a price that does not say where and when it was found."""
    return {unit: usd * _MILLION for unit, usd in read_prices_of_one().items()}


def read_prices_of_one() -> Mapping[str, float]:
    """USD, by unit. Raises ValueError for a price that does not say where and when it was found."""
    return {
        unit: float(price["usd"]) if "usd" in price else float(price["per_million"]) / _MILLION
        for unit, price in _read(_FILE).items()
    }


def read_free_tiers() -> Sequence[FreeTier]:
    """What AWS does not bill. Raises ValueError for one that does not say where and when it was found."""
    return [
        FreeTier(name=name, of=tuple(tier["of"]), a_month=float(tier["a_month"]), page=tier["source"])
        for name, tier in _read(_FREE).items()
    ]


def provisioned(prices: Mapping[str, float], *, used: float) -> Mapping[str, float]:
    """The prices with DynamoDB's units as those of provisioned capacity, of which that share is used, on average."""
    hours = {"dynamodb_write_unit": "write_capacity_hour", "dynamodb_read_unit": "read_capacity_hour"}
    return {**prices, **{unit: prices[hour] / _HOUR / used for unit, hour in hours.items()}}


def price_of_a_million(units: Units, prices: Mapping[str, float]) -> float:
    """USD for a million jobs of so many units each: DynamoDB's requests and SQS's, all of messages with a group id; nothing else."""
    return (
        units.writes * prices["dynamodb_write_unit"]
        + units.reads * prices["dynamodb_read_unit"]
        + units.sqs_requests * (prices["sqs_request"] + prices["sqs_fair_request"])
    )


def _read(file: Path) -> Mapping[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = tomllib.loads(file.read_text())
    for name, figures in written.items():
        if not figures.get("source") or not isinstance(figures.get("date"), date):
            raise ValueError(f"{file.name}: {name} has no source or no date")
    return written
