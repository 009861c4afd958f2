"""What is installed is what was pinned, under licences that are allowed; and what is not known is said."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scripts import install_tools, licences, vulnerabilities
from scripts.licences import Package, findings, page

ROOT = Path(__file__).resolve().parents[2]
PINS = ("requirements.txt", "functions/requirements.txt", "scripts/uv.txt")
LOCK = ROOT / "scripts" / "npm" / "package-lock.json"
HASH = f"--hash=sha256:{'0' * 64}"


@dataclass(frozen=True)
class Asked:
    """Who is asked about a file of pins, by its URL."""

    file: str
    ask: Callable[..., vulnerabilities.VulnerabilityReport]


@pytest.mark.parametrize("file", PINS)
def test_every_pin_is_exact_and_has_hashes(file: str) -> None:
    text = (ROOT / file).read_text().replace("\\\n", "")
    lines = text.splitlines()
    assert lines
    assert [
        line for line in lines if not re.fullmatch(r"[\w.-]+==\S+( ; .+?)?(\s+--hash=sha256:[0-9a-f]{64})+", line)
    ] == []


def test_every_package_of_npm_has_its_integrity() -> None:
    packages = {path: each for path, each in json.loads(LOCK.read_text())["packages"].items() if path}
    assert "node_modules/aws-cdk" in packages
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())


@pytest.mark.parametrize("file", [*PINS, "scripts/npm/package-lock.json"])
def test_no_pin_says_from_where_it_is_fetched(file: str) -> None:
    # Whom to support says nothing about where it is fetched.
    text = re.sub(r'"funding": (\{[^}]*\}|\[[^\]]*\])', "", (ROOT / file).read_text())

    assert not re.search(r"index-url|find-links|://|\"resolved\"", text)


def test_what_runs_in_lambda_is_what_the_tests_run_on() -> None:
    in_lambda, here = (licences.pins(ROOT / file).items() for file in PINS[1::-1])
    assert in_lambda <= here


def test_npm_refuses_another_content_than_the_pinned_one(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "package.json").write_text('{"name": "it", "version": "1.0.0"}')
    with tarfile.open(tmp_path / "it.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    pinned = {"version": "1.0.0", "resolved": "file:it.tgz", "integrity": f"sha512-{'A' * 86}=="}
    wanted = {"name": "top", "version": "1.0.0", "dependencies": {"it": "file:it.tgz"}}
    lock = {**wanted, "lockfileVersion": 3, "packages": {"": wanted, "node_modules/it": pinned}}
    (tmp_path / "package.json").write_text(json.dumps(wanted))
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    node = ROOT / ".tools" / "node"
    npm = [str(node / "bin" / "node"), str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]

    done = subprocess.run([*npm, "ci", "--offline"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "EINTEGRITY" in done.stderr


def test_another_archive_of_dynamodb_local_ends_the_setup(tmp_path: Path) -> None:
    (tmp_path / "other.tgz").write_bytes(b"other")
    with pytest.raises(SystemExit, match=r"other\.tgz is not the pinned one"):
        install_tools.check(tmp_path / "other.tgz")


def test_pip_refuses_another_content_than_the_pinned_one(tmp_path: Path) -> None:
    wheel = tmp_path / "it-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("it-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: it\nVersion: 1.0\n")
    (tmp_path / "pins.txt").write_text(f"it @ {wheel.as_uri()} {HASH}\n")
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--require-hashes", "--target", str(tmp_path / "site")]

    done = subprocess.run([*pip, "-r", str(tmp_path / "pins.txt")], capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_the_licences_are_listed_and_allowed() -> None:
    assert findings(licences.installed(), stored=licences.PAGE.read_text()) == []


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND AGPL-3.0-or-later", "Proprietary", "MIT OR Proprietary"])
def test_a_licence_that_is_not_allowed_is_found(licence: str) -> None:
    packages = [Package("it", "1.0", licence, "PyPI"), Package("other", "1.0", "MIT AND (BSD OR ISC)", "PyPI")]
    (found,) = findings(packages, stored=page(packages))
    assert re.fullmatch(r"it 1\.0: (GPL-3\.0-only|AGPL-3\.0-or-later|Proprietary) is not allowed", found)


def test_a_package_without_a_licence_is_found() -> None:
    packages = [Package("it", "1.0", "", "PyPI")]
    assert findings(packages, stored=page(packages)) == ["it 1.0: none is not allowed"]


def test_a_list_of_other_pins_is_found() -> None:
    now, before = ([Package("it", version, "MIT", "PyPI")] for version in ("1.1", "1.0"))
    assert findings(now, stored=page(before)) == [
        "docs/licences.md is not of these pins: run `python scripts/licences.py`"
    ]


def test_a_known_vulnerability_is_found(pinned: Path) -> None:
    affected = {
        "package": {"name": "it", "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
    }
    with database(lambda: {"vulns": [{"id": "PYSEC-1", "summary": "it is bad", "affected": [affected]}]}) as url:
        report = vulnerabilities.audit(pinned, database=url, seconds=60)

    assert report.found == ("it 1.0: PYSEC-1, fixed in 1.1",)
    assert report.line == "known vulnerabilities in pins.txt: 1 in 1 packages"


def test_a_known_vulnerability_of_npm_is_found(locked: Path) -> None:
    advisory = {"id": 1, "url": "https://github.com/advisories/GHSA-1", "title": "it is bad", "severity": "high"}
    with database(lambda: {"it": [{**advisory, "vulnerable_versions": "<1.1.0"}]}) as url:
        report = vulnerabilities.audit_npm(locked, registry=url, seconds=60)

    assert report.found == ("it 1.0.0: it is bad, https://github.com/advisories/GHSA-1, in <1.1.0",)
    assert report.line == "known vulnerabilities in package-lock.json: 1 in 1 packages"


def test_who_knows_nothing_bad_is_reported(asked: Asked) -> None:
    with database(dict) as url:
        report = asked.ask(url, seconds=60)
    assert (report.found, report.line) == ((), f"known vulnerabilities in {asked.file}: 0 in 1 packages")


def test_who_cannot_be_reached_is_reported_and_finds_nothing(asked: Asked) -> None:
    report = asked.ask("http://127.0.0.1:1/", seconds=60)
    assert report.found is None
    assert report.line.startswith(f"known vulnerabilities in {asked.file}: NOT CHECKED: ")


def test_who_does_not_answer_in_time_is_reported(asked: Asked) -> None:
    report = asked.ask("http://127.0.0.1:1/", seconds=0.01)
    assert report.found is None
    assert report.line.endswith("NOT CHECKED: no answer for all of it within 0 s")


def test_every_file_of_pins_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def nothing_bad(pins: Path, **_: float) -> vulnerabilities.VulnerabilityReport:
        asked.append(pins)
        return vulnerabilities.VulnerabilityReport((), "nothing")

    monkeypatch.setattr(vulnerabilities, "audit", nothing_bad)
    monkeypatch.setattr(vulnerabilities, "audit_npm", nothing_bad)

    assert len(list(vulnerabilities.audits(15))) == len(asked)
    assert set(asked) == {LOCK, *(ROOT / file for file in PINS)}


def test_a_file_that_was_not_asked_about_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = vulnerabilities.VulnerabilityReport(None, "silent")
    monkeypatch.setattr(vulnerabilities, "audit", lambda *_, **__: silent)
    monkeypatch.setattr(vulnerabilities, "audit_npm", lambda *_, **__: silent)

    lines = [each.line for each in vulnerabilities.audits(15)]

    assert lines[:2] == ["silent", "silent"]
    assert lines[2:] == [
        f"known vulnerabilities in {file}: NOT CHECKED: as above" for file in ("requirements.txt", "scripts/uv.txt")
    ]


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    wanted = {"name": "tools", "version": "1.0.0", "dependencies": {"it": "1.0.0"}}
    packages = {"": wanted, "node_modules/it": {"version": "1.0.0", "integrity": "sha512-AA=="}}
    (tmp_path / "package.json").write_text(json.dumps(wanted))
    lock = tmp_path / "package-lock.json"
    lock.write_text(json.dumps({**wanted, "lockfileVersion": 3, "requires": True, "packages": packages}))
    return lock


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    file = tmp_path / "pins.txt"
    file.write_text(f"it==1.0 {HASH}\n")
    return file


@pytest.fixture(params=["database", "registry"])
def asked(request: pytest.FixtureRequest, pinned: Path, locked: Path) -> Asked:
    if request.param == "database":
        return Asked("pins.txt", lambda url, seconds: vulnerabilities.audit(pinned, database=url, seconds=seconds))
    return Asked(
        "package-lock.json", lambda url, seconds: vulnerabilities.audit_npm(locked, registry=url, seconds=seconds)
    )


@contextmanager
def database(answer: Callable[[], dict[str, Any]]) -> Iterator[str]:
    """What answers as OSV does, on the loopback."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps(answer()).encode()
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name in the library
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
