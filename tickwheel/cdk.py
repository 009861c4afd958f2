"""Tickwheel in an application of the AWS CDK: the extra `cdk` of the package.

from aws_cdk import App
from tickwheel.cdk import Stage, Tickwheel

app = App()
Tickwheel(app, "Scheduler", stage=Stage.named("prod"))
app.synth()
"""

try:  # in the wheel `make dist` writes `tickwheel_engine.` before both
    from infra.schedule import InvalidDefinition, Schedule
    from infra.scheduler import Tickwheel
    from infra.scheduler_access import DeployedTickwheel
    from infra.stage import Stage
    from infra.stage_parts import InvalidStage
    from infra.surroundings import Domain, Tables
    from infra.throughput import WarmThroughput
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed: install tickwheel with its extra `cdk`", name=error.name
    ) from None

__all__ = [
    "DeployedTickwheel",
    "Domain",
    "InvalidDefinition",
    "InvalidStage",
    "Schedule",
    "Stage",
    "Tables",
    "Tickwheel",
    "WarmThroughput",
]
