"""Operations as tables for people."""

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Column, Table

from tickwheel.client.instants import format_instant
from tickwheel.client.operations import Operation
from tickwheel.screens.tables import fields_table, folded, plain_table, right


def operations_table(operations: Iterable[Operation]) -> Table:
    """A row an operation; those that are over are dim."""
    counts = right("share", "matched", "done", "refused")
    table = plain_table(Column("created at"), Column("action"), Column("state"), *counts, *folded("caller", "id"))
    for operation in operations:
        table.add_row(
            f"{operation.created_at:%Y-%m-%d %H:%M:%S}",
            operation.action + (" (dry run)" if operation.dry_run else ""),
            operation.state,
            f"{operation.share:.0%}",
            str(operation.matched),
            str(operation.done),
            str(operation.refused_count),
            escape(operation.caller),
            operation.id,
            style="dim" if operation.is_over else None,
        )
    return table


def operation_table(operation: Operation) -> Table:
    """All that is known of an operation, but for the jobs that it shows."""
    rows = {
        "id": operation.id,
        "tenant": operation.tenant,
        "action": operation.action,
        "dry run": "yes" if operation.dry_run else None,
        "filter": operation.body["filter"],
        **{name: operation.body.get(name) for name in ("by", "to", "spread", "rate")},
        "caller": operation.caller,
        "created at": format_instant(operation.created_at),
        "state": operation.state,
        "stop requested": "yes" if operation.stop_requested and not operation.is_over else None,
        "ended at": format_instant(operation.ended_at) if operation.ended_at else None,
        "share": f"{operation.share:.0%}",
        "examined": operation.examined,
        "matched": operation.matched,
        "done": operation.done,
        "refused": operation.refused or None,
        "error": operation.error,
    }
    return fields_table(rows)


def examples_table(operation: Operation) -> Table:
    """The jobs that it shows, and why each was refused."""
    table = plain_table(*folded("", "", ""))
    table.show_header = False
    for example in operation.examples:
        table.add_row(escape(example.job_id), escape(example.code or ""), escape(example.detail or ""))
    return table
