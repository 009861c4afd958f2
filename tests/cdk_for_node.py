"""The CDK for Node, which the one for Python has inside: what `npm install aws-cdk-lib constructs` would bring."""

from __future__ import annotations

import tarfile
from importlib import import_module
from pathlib import Path

PACKAGES = {
    "aws-cdk-lib": "aws_cdk",
    "constructs": "constructs",
    "@aws-cdk/cloud-assembly-schema": "aws_cdk.cloud_assembly_schema",
}


def install_cdk(node_modules: Path) -> None:
    """Unpack it where Node looks for it."""
    for package, module in PACKAGES.items():
        (archive,) = (Path(str(import_module(module).__file__)).parent / "_jsii").glob("*.tgz")
        target = node_modules / package
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(target, filter="data")  # all of it is in a folder `package`
        (target / "package").rename(target.with_name(f"{target.name}.unpacked"))
        target.rmdir()
        target.with_name(f"{target.name}.unpacked").rename(target)
