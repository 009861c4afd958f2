"""What the infrastructure knows of the functions: what is listed here, and nothing else.

The contract of the linter says what it must never reach, through whatever stands between. This list says what it imports
itself: a stage is described by the same words as what runs in it, and by no code that runs there.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

IMPORTED: Mapping[str, str] = {
    "functions": "the name and the folder of the package, which are others in a wheel",
    "functions.adapters.dynamodb.tables": "the key schemas of all tables",
    "functions.api.http.requests": "what a stage takes as a job, for the templates of event rules",
    "functions.api.http.route": "the shape of a route",
    "functions.api.jobs.bodies": "what a job is, for the templates of event rules",
    "functions.api.openapi": "the description of the API, which goes into the package",
    "functions.api.route_table": "the routes of the gateway",
    "functions.api.schedules.bodies": "what a schedule is, for those of users' stacks",
    "functions.domain.audit": "the columns of the audit trail",
    "functions.domain.errors": "what the rules below refuse a stage with",
    "functions.domain.far_ring.warming": "how many messages go before a herd",
    "functions.domain.instants": "the units of time",
    "functions.domain.jobs.claims": "how long messages live, leases last and held rows wait",
    "functions.domain.jobs.job": "the names of the priorities",
    "functions.domain.schedules.schedule": "the rules of a schedule's id and of its fields together",
    "functions.domain.jobs.results": "how long large results are kept",
    "functions.domain.jobs.submission_files": "where files of jobs are put, and how long they are kept",
    "functions.domain.jobs.submission_queues": "the names of submission queues, and how long their messages live",
    "functions.domain.metrics": "the names of what functions emit",
    "functions.domain.targets.addresses": "what an allowed network is",
    "functions.domain.targets.handler_names": "the handlers of every stage, and where a function finds the names of others",
    "functions.domain.targets.kinds": "the services that are called, with the ARNs that a worker is granted",
    "functions.domain.targets.targets": "what a pattern of targets is",
    "functions.domain.targets.webhooks": "the name of a secret that the first function makes that needs it",
    "functions.domain.tenants.attempts": "the usual objective",
    "functions.domain.tenants.access": "what a pattern of operators is",
    "functions.domain.tenants.plan": "what limits a plan may have",
    "functions.domain.wheel": "the constants of the wheel, and their sums",
}
"""Modules, each with what it is imported for. Whoever adds one says why, or finds a way without it."""


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, also those that it imports late."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(package), names=names):
                yield from (
                    f"{package}.{each.name}" if is_module(f"{package}.{each.name}") else package for each in names
                )
            case _:
                pass


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_the_infrastructure_imports_of_the_functions_what_is_listed() -> None:
    found = {name for file in (ROOT / "infra").rglob("*.py") for name in imported(file)}

    assert {name for name in found if name.partition(".")[0] == "functions"} == IMPORTED.keys()
