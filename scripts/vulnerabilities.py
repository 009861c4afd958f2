"""Ask OSV's database for known vulnerabilities of the pins: first of what runs in Lambda, then of everything else.

`make check` gives it some seconds, `make audit` a few minutes. A database that cannot be reached, or not in time, is
told in one line and fails nothing; a vulnerability fails.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

root = Path(__file__).resolve().parent.parent
PINS = (root / "functions" / "requirements.txt", root / "requirements.txt")

OSV = "https://api.osv.dev/v1/query"
ANSWER_SECONDS = 3
CHECK_SECONDS = 15.0
AUDIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of asking about one file of pins: found is None when there was no answer, and line then says why."""

    found: tuple[str, ...] | None
    line: str


def audit(pins: Path, *, database: str = OSV, seconds: float) -> Audit:
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
    return Audit(found, f"known vulnerabilities in {name}: {len(found)} in {len(dependencies)} packages")


def _unknown(name: Path | str, reason: str) -> Audit:
    return Audit(None, f"known vulnerabilities in {name}: NOT CHECKED: {reason}")


def _fixes(vulnerability: dict[str, list[str]]) -> str:
    return ", ".join(vulnerability["fix_versions"]) or "no version yet"


def main() -> int:
    """Ask about both files; the exit code is 1 for a vulnerability."""
    ends_at = time.monotonic() + (AUDIT_SECONDS if "--patient" in sys.argv[1:] else CHECK_SECONDS)
    is_vulnerable = False
    for pins in PINS:
        told = audit(pins, seconds=max(1.0, ends_at - time.monotonic()))
        print("\n".join([told.line, *(told.found or ())]), flush=True)
        is_vulnerable |= bool(told.found)
        if told.found is None:
            break  # the other file would wait for the same answer
    return 1 if is_vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
