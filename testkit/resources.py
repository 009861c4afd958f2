"""What stacks consist of, by the names that the application gives it; CloudFormation adds the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any


class Resources:
    """Of these stacks, as they were when they were first asked for."""

    def __init__(self, cloudformation: Any, stacks: Sequence[str]) -> None:
        self._cloudformation = cloudformation
        self._stacks = stacks

    def one(self, kind: str, name: str) -> str:
        """The physical name of a resource of a CloudFormation type."""
        found = [physical for logical, physical in self.all(kind) if re.fullmatch(f"{name}[0-9A-F]{{8}}", logical)]
        assert len(found) == 1, f"{kind} {name}: {found}"
        return found[0]

    def all(self, kind: str) -> list[tuple[str, str]]:
        """Logical and physical names of all of a type."""
        return [(logical, physical) for found, logical, physical in self._listed if found == kind]

    @cached_property
    def outputs(self) -> dict[str, str]:
        """Of all the stacks, by name."""
        described = [self._cloudformation.describe_stacks(StackName=stack)["Stacks"][0] for stack in self._stacks]
        outputs = [output for stack in described for output in stack.get("Outputs", [])]
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}

    @cached_property
    def _listed(self) -> list[tuple[str, str, str]]:
        return list(self._list())

    def _list(self) -> Iterator[tuple[str, str, str]]:
        paginator = self._cloudformation.get_paginator("list_stack_resources")
        for stack in self._stacks:
            for page in paginator.paginate(StackName=stack):
                for found in page["StackResourceSummaries"]:
                    yield found["ResourceType"], found["LogicalResourceId"], found.get("PhysicalResourceId", "")
