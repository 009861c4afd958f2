"""The list of allowed targets, once more at the last moment: a stage may have shrunk since a job was taken."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.errors import InvalidJob
from functions.domain.targets.options import TargetOptions
from functions.domain.targets.targets import AllowedTargets, parse_target
from functions.ports.targets import Failed, Invocation, Outcome, Targets


class AllowedCaller:
    """Calls those targets that the stage allows, and no others."""

    def __init__(self, targets: Targets, *, allowed: AllowedTargets) -> None:
        self._targets = targets
        self._allowed = allowed

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call once; a target that is not allowed, or none at all, fails for good."""
        try:
            parsed = parse_target(target)
        except InvalidJob as error:
            return Failed(f"InvalidJob: the target {error}", error_class="invalid", is_permanent=True, is_its_own=True)
        if not self._allowed.is_allowed(parsed):
            error = f"NotAllowed: the target {self._allowed.objection(parsed)}"
            return Failed(error, error_class="not_allowed", is_permanent=True)
        return self._targets.call(target, payload, invocation, options=options, timeout=timeout)
