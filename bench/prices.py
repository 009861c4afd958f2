"""What units cost: the numbers of prices.toml, each with its source and date there."""

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bench.budgets import Units

_FILE = Path(__file__).with_name("prices.toml")
_MILLION = 1_000_000


def read_prices() -> Mapping[str, float]:
    """USD per million, by unit. Raises ValueError for a price that does not say where and when it was found."""
    return {unit: usd * _MILLION for unit, usd in read_prices_of_one().items()}


def read_prices_of_one() -> Mapping[str, float]:
    """USD, by unit. Raises ValueError for a price that does not say where and when it was found."""
    written: dict[str, dict[str, Any]] = tomllib.loads(_FILE.read_text())
    for unit, price in written.items():
        if not price.get("source") or not isinstance(price.get("date"), date):
            raise ValueError(f"{_FILE.name}: the price of a {unit} has no source or no date")
    return {
        unit: float(price["usd"]) if "usd" in price else float(price["per_million"]) / _MILLION
        for unit, price in written.items()
    }


def price_of_a_million(units: Units, prices: Mapping[str, float]) -> float:
    """USD for a million jobs of so many units each: DynamoDB's requests and SQS's, all of messages with a group id; nothing else."""
    return (
        units.writes * prices["dynamodb_write_unit"]
        + units.reads * prices["dynamodb_read_unit"]
        + units.sqs_requests * (prices["sqs_request"] + prices["sqs_fair_request"])
    )
