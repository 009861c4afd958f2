"""Dead letters as tables for people."""

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from tickwheel.client.dead_letters import DeadLetter
from tickwheel.client.instants import format_instant
from tickwheel.screens.tables import fields_table, folded, plain_table, right

_MOST_SHOWN = 120


def dead_letters_table(letters: Iterable[DeadLetter]) -> Table:
    """A row a letter; what cannot be replayed is marked."""
    headings = ("dead at", "error class", "error", "target", "schedule")
    table = plain_table(*folded(*headings), *right("attempt"), *folded("id"))
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
    return fields_table(
        {
            "id": letter.id,
            "tenant": letter.tenant,
            "dead at": format_instant(letter.dead_at),
            "error class": letter.error_class,
            "error": letter.error,
            "attempt": letter.attempt,
            "replayable": "yes" if letter.is_replayable else "no",
            "job id": letter.job_id,
            "due at": format_instant(letter.due_at) if letter.due_at else None,
            **(letter.job or {}),
            "payload": "gone" if letter.is_payload_gone else None,
            "raw": letter.raw,
        }
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
