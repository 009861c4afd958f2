"""What of a user's app a scheduler stands among: targets, a network, a domain name, a topic for alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_sns as sns

from infra.given_targets import GivenTarget, Target, given_target
from infra.stage import Stage
from infra.stage_parts import InvalidStage
from infra.throughput import WarmThroughput


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A name of one's own for the API. certificate: of the same region. zone: where the name is made; None where its owner does that."""

    name: str
    certificate: acm.ICertificate
    zone: route53.IHostedZone | None = None


@dataclass(frozen=True, kw_only=True)
class Network:
    """Where functions run. subnets: private ones with a way out if not said. security_groups: one is made, without ingress, if not said."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What a stage says of its tables, changed for one app; None and what is left out stay as the stage has them.

    retained: whether data outlives its stack. existing: physical names of tables that take the place of the stack's own, by the names of
    schemas. warm_throughput: by these too.
    """

    retained: bool | None = None
    existing: Mapping[str, str] = field(default_factory=dict[str, str])
    warm_throughput: Mapping[str, WarmThroughput] = field(default_factory=dict[str, WarmThroughput])

    def of(self, stage: Stage) -> Stage:
        """The stage with these tables. Raises InvalidStage."""
        return replace(
            stage,
            retained=stage.retained if self.retained is None else self.retained,
            restored_tables={**stage.restored_tables, **self.existing},
            warm_throughput={**stage.warm_throughput, **self.warm_throughput},
        )


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """All of it; by default there is nothing. handlers_environment: variables that handlers read."""

    targets: Sequence[GivenTarget] = ()
    network: Network | None = None
    domain: Domain | None = None
    alarms_to: sns.ITopic | None = None
    handlers_environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def fills_environments(self) -> bool:
        """Whether functions have variables of it."""
        return bool(self.targets or self.handlers_environment)

    @property
    def target_arns(self) -> list[str]:
        """Of the targets."""
        return [target.arn for target in self.targets]


def split_targets(targets: Sequence[Target | str]) -> tuple[tuple[str, ...], list[GivenTarget]]:
    """Patterns, which the stage checks, and constructs. Raises InvalidStage."""
    patterns = tuple(target for target in targets if isinstance(target, str))
    given = [given_target(target) for target in targets if not isinstance(target, str)]
    return patterns, given


def check_alarms(stage: Stage, alarms_to: sns.ITopic | None) -> None:
    """Raises InvalidStage where two say who is told."""
    if alarms_to is not None and stage.alarm_email is not None:
        raise InvalidStage(
            f"{stage.name}: alarms_to is given, and alarm_email is {stage.alarm_email!r}: leave one out; the address can subscribe to the topic"
        )
