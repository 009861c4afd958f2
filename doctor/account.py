"""The account and region of whoever asks, through the credentials that boto3 finds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.capacity import CONCURRENCY, UNRESERVED, Quota

BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
"""Where `cdk bootstrap` keeps its version: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html"""

_OF_LAMBDA = {CONCURRENCY: "ConcurrentExecutions", UNRESERVED: "UnreservedConcurrentExecutions"}
"""https://docs.aws.amazon.com/lambda/latest/api/API_AccountLimit.html"""

_SCHEDULER = re.compile(r"Tickwheel-([a-z0-9]+)-Scheduler")


class Unknown(Exception):
    """What the caller may not ask, or AWS did not answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and where."""

    account: str
    region: str
    arn: str


@dataclass(frozen=True, slots=True)
class Value:
    """assumed: why AWS's default was taken; empty if the account was asked."""

    value: float
    assumed: str = ""


class Account:
    """Raises Unknown where an answer is missing."""

    def __init__(self, **options: Any) -> None:
        """Take the options of boto3's clients, where they are not those that it finds."""
        # The CDK reads AWS_REGION, and boto3 does not: both have to mean the same region.
        self._session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
        self._options = options

    def caller(self) -> Caller:
        """Ask AWS; without credentials or a region there is no answer."""
        try:
            sts = self._client("sts")
            found = sts.get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            raise Unknown(str(error)) from None
        return Caller(found["Account"], sts.meta.region_name, found["Arn"])

    def bootstrap_version(self) -> int | None:
        """Of the CDK; None where it was never prepared."""
        ssm = self._client("ssm")
        try:
            return int(ssm.get_parameter(Name=BOOTSTRAP)["Parameter"]["Value"])
        except ssm.exceptions.ParameterNotFound:
            return None
        except (BotoCoreError, ClientError) as error:
            raise Unknown(str(error)) from None

    def stages(self) -> list[str]:
        """Those that are deployed here, by name."""
        try:
            return list(self._stages())
        except (BotoCoreError, ClientError) as error:
            raise Unknown(str(error)) from None

    def value_of(self, quota: Quota, *, region: str) -> Value:
        """What the account has: as it was raised or lowered, else the region's default, else the one that is written down here."""
        default = quota.default_in(region)
        if quota.code is None:
            return Value(default, "Service Quotas does not have it")
        try:
            # Lambda says itself what a new account was lowered to.
            return Value(
                self._of_lambda(_OF_LAMBDA[quota])
                if quota in _OF_LAMBDA
                else self._service_quota(quota.service, quota.code)
            )
        except ClientError as error:
            return Value(default, f"asking was refused with {error.response['Error']['Code']}")
        except BotoCoreError as error:
            return Value(default, str(error))

    def _of_lambda(self, limit: str) -> float:
        return self._client("lambda").get_account_settings()["AccountLimit"][limit]

    def _service_quota(self, service: str, code: str) -> float:
        quotas = self._client("service-quotas")
        try:
            found = quotas.get_service_quota(ServiceCode=service, QuotaCode=code)
        except quotas.exceptions.NoSuchResourceException:  # never changed for this account
            found = quotas.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)
        return found["Quota"]["Value"]

    def _stages(self) -> Iterator[str]:
        pages = self._client("cloudformation").get_paginator("describe_stacks").paginate()
        for stack in (stack for page in pages for stack in page["Stacks"]):
            if found := _SCHEDULER.fullmatch(stack["StackName"]):
                yield found[1]

    def _client(self, service: str) -> Any:
        return self._session.client(service, **self._options)  # pyright: ignore[reportCallIssue, reportArgumentType]
