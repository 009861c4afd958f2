import json
from pathlib import Path

import duckdb
import pytest

from tickwheel.local import athena

FILES = 700
"""More than a machine of 24 GB lets DuckDB reserve 32 MiB for."""


def test_a_query_reads_many_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "connect", duckdb.connect)  # put back at the end
    for number in range(FILES):
        (tmp_path / f"{number}.json").write_text(json.dumps({"number": number}))

    athena.install()

    with duckdb.connect(":memory:") as connection:
        query = f"SELECT count(*) FROM read_json_auto('{tmp_path}/*.json', union_by_name = true)"
        assert connection.execute(query).fetchall() == [(FILES,)]
