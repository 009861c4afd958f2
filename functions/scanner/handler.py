"""Scans one shard: the target of the scanner's rules, each minute. Rewinds all of them, when an operator asks for it."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.domain.errors import InvalidInput
from functions.domain.far_ring.send_times import patience_of
from functions.domain.instants import parse_instant
from functions.domain.jobs.job import Priority
from functions.runtime.entry_point import entry_point, time_left
from functions.runtime.settings import ScannerSettings
from functions.runtime.wiring import Wiring
from functions.scanner.fair_scan import FairScan
from functions.scanner.parts import PARTS
from functions.scanner.promote import Promoter
from functions.scanner.rewind import Rewinder
from functions.scanner.scan import Scanner
from functions.scanner.warm import Warmer

settings = ScannerSettings.from_environment()
wiring = Wiring(settings, parts=PARTS)
wiring.confirm()
warmer = wiring.build(Warmer, most=dict(zip(Priority, settings.WARM_MESSAGES, strict=False)))
promoter = wiring.build(Promoter, ready=wiring.promoted, warmer=warmer)
scanner = wiring.build(
    Scanner,
    fair_scan=wiring.build(FairScan, promoter=promoter),
    patience=patience_of(wiring.wheel.scan_shards),
)
rewinder = wiring.build(Rewinder)


@entry_point(wiring)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function; the rule's target gives `{"shard": n}`, an operator `{"rewind_to": instant}`."""
    if "rewind_to" in event:
        return _rewind(event["rewind_to"])
    return scanner.scan(event["shard"], time_limit=time_left(context)).summary


def _rewind(to: str) -> dict[str, Any]:
    try:
        return asdict(rewinder.rewind(parse_instant(to)))
    except InvalidInput as error:
        # For whoever asked: raised, it would be an error of the function, and its text would be hidden.
        return {"refused": str(error)}


startup.is_over()
