"""What stored bytes mean to a release, in words that do not depend on how it writes them down.

A release reads rows and messages in a process of its own, from its own source; what it has understood is spelled out field
by field, enums by the names of their members, and can be compared with what another release understands.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_READER = """
import base64, dataclasses, enum, importlib, importlib.abc, importlib.util, json, os, sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

folder = sys.argv[1]
sys.path.insert(0, folder)
OTHERWISE = {}

class Otherwise(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    # Modules whose source is another than that of the file.
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name in OTHERWISE else None
    def get_source(self, name):
        return OTHERWISE[name]

sys.meta_path.insert(0, Otherwise())

# What the release before calls them: today's names say what is meant.
RENAMED = {"Action": "OperationKind", "Part": "DeletionStage", "rings_at": "alarm_at", "unrung": "unhandled", "is_held": "is_held_back"}

def spelled(value):
    if isinstance(value, enum.Enum):
        return f"{RENAMED.get(type(value).__name__, type(value).__name__)}.{value.name}"
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return spelled({RENAMED.get(name, name): item for name, item in fields.items()})
    if hasattr(value, "_asdict"):
        return spelled({RENAMED.get(name, name): item for name, item in value._asdict().items()})
    if isinstance(value, Mapping):
        spelled_out = {str(spelled(name)): spelled(item) for name, item in value.items()}
        return {name: item for name, item in spelled_out.items() if item not in (None, "", [], {})}
    if isinstance(value, (set, frozenset)):
        return sorted(spelled(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [spelled(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value

def module(package, names):
    # Where this release has it, or else where the one before had.
    *others, last = (f"functions.{package}.{name}" for name in names)
    for name in others:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
    return importlib.import_module(last)

def domain(*names):
    return module("domain", names)

def adapter(*names):
    return module("adapters", names)

def reader(names, *modules):
    # The function of an adapter, by the name that this release has for it, or the one before had.
    found = adapter(*modules)
    return next(getattr(found, name) for name in names if hasattr(found, name))

def operation(texts):
    record = domain("operations.record", "operation_record").OperationRecord(*texts)
    return domain("operations.record", "operation_record").decode_operation(record, tenant="acme", operation_id="o1")

def left_open(text):
    # What a definition means where it says nothing, decided by its rule.
    schedule = READ["definition"](text)
    gap, fold = domain("schedules.nominal_times", "nominals").clock_policy(schedule)
    return {"outside its windows": schedule.mode, "gap": gap, "fold": fold}

def dead_letter_id(text):
    found = domain("dead_letters.dead_letter_id", "letter_id")
    return (getattr(found, "parse_dead_letter_id", None) or found.parse_letter_id)(text)

def as_read(kind, stored):
    # A row as its adapter is given it: in plain values, or as DynamoDB gives it in the release before.
    if not kind.endswith(" row"):
        return stored
    item = {name: {"B": base64.b64decode(value["B"])} if "B" in value else value for name, value in stored.items()}
    try:
        return importlib.import_module("functions.adapters.dynamodb.table").plain(item)
    except ModuleNotFoundError:
        return item

READ = {
    "timer": lambda text: domain("far_ring.timer_record", "envelope").decode_timer(text, tenant="acme"),
    "alarm": lambda text: domain("far_ring.timer_record", "envelope").decode_alarm(text, tenant="acme"),
    "message": lambda text: domain("far_ring.timer_record", "envelope").decode_envelope(text),
    "definition": lambda text: domain("schedules.record", "schedule_record").decode_schedule(text, tenant="acme", schedule_id="nightly"),
    "what a definition leaves open": left_open,
    "cursors": lambda text: domain("far_ring.cursor", "cursor").decode_cursors(text),
    "tenant": lambda text: domain("tenants.plan", "tenant_plan").decode_tenant(text),
    "operation": operation,
    "conditions": lambda text: domain("stage.conditions", "conditions").decode_conditions(text),
    "deletion": lambda text: domain("tenants.deletion", "deletion").decode_deletion(text, tenant="acme"),
    "job id": lambda text: domain("jobs.job_id", "job_id").parse_job_id(text),
    "dead letter id": lambda text: dead_letter_id(text),
    "webhook keys": lambda text: domain("targets.webhooks", "webhooks").parse_master_keys(text),
    "timers row": lambda item: adapter("dynamodb.timers", "dynamodb_timers")._read(item),
    "ledger row": lambda item: reader(("read_row", "_read"), "dynamodb.ledger_row", "dynamodb_ledger")(item),
    "schedules row": lambda item: reader(("read_definition", "_read_definition"), "dynamodb.schedule_rows", "dynamodb_schedules")(item),
    "schedule_state row": lambda item: reader(("read_state", "_read_state"), "dynamodb.schedule_rows", "dynamodb_schedules")(item),
    "schedule sum row": lambda item: reader(("read_sum", "_read_sum"), "dynamodb.schedule_rows", "dynamodb_schedules")(item),
    "dead_letters row": lambda item: adapter("dynamodb.dead_letters", "dynamodb_dead_letters")._read(item),
    "breaker row": lambda item: adapter("dynamodb.breakers", "dynamodb_breakers")._read(item),
    "operation row": lambda item: adapter("dynamodb.operations", "dynamodb_operations")._read(item),
    "deletion row": lambda item: adapter("dynamodb.deletions", "dynamodb_deletions")._read(item),
    "day mark row": lambda item: adapter("dynamodb.day_marks", "dynamodb_day_marks")._read(item),
    "rate row": lambda item: adapter("dynamodb.rates", "dynamodb_rates")._timetable(item),
    "pulse row": lambda item: adapter("dynamodb.pulses", "dynamodb_pulses")._pulse_of(item),
    "usage row": lambda item: adapter("dynamodb.usage", "dynamodb_usage")._usage_of(item),
    "shard row": lambda item: reader(("_progress_of", "_standing_of"), "dynamodb.shards", "dynamodb_shards")(item),
}

def schedule_text(schedule):
    record = domain("schedules.record", "schedule_record")
    # The release before had one way of writing.
    return json.dumps(getattr(record, "encode_stored", record.encode_schedule)(schedule))

WRITE = {
    "timer": lambda timer: domain("far_ring.timer_record", "envelope").encode_timer(timer),
    "alarm": lambda alarm: domain("far_ring.timer_record", "envelope").encode_alarm(alarm),
    "message": lambda timers: domain("far_ring.timer_record", "envelope").encode_envelope(timers),
    "definition": schedule_text,
    "cursors": lambda cursors: domain("far_ring.cursor", "cursor").encode_cursors(cursors),
    "tenant": lambda tenant: domain("tenants.plan", "tenant_plan").encode_tenant(tenant),
}

for line in sys.stdin:
    asked = json.loads(line)
    if "sources" in asked:
        for name in [name for name in sys.modules if name.partition(".")[0] == "functions"]:
            del sys.modules[name]
        OTHERWISE.clear()
        OTHERWISE.update(asked["sources"])
        answer = {}
    else:
        try:
            understood = READ[asked["kind"]](as_read(asked["kind"], asked["bytes"]))
            answer = {"written": WRITE[asked["kind"]](understood)} if asked.get("again") else {"means": spelled(understood)}
        except Exception as error:
            answer = {"means": f"{type(error).__name__}: {error}", "written": ""}
    print(json.dumps(answer), flush=True)
"""


class Release:
    """A release that reads."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def meaning(self, kind: str, stored: Any) -> Any:
        """What stored bytes say, field by field; the error as text where it cannot read them."""
        return self._ask({"kind": kind, "bytes": stored})["means"]

    def written_again(self, kind: str, stored: str) -> str:
        """What it writes after it has read that; empty where it cannot."""
        return self._ask({"kind": kind, "bytes": stored, "again": True})["written"]

    def becomes(self, sources: Mapping[str, str]) -> None:
        """Go on with another source of some modules, by their names: what a change of the code would make of it."""
        self._ask({"sources": dict(sources)})

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def release_in(folder: Path) -> Iterator[Release]:
    """The release whose `functions` are in a folder."""
    command = [sys.executable, "-W", "ignore", "-c", _READER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        yield Release(process)
        assert process.stdin is not None
        process.stdin.close()  # it ends with its input
