"""Dead letters as tables for people."""

import json
from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from tickwheel.client.dead_letters import DeadLetter
from tickwheel.client.instants import format_instant

_MOST_SHOWN = 120


def dead_letters_table(letters: Iterable[DeadLetter]) -> Table:
    """A row a letter; what cannot be replayed is marked."""
    table = Table(box=None, pad_edge=False)
    for heading in ("dead at", "error class", "error", "target", "schedule"):
        table.add_column(heading, overflow="fold")
    table.add_column("attempt", justify="right")
    table.add_column("id", overflow="fold")
    for letter in letters:
        table.add_row(
            f"{letter.dead_at:%Y-%m-%d %H:%M:%S}",
            escape(letter.error_class),
            escape(_cut(letter.error)),
            escape(letter.target or ""),
            escape(letter.schedule_id or ""),
            str(letter.attempt),
            escape(letter.id),
            style=None if letter.is_replayable else "dim",
        )
    return table


def dead_letter_table(letter: DeadLetter) -> Table:
    """All that is known of a letter, but for its payload."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    job = dict(letter.job or {})
    rows = {
        "id": letter.id,
        "tenant": letter.tenant,
        "dead at": format_instant(letter.dead_at),
        "error class": letter.error_class,
        "error": letter.error,
        "attempt": str(letter.attempt),
        "replayable": "yes" if letter.is_replayable else "no",
        "job id": letter.job_id,
        **job,
        "payload": "gone" if letter.is_payload_gone else None,
        "raw": letter.raw,
    }
    for name, value in rows.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(name.replace("_", " "), escape(text))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
