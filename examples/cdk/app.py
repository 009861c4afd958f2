"""A shop: a queue that jobs call, a function that submits them, a nightly report, an alarm. `cdk deploy --all`."""

from dataclasses import replace

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tickwheel.cdk import Schedule, Stage, Tickwheel


class Shop(cdk.Stack):
    """All that the shop needs."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        # A target with a name of its own may stand in the same stack as what submits.
        reports = sqs.Queue(self, "Reports", queue_name="shop-reports", enforce_ssl=True)
        scheduler = Tickwheel(self, "Scheduler", stage=stage, targets=[reports])

        orders = lambda_.Function(
            self,
            "Orders",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): ...  # submits with tickwheel.client"),
            environment={"TICKWHEEL_ENDPOINT": scheduler.endpoint},
        )
        scheduler.grant_submit(orders, tenant="shop")

        Schedule(
            self,
            "Nightly",
            scheduler=scheduler,
            tenant="shop",
            schedule_id="nightly-report",
            cron="0 3 * * *",
            timezone="Europe/Berlin",
            target=reports,
            payload={"report": "sales"},
        )

        late = scheduler.metric_late(period=cdk.Duration.hours(1))
        cloudwatch.Alarm(self, "Late", metric=late, threshold=0.05, evaluation_periods=1)


app = cdk.App()
sizes = Stage.named(app.node.try_get_context("stage") or "dev")
Shop(app, "Shop", stage=replace(sizes, name="shop"))
app.synth()
