"""Audits buckets that have ended, and heals chains of schedules: the target of the sweeper's rule, each minute."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.runtime.entry_point import entry_point, time_left
from functions.runtime.settings import SweeperSettings
from functions.runtime.wiring import Wiring
from functions.sweeper.collections import CollectionOpener
from functions.sweeper.heal import Healer
from functions.sweeper.publish import Publisher
from functions.sweeper.rooms import RoomOpener
from functions.sweeper.sweep import Sweeper

settings = SweeperSettings.from_environment()
wiring = Wiring(settings)
wiring.confirm()
sweeper = wiring.build(Sweeper, sample=settings.AUDIT_SAMPLE)
healer = wiring.build(Healer)
room_opener = wiring.build(RoomOpener)
collection_opener = wiring.build(CollectionOpener)
publisher = wiring.build(Publisher, shed_after=timedelta(seconds=settings.SHED_AFTER_SECONDS))


@entry_point(wiring)
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function."""
    # None of them keeps another from its work: the healer and the audit have half of the time each.
    try:
        publisher.publish()
    finally:
        room_opener.sweep()
        collection_opener.sweep()
        try:
            healed = healer.heal(time_limit=time_left(context) / 2)
        finally:
            report = sweeper.sweep(time_limit=time_left(context))
    return {
        "audited": report.audited,
        "stragglers": report.stragglers,
        "waits_for": list(report.waits_for),
        "waits_for_queues": report.waits_for_queues,
        "healed": healed.healed,
    }


startup.is_over()
