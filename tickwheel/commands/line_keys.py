"""Idempotency keys of lines that have none: by what a line says, so that a line that is sent again is the same job."""

import sqlite3
from hashlib import sha256

_LETTERS = 32


class LineKeys:
    """Gives each line its key. The second of two lines that say the same is another job, with a key of its own.

    What was seen is in a temporary file, so that memory does not grow with the lines.
    """

    def __init__(self, prefix: str | None) -> None:
        self._prefix = "line" if prefix is None else prefix
        self._seen = sqlite3.connect("")
        self._seen.execute("PRAGMA journal_mode = OFF")
        self._seen.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, times INTEGER) WITHOUT ROWID")

    def key_of(self, text: str) -> str:
        """The key of the next line of a file; every line of it has to be asked for, in order."""
        digest = sha256(text.strip().encode(errors="surrogateescape"))
        row = self._seen.execute("SELECT times FROM seen WHERE digest = ?", (digest.digest(),)).fetchone()
        times = 1 if row is None else row[0] + 1
        self._seen.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (digest.digest(), times))
        key = f"{self._prefix}-{digest.hexdigest()[:_LETTERS]}"
        return key if times == 1 else f"{key}-{times}"

    def close(self) -> None:
        """Removes the temporary file."""
        self._seen.close()
