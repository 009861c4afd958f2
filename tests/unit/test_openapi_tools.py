"""The description of the API as tools take it: a linter finds nothing, and TypeScript is made of it that fits."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from functions.api.openapi import document
from tests.pages import blocks, read_page

TOOLS = Path(__file__).parents[2] / ".tools"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


def test_the_linter_finds_nothing_by_its_recommended_rules(description: Path) -> None:
    done = run("@redocly/cli/bin/cli.js", "lint", str(description), "--extends=recommended", "--format=json")

    assert found_in(done.stdout) == []


def test_the_linter_finds_what_is_missing(description: Path) -> None:
    described = json.loads(description.read_text())
    del described["servers"]
    description.write_text(json.dumps(described))

    done = run("@redocly/cli/bin/cli.js", "lint", str(description), "--extends=recommended", "--format=json")

    assert [problem["ruleId"] for problem in found_in(done.stdout)] == ["no-empty-servers"]


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        ('{ tenant: "acme", target: "handler:echo" }', True),
        ('{ tenant: "acme", target: "handler:echo", priority: "high", retry: { attempts: 2 } }', True),
        ('{ tenant: "acme" }', False),
        ('{ tenant: "acme", target: "handler:echo", run_ta: "2030-01-01T00:00:00Z" }', False),
        ('{ tenant: "acme", target: "handler:echo", priority: "urgent" }', False),
    ],
)
def test_a_job_needs_its_tenant_and_its_target_in_typescript(description: Path, body: str, is_taken: bool) -> None:
    made = run("openapi-typescript/bin/cli.js", str(description), "--output", str(description.with_name("api.ts")))
    assert made.returncode == 0, made.stderr
    source = description.with_name("job.ts")
    source.write_text(
        f'import type {{ components }} from "./api";\nexport const job: components["schemas"]["JobBody"] = {body};\n'
    )

    done = run("typescript/bin/tsc", "--noEmit", "--strict", "--lib", "es2022", str(source))

    assert (done.returncode == 0) == is_taken, done.stdout
    assert is_taken or "job.ts(2," in done.stdout


def test_the_typescript_of_the_page_compiles(description: Path) -> None:
    (program,) = blocks(read_page("using.md"), "ts")
    made = run("openapi-typescript/bin/cli.js", str(description), "--output", str(description.with_name("api.ts")))
    assert made.returncode == 0, made.stderr
    source = description.with_name("job.ts")
    source.write_text(program)

    done = run("typescript/bin/tsc", "--noEmit", "--strict", "--lib", "es2022", str(source))

    assert done.returncode == 0, done.stdout


@pytest.fixture
def description(tmp_path: Path) -> Path:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document()))
    return file


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(TOOLS / "node" / "bin" / "node"), str(TOOLS / "node_modules" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | QUIET)


def found_in(output: str) -> list[Any]:
    return json.loads(output)["problems"]
