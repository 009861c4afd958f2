"""What outlives a deployment: the tables, the payloads, the keys that sign and the audit trail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from functions.adapters.dynamodb.tables import ALL_TABLES, TableSchema
from functions.domain.jobs.results import LIFE
from functions.domain.targets.webhooks import first_use_name
from infra.acknowledge import acknowledge
from infra.audit_trail import AuditTrail
from infra.encryption import customer_key, encrypt
from infra.files_bucket import files_bucket, files_export
from infra.private_bucket import private_bucket
from infra.retention import retention
from infra.stage import Stage

EXPORT_LIFE = cdk.Duration.days(7)
"""How long the files of an export can be downloaded."""


class StorageStack(cdk.Stack):
    """Every table by its schema's name, the bucket for payloads too large for a row, and the master keys of webhooks.

    Outside throw-away stages each of them is retained and protected from deletion, and so is the stack: deploying the
    scheduler again finds the same data. `tables` are those that the scheduler works on: after a restore, others than its own.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, env: cdk.Environment | None = None
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            env=env,
            stack_name=f"Tickwheel-{stage.name}-Storage",
            description=f"Tickwheel {stage.name}: tables, payloads and webhook keys",
            termination_protection=stage.retained,
        )
        self._own = {schema.name: _table(self, schema=schema, stage=stage) for schema in ALL_TABLES}
        self.tables: Mapping[str, dynamodb.ITable] = self._own | {
            name: dynamodb.Table.from_table_name(self, f"Restored-{name}", restored)
            for name, restored in stage.restored_tables.items()
        }
        self.payloads = _payload_bucket(self, retained=stage.retained)
        # By a name of its own, so that the one wildcard in a policy can be acknowledged by that name.
        self.payload_bucket_arn = self.export_value(self.payloads.bucket_arn, name=payloads_export(stage))
        self.webhook_secret_arn = (
            secret_on_first_use(stage)
            if stage.secret_on_first_use
            else _webhook_secret(self, retained=stage.retained).attr_id
        )
        self.audit = AuditTrail(self, "Audit", stage=stage)
        files = files_bucket(self, stage=stage)
        self.files, self.files_arn = files, ""
        if files is not None:
            self.files_arn = self.export_value(files.bucket_arn, name=files_export(stage))
        self._export_all(stage)
        self.key = customer_key(self, stage=stage)
        encrypt(self, key=self.key)
        self.audit.unlock(self.key)

    def _export_all(self, stage: Stage) -> None:
        # Used or not: CloudFormation refuses to drop an export that another stack still imports, so which function
        # touches which table must not change what this stack exports.
        for table in self._own.values():
            self.export_value(table.table_name)
            self.export_value(table.table_arn)
        self.export_value(self.payloads.bucket_name)
        if not stage.secret_on_first_use:
            self.export_value(self.webhook_secret_arn)
        self.export_value(self.audit.stream_name)
        self.export_value(self.audit.stream_arn)


def payloads_export(stage: Stage) -> str:
    """Name the export of the payload bucket's ARN."""
    return f"Tickwheel-{stage.name}-Payloads"


def _table(scope: Construct, *, schema: TableSchema, stage: Stage) -> dynamodb.Table:
    warm = stage.warm_throughput.get(schema.name)
    return dynamodb.Table(
        scope,
        "".join(word.capitalize() for word in schema.name.split("_")),
        partition_key=dynamodb.Attribute(name=schema.partition_key, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=schema.sort_key, type=dynamodb.AttributeType.STRING)
        if schema.sort_key
        else None,
        time_to_live_attribute=schema.ttl_attribute,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        # With the service's own key, which costs nothing; a stage with a customer's key encrypts them all with that.
        encryption=dynamodb.TableEncryption.DEFAULT,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        warm_throughput=dynamodb.WarmThroughput(read_units_per_second=warm.reads, write_units_per_second=warm.writes)
        if warm
        else None,
        deletion_protection=stage.retained,
        # Not as other data: a table under protection cannot be deleted, and would stop the rollback of a creation that failed
        # (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithTables.Basics.html).
        removal_policy=cdk.RemovalPolicy.RETAIN if stage.retained else cdk.RemovalPolicy.DESTROY,
    )


def _payload_bucket(scope: Construct, *, retained: bool) -> s3.Bucket:
    # A payload is written once and deleted with its job: old versions would only keep what a tenant deleted.
    bucket = private_bucket(
        scope,
        "Payloads",
        retained=retained,
        rules=[
            s3.LifecycleRule(id="ExpireExports", prefix="exports/", expiration=EXPORT_LIFE),
            s3.LifecycleRule(id="ExpireResults", prefix="results/", expiration=cdk.Duration.days(LIFE.days)),
        ],
    )
    acknowledge(
        bucket,
        "AwsSolutions-S1",
        because="Three functions touch payloads and every job leaves its audit line; an access log would double the requests.",
    )
    return bucket


def secret_on_first_use(stage: Stage) -> str:
    """The ARN without the six characters that Secrets Manager adds: it finds the secret by that, and a function can make it by its name."""
    return f"arn:{cdk.Aws.PARTITION}:secretsmanager:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:secret:{first_use_name(stage.name)}"


def _webhook_secret(scope: Construct, *, retained: bool) -> secretsmanager.CfnSecret:
    secret = secretsmanager.Secret(
        scope,
        "WebhookKeys",
        description="Master keys of the signatures of HTTP targets; docs/targets.md says how to rotate them",
        # Never change it: CloudFormation would generate another key, and every receiver would refuse every request.
        generate_secret_string=secretsmanager.SecretStringGenerator(
            secret_string_template=json.dumps({"current_id": "k1"}),
            generate_string_key="current",
            password_length=64,
            exclude_punctuation=True,
        ),
        removal_policy=retention(retained=retained),
    )
    acknowledge(
        secret,
        "AwsSolutions-SMG4",
        because="Tenants' receivers hold keys derived from it: it is rotated by hand, after they have learnt the next.",
    )
    # Its attribute and not its reference, which is the ARN on AWS but a name on the local cloud.
    return cast("secretsmanager.CfnSecret", secret.node.default_child)
