"""What plays Athena here: DuckDB, which ministack asks for every query.

It reserves 32 MiB for each file before it reads any, and by default refuses a query whose reservations come to four fifths of
the machine's memory. Firehose delivers many small files here, of which it uses next to nothing.
"""

from functools import partial

import duckdb

RESERVABLE = "4TB"


def install() -> None:
    """Let a query reserve for as many files as there are."""
    duckdb.connect = partial(duckdb.connect, config={"memory_limit": RESERVABLE})
