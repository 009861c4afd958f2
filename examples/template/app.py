"""A scheduler as templates, for whoever deploys with CloudFormation or SAM alone: `BUCKET=my-artifacts cdk synth -c stage=prod`.

The zips that they name are uploaded by `publish.py`, into that bucket of the same region.
"""

import os

import aws_cdk as cdk

from tickwheel.cdk import Stage, Tickwheel

# Of nothing that the CDK's bootstrap makes, but of the bucket.
synthesizer = cdk.CliCredentialsStackSynthesizer(
    file_assets_bucket_name=os.environ["BUCKET"], bucket_prefix="tickwheel/"
)
app = cdk.App(default_stack_synthesizer=synthesizer)
stage = Stage.named(app.node.try_get_context("stage") or "prod")
Tickwheel(app, "Tickwheel", stage=stage, resources=True)
app.synth()
