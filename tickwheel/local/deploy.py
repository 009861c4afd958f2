"""The real CDK CLI, deploying to the local cloud and unable to reach anything else."""

import collections
import ipaddress
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tickwheel.errors import DeployFailed, NotLoopback
from tickwheel.local.home import Home, Progress, quietly
from tickwheel.local.processes import end_group
from tickwheel.local.settings import LOCAL_ACCOUNT, LOCAL_REGION, AwsSettings

API_ENDPOINT_OUTPUT = "ApiEndpoint"

_LAST_LINES = 40


def deploy(
    home: Home,
    aws: AwsSettings,
    *,
    folder: Path,
    progress: Progress = quietly,
    app_folder: Path | None = None,
    bootstrap: bool = True,
    stack: str | None = None,
) -> Mapping[str, str]:
    """Bootstraps and deploys every stack with the context `stage=local`; returns the outputs of all of them by name.

    stack: only that one, by the path that the application gives it, and not those that it needs. `folder` takes the synthesised app and the CDK's own files; `app_folder` is where another app's
    cdk.json is. Raises NotLoopback before anything runs, or DeployFailed with the last lines of the CLI.
    """
    refuse_other_machines(aws.endpoint_url)
    environment = _environment(home, aws, folder)
    cdk = _cdk(home)
    if bootstrap:
        progress("bootstrapping the local account")
        # Not in the app's folder, where the CLI would synthesise the app first.
        _run([*cdk, "bootstrap", f"aws://{LOCAL_ACCOUNT}/{LOCAL_REGION}"], environment, folder, progress)
    progress("deploying the stacks")
    outputs = folder / "outputs.json"
    outputs.unlink(missing_ok=True)
    command = [
        *cdk,
        "deploy",
        *(["--all"] if stack is None else [stack, "--exclusively"]),
        "--require-approval",
        "never",
        "--context",
        "stage=local",
    ]
    command += ["--output", str(folder / "cdk.out"), "--outputs-file", str(outputs), "--progress", "events"]
    command += home.app_options if app_folder is None else []
    _run(command, environment, app_folder or home.app, progress)
    return _read_outputs(outputs)


def diff(home: Home, aws: AwsSettings, *, folder: Path, progress: Progress = quietly) -> None:
    """Raises DeployFailed, with what the CLI prints last, where a deployment from here would change anything."""
    refuse_other_machines(aws.endpoint_url)
    progress("comparing the stacks")
    command = [
        *_cdk(home),
        "diff",
        "--all",
        "--fail",
        "--context",
        "stage=local",
        "--output",
        str(folder / "cdk.out"),
        *home.app_options,
    ]
    _run(command, _environment(home, aws, folder), home.app, progress)


def destroy(
    home: Home,
    aws: AwsSettings,
    *,
    folder: Path,
    progress: Progress = quietly,
    stacks: Sequence[str] = ("--all",),
) -> None:
    """Deletes the stacks that were deployed from `folder`; what they retain stays. Errors as `deploy`.

    stacks: only those, by the paths that the application gives them.
    """
    refuse_other_machines(aws.endpoint_url)
    progress("deleting the stacks")
    command = [*_cdk(home), "destroy", *stacks, "--force", "--context", "stage=local"]
    _run([*command, "--app", str(folder / "cdk.out")], _environment(home, aws, folder), home.app, progress)


def api_endpoint_of(outputs: Mapping[str, str]) -> str:
    """The address of the API among the outputs; raises DeployFailed when the stacks have none."""
    endpoint = outputs.get(API_ENDPOINT_OUTPUT)
    if not endpoint:
        message = f"the deployed stacks have no output {API_ENDPOINT_OUTPUT}; they have {', '.join(outputs) or 'none'}"
        raise DeployFailed(message, lines=())
    return endpoint.rstrip("/")


def refuse_other_machines(endpoint_url: str) -> None:
    """Raises NotLoopback unless the address is a number of the loopback: a name could be made to mean anything."""
    host = urlsplit(endpoint_url).hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise NotLoopback(
            f"refusing to deploy to {endpoint_url!r}: the local stage goes to a loopback address only; "
            "for an AWS account use `make deploy STAGE=...`"
        )


def _cdk(home: Home) -> list[str]:
    return [str(home.cdk), "--no-color", "--no-notices", "--no-version-reporting", "--ci"]


def _environment(home: Home, aws: AwsSettings, folder: Path) -> dict[str, str]:
    # What names an account, a profile or another endpoint is dropped, not overridden: the SDK knows one variable
    # per service, and a profile can carry an endpoint of its own.
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(("AWS_", "CDK_"))}
    nowhere = str(folder / "no-such-file")
    return kept | {
        **aws.as_environment(),
        "PATH": home.search_path,
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "CDK_DEFAULT_ACCOUNT": LOCAL_ACCOUNT,
        "CDK_DEFAULT_REGION": LOCAL_REGION,
        "CDK_HOME": str(folder / "cdk"),  # it caches which account a key belongs to, and `test` is not such a key
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "NO_PROXY": ",".join(filter(None, [kept.get("NO_PROXY", ""), "127.0.0.1", "localhost"])),
    }


def _run(command: Sequence[str], environment: Mapping[str, str], cwd: Path, progress: Progress) -> None:
    last = collections.deque[str](maxlen=_LAST_LINES)
    process = subprocess.Popen(  # noqa: S603
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if text := line.rstrip():
                    last.append(text)
                    progress(text)
            code = process.wait()
        except BaseException:
            end_group(process.pid, grace_seconds=1.0)
            raise
    if code != 0:
        verb = next(word for word in command[1:] if not word.startswith("-"))
        raise DeployFailed(f"`cdk {verb}` failed with code {code}; its last lines:", lines=last)


def _read_outputs(file: Path) -> dict[str, str]:
    try:
        by_stack = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return {name: value for outputs in by_stack.values() for name, value in outputs.items()}
