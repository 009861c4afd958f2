"""How a finding of cdk-nag is answered: at the construct it is about, by its own id, with a reason of its own."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, *, because: str) -> None:
    """Accept one finding on one construct; another finding of the same rule still fails the check."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=because))
