"""The templates of this release beside those of the one before: an upgrade and a rollback are accepted by CloudFormation.

It refuses to delete an export that a deployed stack imports, and deletes what a template does not have any more.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.synthesis import ROOT, Template, Templates
from testkit.releases import archive_of, previous_release
from tests.infra.golden import FOLDER
from tickwheel.local.checkout import Checkout

FILES = {name: str((FOLDER / f"dev-{name}.json").relative_to(ROOT)) for name in ("storage", "scheduler")}


@pytest.fixture(scope="module")
def before() -> Templates:
    archive, why_not = archive_of(previous_release(Checkout(ROOT)), ROOT, paths=list(FILES.values()))
    if archive is None:
        pytest.skip(f"NOT TESTED: {why_not}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return Templates(**{name: json.loads(tar.extractfile(file).read()) for name, file in FILES.items()})  # pyright: ignore[reportOptionalMemberAccess]


def test_the_storage_of_this_release_has_all_that_the_scheduler_before_imports(before: Templates, dev: Templates):
    imported = set(imports_of(before.scheduler))

    assert imported
    assert imported <= exports_of(dev.storage)


def test_the_storage_of_this_release_keeps_every_resource_of_the_one_before(before: Templates, dev: Templates):
    now = dev.storage["Resources"]
    kept = {name: now.get(name, {}).get("Type") for name in before.storage["Resources"]}

    assert kept == {name: resource["Type"] for name, resource in before.storage["Resources"].items()}


def imports_of(part: Any) -> Iterator[str]:
    """The names of the exports that a template imports."""
    if isinstance(part, dict):
        if "Fn::ImportValue" in part:
            yield part["Fn::ImportValue"]
        for each in part.values():
            yield from imports_of(each)
    elif isinstance(part, list):
        for each in part:
            yield from imports_of(each)


def exports_of(template: Template) -> set[str]:
    return {output["Export"]["Name"] for output in template["Outputs"].values() if "Export" in output}
