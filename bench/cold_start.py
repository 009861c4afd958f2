"""What a new environment of Lambda does before its first invocation: the CPU that importing a handler takes.

The package is made as for a deployment, bytecode included, and each import is a process that can write nothing beside it. The same
run imports boto3, which says how fast the machine is.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench.budgets import COLD_START_OF_BOTO3
from bench.results import print_table, write_result
from functions.domain.instants import SECOND
from infra.bundling import CodeBundler, LayerBundler
from infra.stage import Stage
from scripts.synthesis import FUNCTIONS, synthesise
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

REPETITIONS = 5

_STAGE = Stage.named("local")
_CONFIRMED = json.dumps(
    {"Item": {"b": {"N": str(_STAGE.wheel.bucket // SECOND)}, "w": {"N": str(_STAGE.wheel.write_shards)}}}
).encode()

_REFERENCE = "boto3"
_PROGRAM = """
import sys, time
sys.path[:0] = sys.argv[2:]
begun = time.process_time()
__import__(sys.argv[1])
print(time.process_time() - begun)
"""


def run(console: Console) -> list[str]:
    """Measure, print, write cold_start.json; a sentence for each handler that breaks its budget."""
    seconds = measure()
    boto3 = seconds[_REFERENCE]
    rows = {name: f"{1_000 * cpu:,.0f} ms, {cpu / boto3:.2f} of import boto3" for name, cpu in seconds.items()}
    print_table(console, "CPU of a cold start, imports", of="module", figure="median", rows=rows)
    write_result(
        "cold_start.json", {"repetitions": REPETITIONS, "cpu_ms": {k: round(1e3 * v) for k, v in seconds.items()}}
    )
    return [
        f"cold start, {name}: {1_000 * cpu:.0f} ms of CPU, above the budget of {COLD_START_OF_BOTO3:g} times import boto3"
        for name, cpu in seconds.items()
        if name != _REFERENCE and cpu > COLD_START_OF_BOTO3 * boto3
    ]


def measure() -> Mapping[str, float]:
    """Seconds of CPU, by the function, and of boto3."""
    modules = {name: f"functions.{name}.handler" for name in FUNCTIONS} | {_REFERENCE: _REFERENCE}
    templates = synthesise(_STAGE)
    found: dict[str, list[float]] = {name: [] for name in modules}
    with tempfile.TemporaryDirectory() as folder, LoopbackServer(_Store, poll_seconds=0.05) as store:
        layer, code = Path(folder) / "layer", Path(folder) / "code"
        LayerBundler(host=True).try_bundle(str(layer))
        CodeBundler(host=True).try_bundle(str(code))
        for _ in range(REPETITIONS):  # in turns, so that a slow minute of the machine is everybody's
            for name, module in modules.items():
                variables = templates.environment(name) if name in FUNCTIONS else {}
                environment = _LAMBDA | {key: _value(key, value) for key, value in variables.items()}
                environment["AWS_ENDPOINT_URL"] = store.url
                found[name].append(_cpu_of(module, environment, layer / "python", code))
    return {name: median(each) for name, each in found.items()}


class _Store(KeptAliveRequest):
    """What a handler asks while it is imported is whether the constants of its stage are those of the first deployment."""

    def do_POST(self) -> None:  # noqa: N802
        self.read_body()
        self.send_response(200)
        self.send_header("Content-Length", str(len(_CONFIRMED)))
        self.end_headers()
        self.wfile.write(_CONFIRMED)


_LAMBDA = {
    "AWS_LAMBDA_FUNCTION_NAME": "function",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
}


def _cpu_of(module: str, environment: Mapping[str, str], *paths: Path) -> float:
    command = [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, module, *map(str, paths)]
    printed = subprocess.run(command, env=dict(environment), check=True, stdout=subprocess.PIPE, text=True)
    return float(printed.stdout)


def _value(name: str, value: Any) -> str:
    """Where a template names a resource, anything of the right form."""
    if isinstance(value, str):
        return value
    return _LISTS.get(name, name.lower())


_LISTS = {
    "OPERATORS": '["*"]',
    "READY_QUEUE_URLS": '["a", "b", "c", "d"]',
    "SUBMISSION_QUEUE_URLS": '["e"]',
    "REFUSED_QUEUE_URLS": '["f"]',
    "FILES_BUCKET": '["g"]',
}
