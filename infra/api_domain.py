"""A name of one's own for the API."""

from __future__ import annotations

from typing import cast

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as route53_targets
from constructs import Construct

from infra.surroundings import Domain


class ApiDomain(Construct):
    """The name, in API Gateway and, where its zone is given, in Route 53. The API's own address goes on."""

    def __init__(self, scope: Construct, construct_id: str, *, domain: Domain, api: apigateway.HttpApi) -> None:
        super().__init__(scope, construct_id)
        name = apigateway.DomainName(
            self,
            "Name",
            domain_name=domain.name,
            certificate=domain.certificate,
            security_policy=apigateway.SecurityPolicy.TLS_1_2,
        )
        mapping = apigateway.CfnApiMapping(self, "Mapping", api_id=api.api_id, domain_name=name.name, stage="$default")
        mapping.node.add_dependency(scope.node.find_child("Stage"))
        if domain.zone is not None:
            alias = route53_targets.ApiGatewayv2DomainProperties(
                name.regional_domain_name, name.regional_hosted_zone_id
            )
            route53.ARecord(
                self,
                "Record",
                zone=domain.zone,
                record_name=domain.name,
                target=route53.RecordTarget.from_alias(cast("route53.IAliasRecordTarget", alias)),
            )
        self.target = name.regional_domain_name
