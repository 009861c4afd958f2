"""Entry of the CDK: `cdk deploy --all --context stage=dev`."""

import os
import sys
from pathlib import Path

try:
    import aws_cdk as cdk
except ModuleNotFoundError:
    # `cdk` ran the system's Python: go on in the project's own, if that is not where this already is.
    python = Path(__file__).resolve().parent / ".venv" / "bin" / "python"
    if not python.is_file() or Path(sys.prefix) == python.parent.parent:
        sys.exit("aws-cdk-lib is not installed: run `make setup`, then `make deploy STAGE=dev` or `cdk deploy --all`")
    os.execv(python, [str(python), __file__])  # noqa: S606  no shell is wanted

from infra.scheduler import Tickwheel
from infra.stage import Stage

app = cdk.App()
stage = Stage.named(app.node.try_get_context("stage") or "dev")
handlers = app.node.try_get_context("handlers")
environment = (app.node.try_get_context("handlers_environment") or {}) if handlers is not None else {}
Tickwheel(app, stage.name, stage=stage, handlers=handlers, handlers_environment=environment)
app.synth()
