"""Ask for known vulnerabilities of every pin: OSV's database about Python, what runs in Lambda first, and npm's about npm.

`make check` gives it some seconds, `make audit` a few minutes. A database that cannot be reached, or not in time, is
reported in one line and fails nothing; a vulnerability fails.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

root = Path(__file__).resolve().parent.parent
PINS = (root / "functions" / "requirements.txt", root / "requirements.txt", root / "scripts" / "uv.txt")
LOCK = root / "scripts" / "npm" / "package-lock.json"
NODE = root / ".tools" / "node"

OSV = "https://api.osv.dev/v1/query"
ANSWER_SECONDS = 3
CHECK_SECONDS = 15.0
AUDIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class VulnerabilityReport:
    """What came of asking about one file of pins: found is None when there was no answer, and line then says why."""

    found: tuple[str, ...] | None
    line: str


def audit(pins: Path, *, database: str = OSV, seconds: float) -> VulnerabilityReport:
    """Ask about every pin of a file, for at most so long."""
    name = pins.relative_to(root) if pins.is_relative_to(root) else pins.name
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(pins), "--require-hashes"]
        command += ["--disable-pip", "--vulnerability-service", "osv", "--osv-url", database]
        command += ["--timeout", str(ANSWER_SECONDS), "--progress-spinner", "off", "--format", "json"]
        try:
            asked = subprocess.run(
                [*command, "--output", str(answer)], capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return _unknown(name, f"no answer for all of it within {seconds:.0f} s")
        if not answer.is_file():
            last = (asked.stderr.strip().splitlines() or [f"pip-audit ended with code {asked.returncode}"])[-1]
            return _unknown(name, last[:160])
        dependencies = json.loads(answer.read_text())["dependencies"]
    skipped = [each["name"] for each in dependencies if "skip_reason" in each]
    if skipped or not dependencies:
        return _unknown(name, f"the database says nothing about {', '.join(skipped) or 'any of it'}")
    found = tuple(
        f"{each['name']} {each['version']}: {vulnerability['id']}, fixed in {_fixes(vulnerability)}"
        for each in dependencies
        for vulnerability in each["vulns"]
    )
    return VulnerabilityReport(found, f"known vulnerabilities in {name}: {len(found)} in {len(dependencies)} packages")


def audit_npm(lock: Path, *, registry: str | None = None, seconds: float) -> VulnerabilityReport:
    """Ask about every package of a lock file, for at most so long. registry: None for the machine's own."""
    name = lock.relative_to(root) if lock.is_relative_to(root) else lock.name
    command = [str(NODE / "bin" / "node"), str(NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    command += ["audit", "--package-lock-only", "--json", "--loglevel=silent", "--logs-max=0"]
    command += ["--fetch-retries=0", f"--fetch-timeout={ANSWER_SECONDS * 1000}"]
    command += [] if registry is None else [f"--registry={registry}"]
    try:
        asked = subprocess.run(
            command,
            cwd=lock.parent,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return _unknown(name, f"no answer for all of it within {seconds:.0f} s")
    try:
        answer = json.loads(asked.stdout)
    except ValueError:
        return _unknown(name, f"npm audit ended with code {asked.returncode}")
    if "vulnerabilities" not in answer:
        return _unknown(name, str(answer.get("message") or answer.get("error"))[:160])
    versions = {
        path.rpartition("node_modules/")[2]: each["version"]
        for path, each in json.loads(lock.read_text())["packages"].items()
        if path
    }
    # What is vulnerable by another package names that, which is in the list itself.
    found = tuple(
        f"{package} {versions.get(package, '?')}: {advisory['title']}, {advisory['url']}, in {advisory['range']}"
        for package, each in answer["vulnerabilities"].items()
        for advisory in each["via"]
        if isinstance(advisory, dict)
    )
    return VulnerabilityReport(found, f"known vulnerabilities in {name}: {len(found)} in {len(versions)} packages")


def _unknown(name: Path | str, reason: str) -> VulnerabilityReport:
    return VulnerabilityReport(None, f"known vulnerabilities in {name}: NOT CHECKED: {reason}")


def _fixes(vulnerability: dict[str, list[str]]) -> str:
    return ", ".join(vulnerability["fix_versions"]) or "no version yet"


def main() -> int:
    """Ask about every file of pins; the exit code is 1 for a vulnerability."""
    seconds = AUDIT_SECONDS if "--patient" in sys.argv[1:] else CHECK_SECONDS
    vulnerable = [audit for audit in audits(seconds) if report(audit)]
    return 1 if vulnerable else 0


def audits(seconds: float) -> Iterator[VulnerabilityReport]:
    """One for each file of pins, within so long for all of them; one of npm's takes a moment."""
    ends_at = time.monotonic() + seconds
    yield audit_npm(LOCK, seconds=seconds / 3)
    reason: str | None = None
    for pins in PINS:
        if reason is not None:
            # It would wait for the same answer.
            yield _unknown(pins.relative_to(root), reason)
            continue
        found = audit(pins, seconds=max(1.0, ends_at - time.monotonic()))
        reason = "as above" if found.found is None else None
        yield found


def report(audit: VulnerabilityReport) -> bool:
    """Print it; whether there is a vulnerability."""
    print("\n".join([audit.line, *(audit.found or ())]), flush=True)
    return bool(audit.found)


if __name__ == "__main__":
    sys.exit(main())
