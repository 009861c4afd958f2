"""Least privilege in figures: what each function is allowed, and how much of that it uses."""

from collections.abc import Iterable
from dataclasses import dataclass

from scripts.least_privilege.calls import Call
from scripts.least_privilege.justified import SOMETIMES, reason, reasons
from scripts.least_privilege.policies import role_of
from scripts.synthesis import FUNCTIONS, Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One function: counts of grants, an action on a resource each, and what is wrong, one a line.

    missing: calls that no statement allows. unused: grants that no call uses and no reason justifies. needless: reasons
    for what is used, or is not granted at all.
    """

    function: str
    allowed: int
    used: int
    justified: int
    unused: tuple[str, ...]
    missing: tuple[str, ...]
    needless: tuple[str, ...]

    @property
    def findings(self) -> list[str]:
        """What is wrong, one a line."""
        kinds = {
            "no statement allows": self.missing,
            "no call uses, and justified.py gives no reason for": self.unused,
            "justified.py has a needless reason for": self.needless,
        }
        return [f"{kind} {subject}" for kind, subjects in kinds.items() for subject in subjects]

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.allowed} actions allowed, {self.used} used, {self.justified} justified, "
            f"{len(self.unused)} unused, {len(self.missing)} missing"
        )


def report_of(function: str, templates: Templates, calls: Iterable[Call]) -> Report:
    """Hold what the role of a function allows against the calls that were recorded of it."""
    role = role_of(function, templates)
    own = sorted(call for call in calls if call.function == function)
    used = frozenset().union(*(role.users(call) for call in own))
    idle = role.grants - used
    justified = {grant for grant in idle if reason(function, grant.action)}
    needed = {(function, grant.action) for grant in justified}
    absent = SOMETIMES - {(function, grant.action) for grant in role.grants}
    return Report(
        function=function,
        allowed=len(role.grants),
        used=len(used),
        justified=len(justified),
        unused=tuple(sorted(role.described(grant) for grant in idle - justified)),
        missing=tuple(str(call) for call in own if role.refuses(call)),
        needless=tuple(f"{name}: {action}" for name, action in sorted(reasons() - needed - absent) if name == function),
    )


def reports_of(templates: Templates, calls: Iterable[Call]) -> list[Report]:
    """One for each function of a stage."""
    known = frozenset(calls)
    return [report_of(function, templates, known) for function in FUNCTIONS]
