"""What every test shares: the seed after a failure, DynamoDB Local, and no skip that goes unnoticed."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from testkit.dynamodb_local import DynamoDBLocal, missing_because
from tests.http_sink import HttpSink, http_sink
from tests.stored_meaning import Release, release_in

ROOT = Path(__file__).parents[1]
WITHOUT_LONG = "not long"
"""The marks of `make test`."""

LEFT_OUT = pytest.StashKey[dict[str, tuple[int, int]]]()
"""Of each file that was collected: how many of its tests `make test` leaves out, and how many it has."""

pytest_plugins = ["tests.least_privilege.plugin"]

# A developer's own account is out of reach of every test. The key is moto's: a session of a process keeps the first key that it
# finds, in whichever test, and DynamoDB Local has tables of its own for each key. So no test sets another one in its process.
os.environ.update(
    AWS_ACCESS_KEY_ID="FOOBARKEY",
    AWS_SECRET_ACCESS_KEY="FOOBARSECRET",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    TICKWHEEL_CONFIG="/nonexistent/tickwheel",
)
for variable in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "TICKWHEEL_ENDPOINT", "TICKWHEEL_CONTEXT"):
    os.environ.pop(variable, None)


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[DynamoDBLocal]:
    """AWS's own engine, one per worker process; mark the tests that ask for it `dynamodb_local`."""
    with DynamoDBLocal() as engine:
        yield engine


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    """A target that answers as a test chooses."""
    with http_sink() as sink:
        yield sink


@pytest.fixture(scope="module")
def this_release() -> Iterator[Release]:
    """What stored bytes mean to this release."""
    with release_in(ROOT) as release:
        yield release


@pytest.fixture
def a_copy(this_release: Release) -> Iterator[Release]:
    """This release, of which a test may change the source."""
    yield this_release
    this_release.becomes({})


@pytest.hookimpl(tryfirst=True)  # before items are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reason = missing_because()
    marked = {item for item in items if item.get_closest_marker("dynamodb_local")}
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.long)
        if item not in marked and "dynamodb_local" in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(f"{item.nodeid} uses the fixture dynamodb_local without the marker of that name")
    if reason is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"DynamoDB Local: {reason}"))
    config.stash[LEFT_OUT] = _left_out(items)


def _left_out(items: list[pytest.Item]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for item in items:
        file = item.nodeid.partition("::")[0]
        long, count = found.get(file, (0, 0))
        found[file] = long + (item.get_closest_marker("long") is not None), count + 1
    return found


_SHARING = {"tests/e2e/": "a deployment", "tests/infra/": "templates", "tests/least_privilege/": "templates"}


class _ByFixtures(LoadScopeScheduling):
    """Tests that share what takes long to make go to one worker: a deployment, or the templates of all stages.

    The others go to whichever is free: a file at a time in `make test`, so that a file makes its fixtures once, and else each by itself.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = next((what for folder, what in _SHARING.items() if nodeid.startswith(folder)), None)
        if shared is not None:
            return shared
        return nodeid.partition("::")[0] if self.config.getoption("markexpr") == WITHOUT_LONG else nodeid

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        # After each test it counts what is left of all units that the worker has had: what is done need not be among them.
        units = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(units[scope].values()):
            del units[scope]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """`--dist loadgroup` by folder: pytest-xdist 3.8 loses `xdist_group` with pytest 9.2 (pytest-xdist issue 1386)."""
    return _ByFixtures(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.getreports("failed"):
        terminalreporter.line(f"repeat this order and these values with: --randomly-seed={_seed(config)}")
    reason = missing_because()
    skipped = [report for report in terminalreporter.getreports("skipped") if "DynamoDB Local:" in str(report.longrepr)]
    if reason is not None and skipped:
        line = f"{len(skipped)} TESTS AGAINST AWS'S OWN DYNAMODB ENGINE WERE SKIPPED: {reason}"
        terminalreporter.section("DynamoDB Local", sep="!", red=True, bold=True)
        terminalreporter.line(line, red=True, bold=True)


def _seed(config: pytest.Config) -> object:
    return config.getoption("randomly_seed", default="none")
