"""What the role of a function allows, read from the templates of a stage.

Resources are identified by their logical names: an ARN, a reference and the export of either are the same resource. That is
enough to compare a policy with the environment that names the function's resources, without an account.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from functions.domain.targets.kinds import Kind
from infra.targets import granted_arns
from scripts.least_privilege.calls import Call
from scripts.least_privilege.recording import NAMES_A_RESOURCE, TARGETS
from scripts.synthesis import Templates


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One action allowed on one resource, either with wildcards."""

    action: str
    resource: str

    def covers(self, action: str, resource: str) -> bool:
        """As IAM matches: `*` stands for any text, separators too."""
        # Actions are compared without case, ARNs with it.
        return fnmatchcase(action.lower(), self.action.lower()) and fnmatchcase(resource, self.resource)


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a function: what it allows, and which resources the variables of the function's environment name."""

    function: str
    grants: frozenset[Grant]
    variables: Mapping[str, tuple[str, ...]]

    def resources_of(self, call: Call) -> tuple[str, ...]:
        """What a call is on in this stage: every queue for a list of queues, nothing for targets that it does not allow."""
        variable, slash, rest = call.resource.partition("/")
        if variable == TARGETS:
            service = call.action.partition(":")[0]
            return tuple(arn for arn in self.variables[TARGETS] if _service(arn) == service)
        return tuple(f"{name}{slash}{rest}" for name in self.variables.get(variable, (f"?{variable}",)))

    def users(self, call: Call) -> frozenset[Grant]:
        """The grants that this call makes use of."""
        resources = self.resources_of(call)
        return frozenset(grant for grant in self.grants for each in resources if grant.covers(call.action, each))

    def refuses(self, call: Call) -> bool:
        """Whether there is a resource on which no statement allows the call."""
        return any(
            not any(grant.covers(call.action, each) for grant in self.grants) for each in self.resources_of(call)
        )

    def described(self, grant: Grant) -> str:
        """A grant in the words of the calls: its resource by the variable that names it, where one does."""
        name, slash, rest = grant.resource.partition("/")
        variable = next((key for key, names in sorted(self.variables.items()) if name in names), name)
        return f"{self.function}: {grant.action} on {variable}{slash}{rest}"


def role_of(function: str, templates: Templates) -> Role:
    """Raises ValueError for a statement that this reads no meaning from: a Deny, a NotAction, a condition but on a key's use."""
    grants: set[Grant] = set()
    for statement in templates.statements(function):
        is_read = {"Action", "Effect", "Resource", "Sid"} | ({"Condition"} if _is_use_of_key(statement) else set())
        if statement["Effect"] != "Allow" or set(statement) - is_read:
            raise ValueError(f"{function}: policies.py does not understand {statement}")
        grants |= {
            Grant(action, resolved(resource, templates))
            for action in _listed(statement["Action"])
            for resource in _listed(statement["Resource"])
        }
    environment = templates.environment(function)
    variables = {
        name: _names(resolved(value, templates)) for name, value in environment.items() if NAMES_A_RESOURCE.search(name)
    }
    patterns = [text for text in json.loads(environment.get(TARGETS, "[]")) if text.startswith("arn:")]
    arns = [arn for text in patterns for arn in granted_arns(Kind(_service(text)), text)]
    return Role(function, frozenset(grants), {**variables, TARGETS: tuple(arns)})


def resolved(value: Any, templates: Templates) -> str:
    """A value of a template as text, with the logical name of a resource in place of whatever of it is referred to."""
    match value:
        case str():
            return value
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return name
        case {"Fn::ImportValue": export}:
            outputs = templates.storage["Outputs"].values()
            return resolved(next(each["Value"] for each in outputs if each["Export"]["Name"] == export), templates)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(resolved(part, templates) for part in parts)
    raise ValueError(f"policies.py cannot resolve {value}")


def _is_use_of_key(statement: Mapping[str, Any]) -> bool:
    """Of a key through a service: nobody but that service asks for it, so no call of a function is allowed by it."""
    equals = statement.get("Condition", {}).get("StringEquals", {})
    return "kms:ViaService" in equals and all(action.startswith("kms:") for action in _listed(statement["Action"]))


def _service(arn: str) -> str:
    return arn.split(":")[2]


def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text.startswith("[") else (text,)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
