"""Tickwheel in an application of the AWS CDK: `pip install 'tickwheel[cdk]'`.

from aws_cdk import App
from tickwheel.cdk import Stage, Tickwheel

app = App()
Tickwheel(app, "Scheduler", stage=Stage.named("prod"))
app.synth()
"""

try:  # made from this repository's `infra` by `make dist`: there is none in a checkout
    from tickwheel_engine.infra.scheduler import Tickwheel  # pyright: ignore[reportMissingImports]
    from tickwheel_engine.infra.stage import Stage  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error.name} is not installed: pip install 'tickwheel[cdk]'", name=error.name) from None

__all__ = ["Stage", "Tickwheel"]
