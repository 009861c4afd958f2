"""The crons of GitHub's workflows."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from tickwheel.imports.cron import parse
from tickwheel.imports.dialects import GITHUB
from tickwheel.imports.documents import line_of, plain, text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, Place
from tickwheel.imports.yaml_documents import read_any

_REMARK = "GitHub may start it many minutes late, or leave it out under load; here it fires on time"


def read_github(file: str, data: bytes) -> Iterator[Found]:
    """The crons of a workflow."""
    for document in read_any(text_of(data)):
        triggers = document.get("on") if isinstance(document, dict) else None
        crons = triggers.get("schedule") if isinstance(triggers, dict) else None
        for number, each in enumerate(crons if isinstance(crons, list) else ()):
            name = PurePath(file).stem if number == 0 else f"{PurePath(file).stem}-{number + 1}"
            yield _entry(Place(file, line_of(each)), name, each, document)


def _entry(place: Place, name: str, each: Any, workflow: Any) -> Found:
    cron = each.get("cron") if isinstance(each, dict) else None
    try:
        expression = parse(str(cron), GITHUB)
        zone = each.get("timezone") or "UTC"
        payload = {"workflow": PurePath(place.file).name, "name": plain(workflow.get("name"))}
    except Unreadable as problem:
        return LeftOut(place=place, name=name, written=str(cron), reason=str(problem))
    # A time that a clock change skips moves to the next valid one:
    # https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#schedule
    rule = OfClock(expression=expression, timezone=str(zone))
    return Entry(place=place, name=name, written=str(cron), rule=rule, payload=payload, remarks=(_REMARK,))
