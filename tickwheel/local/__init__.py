"""The local cloud: the real stacks, deployed by the real CDK CLI to an emulator on this machine."""

from tickwheel.local.settings import AwsSettings
from tickwheel.local.stack import Stack, local_stack

__all__ = ["AwsSettings", "Stack", "local_stack"]
