"""A stage that works on tables restored by point-in-time recovery: docs/restore.md."""

import dataclasses
import json
from typing import Any

import pytest

from functions.adapters.dynamodb.tables import ALL_TABLES
from infra.stage import Stage
from infra.stage_parts import InvalidStage, Watching
from scripts.synthesis import FUNCTIONS, Templates, synthesise

RESTORED = {schema.name: f"tickwheel-dev-{schema.name}-restored" for schema in ALL_TABLES}


@pytest.fixture(scope="module")
def restored() -> Templates:
    return synthesise(with_tables(RESTORED))


def with_tables(tables: dict[str, str]) -> Stage:
    return dataclasses.replace(Stage.named("dev"), watching=Watching.FULL, restored_tables=tables)


def text_of(value: Any) -> str:
    return json.dumps(value)


def test_the_tables_that_were_lost_stay_as_they_are(restored: Templates, full: Templates) -> None:
    assert restored.storage == full.storage


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_works_on_the_restored_tables_and_is_allowed_no_other(restored: Templates, name: str) -> None:
    environment = restored.environment(name)
    tables = {key: value for key, value in environment.items() if key.endswith("_TABLE")}

    assert tables == {key: RESTORED[key.removesuffix("_TABLE").lower()] for key in tables}
    for statement in restored.statements(name):
        if "dynamodb:" in text_of(statement["Action"]):
            assert "Fn::ImportValue" not in text_of(statement["Resource"])
            assert any(physical in text_of(statement["Resource"]) for physical in RESTORED.values())


def test_nothing_but_the_tables_of_its_functions_and_graphs_changes(restored: Templates, full: Templates) -> None:
    changed = {
        restored.scheduler["Resources"][name]["Type"]
        for name in full.scheduler["Resources"]
        if restored.scheduler["Resources"][name] != full.scheduler["Resources"][name]
    }

    assert restored.scheduler["Resources"].keys() == full.scheduler["Resources"].keys()
    assert changed == {"AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::CloudWatch::Dashboard"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"timer": "abc"}, "dev: restored_tables has 'timer': use timers, ledger"),
        ({"timers": "a b"}, "'a b' is no name"),
    ],
)
def test_tables_that_there_are_not_are_refused(tables: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidStage, match=message):
        with_tables(tables)
