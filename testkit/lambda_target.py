"""A Lambda function of an account's own, for jobs to call."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from testkit.polling import eventually


def make_role(iam: Any, name: str, *, service: str) -> str:
    """The ARN of a role that a service may assume."""
    principal = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [principal]})
    return iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"]


def make_function(client: Any, name: str, *, source: str, role: str) -> str:
    """The ARN of a function whose source has `handler`; a role that is new may take some seconds until Lambda knows it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("index.py", source)

    def create() -> str | None:
        try:
            return client.create_function(
                FunctionName=name,
                Runtime="python3.13",
                Role=role,
                Handler="index.handler",
                Code={"ZipFile": archive.getvalue()},
            )["FunctionArn"]
        except client.exceptions.InvalidParameterValueException:
            return None

    return eventually(create, bool, within=60, what=f"Lambda takes {name} with its new role", pause=2) or ""
