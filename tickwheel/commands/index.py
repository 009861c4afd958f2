"""What each command says of itself, and the modules that it stands in: written by `make format` (`scripts/command_index.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Listed:
    """A command or a group of commands."""

    about: str
    modules: tuple[str, ...]


INDEX: Mapping[str, Listed] = {
    "breaker": Listed("Change the circuit breaker of a destination.", ("breakers",)),
    "breakers": Listed("List the destinations of a tenant whose breaker is not closed.", ("breakers",)),
    "cancel": Listed("Cancel a job. A running attempt is asked to stop.", ("jobs",)),
    "complete": Listed("Complete an attempt: report that its target has succeeded.", ("jobs",)),
    "context": Listed("Name the schedulers that you work with, and say which one commands use.", ("contexts",)),
    "cost": Listed(
        "Estimate the monthly cost of a stage from measured units and list prices, compared with EventBridge Scheduler or another stage.",
        ("cost",),
    ),
    "dead-letters": Listed("List, replay and purge dead letters: jobs that failed for good.", ("dead_letters",)),
    "demo": Listed(
        "Deploy to a local cloud of its own, fire 1,335 jobs for 66 tenants, and judge each. Exit code 1: one was lost, early or repeated.",
        ("demo",),
    ),
    "dev": Listed(
        "Run your handlers on the local cloud, replace them when a file changes, and print their runs. Ctrl-C ends it.",
        ("dev",),
    ),
    "doctor": Listed(
        "Check the account and region that a stage would be deployed to. Exit code 1: the deployment would stop.",
        ("doctor",),
    ),
    "edit": Listed("Update the given fields of a waiting job. It continues under a new id.", ("jobs",)),
    "explain": Listed("Explain why a job has not run yet, or how it ended.", ("jobs",)),
    "export": Listed("Write the schedules of a tenant as a file that `tickwheel import` takes.", ("schedules",)),
    "fail": Listed("Fail an attempt: report that its target has failed.", ("jobs",)),
    "flow": Listed("Show and set the rate and the concurrency that jobs share which name a key.", ("flows",)),
    "get": Listed("Show a job. A long result is shortened; --json and --result print all of it.", ("jobs",)),
    "heartbeat": Listed("Renew the lease of an attempt whose target answered 202.", ("jobs",)),
    "herd": Listed("Show how many jobs fire in each minute, and suggest a spread. Changes nothing.", ("herd",)),
    "import": Listed(
        "Create or replace one schedule for each line of a file, or plan an import from another program. Importing again changes nothing.",
        ("schedules",),
    ),
    "local": Listed("Run the local cloud: the real stacks on this machine.", ("local",)),
    "operations": Listed("Cancel, reschedule, run or export all waiting jobs that match a filter.", ("operations",)),
    "pause": Listed("Pause the stage: all jobs of all tenants wait until it is resumed.", ("tenants",)),
    "payload": Listed("Show the payload of a job.", ("jobs",)),
    "reschedule": Listed("Reschedule a waiting job. It continues under a new id.", ("jobs",)),
    "resume": Listed("Resume the stage.", ("tenants",)),
    "run-now": Listed("Run a job in the far ring, or its next attempt, now.", ("jobs",)),
    "schedule": Listed("Create, show, update, trigger and delete schedules.", ("schedules",)),
    "simulate": Listed(
        "Run scenarios on virtual time, and write a report with pictures. Exit code 1: a target was missed.",
        ("simulate",),
    ),
    "smoke": Listed(
        "Prove on its account that a deployed stage keeps its promises. Says first how long it takes and what it costs. Exit code 1: it does not.",
        ("smoke",),
    ),
    "status": Listed(
        "Show the health of the stage: shards, queues, budgets, breakers and pauses. Exit code 1: behind, or unknown.",
        ("status",),
    ),
    "submit": Listed("Submit a job, or with --file one job for each line of a file.", ("submit",)),
    "tenant": Listed("Show and update tenants: plans, limits, and who may act for them.", ("tenants", "usage")),
    "top": Listed("Watch rates, lag, queues, breakers and the busiest tenants, until Ctrl-C.", ("top",)),
    "verify": Listed(
        "Run jobs and schedules under faults, and check every promise. Exit code 1: one was broken.", ("verify",)
    ),
    "webhook-keys": Listed("Show the webhook signing keys of a tenant, the current one first.", ("webhook_keys",)),
}

MODULES = frozenset(
    (
        "account",
        "api",
        "breakers",
        "contexts",
        "cost",
        "dead_letters",
        "definition",
        "demo",
        "dev",
        "discovery",
        "doctor",
        "engine_modules",
        "file_end",
        "flows",
        "herd",
        "import_plan",
        "index",
        "job_file",
        "job_lines",
        "job_options",
        "jobs",
        "journal",
        "line_account",
        "line_keys",
        "lines",
        "local",
        "operations",
        "option_sets",
        "options",
        "page",
        "places",
        "registry",
        "schedule_account",
        "schedule_columns",
        "schedule_lines",
        "schedule_replacement",
        "schedules",
        "schedules_file",
        "simulate",
        "smoke",
        "status",
        "submit",
        "tenants",
        "terminal",
        "top",
        "usage",
        "verify",
        "webhook_keys",
    )
)
"""The modules that were looked through."""
