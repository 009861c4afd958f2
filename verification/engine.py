"""DynamoDB's own engine for the time of a verification: a Java process, as the tests have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testkit.dynamodb_local import DynamoDBLocal, missing_because
from testkit.world.dynamodb import OnDynamoDB
from testkit.world.stores import MakeStores
from tickwheel.errors import MissingTool


@contextmanager
def dynamodb() -> Iterator[MakeStores]:
    """Whatever makes stores on it, until it is stopped. Raises MissingTool when it cannot run here."""
    because = missing_because()
    if because is not None:
        raise MissingTool(f"the engine of --on dynamodb cannot run here: {because}")
    with DynamoDBLocal() as engine:
        yield OnDynamoDB(engine.endpoint_url)
