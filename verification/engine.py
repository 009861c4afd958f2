"""DynamoDB's own engine for the time of a verification: a Java process, as the tests have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testkit.dynamodb_local import DynamoDBLocal, java_missing_because
from testkit.world.dynamodb import OnDynamoDB
from testkit.world.stores import MakeStores
from tickwheel.errors import MissingTool
from tickwheel.local.home import Progress, quietly
from tickwheel.local.installation import find_home


@contextmanager
def dynamodb(tell: Progress = quietly) -> Iterator[MakeStores]:
    """Whatever makes stores on it, until it is stopped. Raises MissingTool when it cannot run here."""
    if because := java_missing_because():
        raise MissingTool(f"the engine of --on dynamodb cannot run here: {because}")
    folder = find_home().dynamodb_local(tell)
    if not (folder / "DynamoDBLocal.jar").is_file():
        raise MissingTool(f"there is no DynamoDBLocal.jar in {folder}: run `make setup` again")
    with DynamoDBLocal(folder) as engine:
        yield OnDynamoDB(engine.endpoint_url)
