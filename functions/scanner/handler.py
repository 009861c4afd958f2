"""Scans one shard: the target of the scanner's rules, each minute. Rewinds all of them, when an operator asks for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.domain.errors import InvalidInput
from functions.domain.instants import parse_instant
from functions.runtime.observability import logger
from functions.runtime.settings import ScannerSettings
from functions.runtime.uncaught import without_texts
from functions.runtime.wiring import Wiring
from functions.scanner.fair_scan import FairScan
from functions.scanner.parts import PARTS
from functions.scanner.promote import Promoter
from functions.scanner.rewind import Rewinder
from functions.scanner.scan import Scanner

wiring = Wiring(ScannerSettings.from_environment(), parts=PARTS)
wiring.confirm()
promoter = wiring.build(Promoter, ready=wiring.promoted)
scanner = wiring.build(Scanner, fair_scan=wiring.build(FairScan, promoter=promoter))
rewinder = wiring.build(Rewinder)


@logger.inject_lambda_context
@without_texts
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function; the rule's target gives `{"shard": n}`, an operator `{"rewind_to": instant}`."""
    try:
        if "rewind_to" in event:
            return _rewind(event["rewind_to"])
        time_limit = timedelta(milliseconds=context.get_remaining_time_in_millis())
        return scanner.scan(event["shard"], time_limit=time_limit).summary
    finally:
        wiring.flush()


def _rewind(to: str) -> dict[str, Any]:
    try:
        rewound = rewinder.rewind(parse_instant(to))
    except InvalidInput as error:
        # For whoever asked: raised, it would be an error of the function, and its text would be hidden.
        return {"refused": str(error)}
    return {"rewound": rewound.rewound, "left": rewound.left}
