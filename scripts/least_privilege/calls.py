"""The recorded calls: which function does what to which resource, kept in `calls.json`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("calls.json")
REFRESH = "make calls"


class Call(NamedTuple):
    """One IAM action of one function on a resource, named as `recording.named` does."""

    function: str
    action: str
    resource: str

    def __str__(self) -> str:
        return f"{self.function}: {self.action} on {self.resource}"


def kept() -> frozenset[Call]:
    """The calls that the repository knows of."""
    return frozenset(
        Call(function, action, resource)
        for function, actions in json.loads(FILE.read_text()).items()
        for action, resources in actions.items()
        for resource in resources
    )


def heard(folder: Path) -> frozenset[Call]:
    """What every process of a test run has written to its folder."""
    lines = [line for file in folder.glob("*.txt") for line in file.read_text().splitlines()]
    return frozenset(Call(*line.split(" ", 2)) for line in lines)


def written(calls: Iterable[Call]) -> str:
    """The file that keeps these calls; the same calls are the same text."""
    tree: dict[str, dict[str, list[str]]] = {}
    for call in sorted(calls):
        tree.setdefault(call.function, {}).setdefault(call.action, []).append(call.resource)
    return json.dumps(tree, indent=1) + "\n"


def complaints(*, kept: frozenset[Call], heard: frozenset[Call], is_whole: bool) -> list[str]:
    """What differs, one a line. is_whole: everything that makes calls has run, so a call not heard is not made."""
    new = [f"new: {call}" for call in sorted(heard - kept)]
    return new + ([f"made no more: {call}" for call in sorted(kept - heard)] if is_whole else [])
