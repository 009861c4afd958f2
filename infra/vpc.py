"""Functions in a network of their own: their interfaces there, and what their roles need for those."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.surroundings import Network

_INTERFACES = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda does with the role of a function in a VPC; none of it knows a resource that is there before
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions)."""


class Interfaces(Construct):
    """One security group for all functions, without a way in, unless others are given."""

    def __init__(self, scope: Construct, construct_id: str, *, network: Network) -> None:
        super().__init__(scope, construct_id)
        self._network = network
        self.security_groups = list(network.security_groups) or [_group(self, network.vpc)]

    def of(self, role: iam.IRole) -> dict[str, Any]:
        """The properties of a function in the network, whose role may have interfaces there."""
        role.add_to_principal_policy(iam.PolicyStatement(actions=list(_INTERFACES), resources=["*"]))
        return {
            "vpc": self._network.vpc,
            "vpc_subnets": self._network.subnets,
            "security_groups": self.security_groups,
        }


def _group(scope: Construct, vpc: ec2.IVpc) -> ec2.ISecurityGroup:
    group = ec2.SecurityGroup(scope, "Group", vpc=vpc, description="Functions of Tickwheel: no way in")
    return cast("ec2.ISecurityGroup", group)
