"""The site of the docs: `python -m scripts.docs_site` writes it to .build/site; exit code 1 for a link that leads nowhere.

mkdocs takes one folder. It is made of docs/, of pages that stand elsewhere in the repository, and of the description of the
API. A link to what the repository has and the site has not becomes its text.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from functions.api.openapi import document

ROOT = Path(__file__).resolve().parent.parent
ROUTES, BROWSER = "http-api.md", "http-api-browser.html"
DECISIONS = "decisions/index.md"

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "examples/README.md": "examples.md",
}
"""Pages that are no part of docs/, and where they are on the site."""

ASKS_NOBODY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' blob:; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; worker-src blob:; connect-src data: blob:\">"
)
"""The script of the page of the API would fetch its maker's logo."""

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_METHODS = ("get", "put", "post", "patch", "delete")


def gather(folder: Path) -> None:
    """Write all that the site is made of into a folder, instead of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for page in sorted(folder.rglob("*.md")):
        uri = page.relative_to(folder).as_posix()
        page.write_text(with_links_of_the_site(page.read_text(), here=f"docs/{uri}", uri=uri))
    for source, uri in PAGES.items():
        (folder / uri).write_text(with_links_of_the_site((ROOT / source).read_text(), here=source, uri=uri))
    (folder / DECISIONS).write_text(list_of_decisions())
    description = document()
    (folder / ROUTES).write_text(list_of_routes(description))
    (folder / BROWSER).write_text(browser(description))


def build(folder: Path, site: Path) -> int:
    """Make the site of such a folder; says what is wrong. Returns an exit code."""
    # Not `--quiet`: with it, `--strict` sees no warnings either.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site]
    environment = {**os.environ, "TICKWHEEL_DOCS": str(folder), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.returncode


def with_links_of_the_site(markdown: str, *, here: str, uri: str) -> str:
    """A page with its links changed. here: its path in the repository; uri: that on the site."""

    def changed(link: re.Match[str]) -> str:
        text, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return link.group()
        place = normpath(f"{here}/../{path}")
        found = PAGES.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else None)
        if found == "decisions":
            found = DECISIONS
        if found is None:
            return text if (ROOT / place).exists() else link.group()
        return f"[{text}]({relpath(found, Path(uri).parent.as_posix())}{hash_}{anchor})"

    return _LINK.sub(changed, markdown)


def list_of_decisions() -> str:
    """A page with the title of each record."""
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    rows = "\n".join(f"- [{title_of(record)}]({record.name})" for record in records)
    return f"# Decisions\n\nEach record says what was chosen, instead of what, and why.\n\n{rows}\n"


def title_of(record: Path) -> str:
    """Its first heading."""
    return record.read_text().split("\n", 1)[0].removeprefix("# ").replace(".", "\\.", 1)


def list_of_routes(description: dict[str, Any]) -> str:
    """A page with each route, in the order of the description, which leads to all that it takes and answers."""
    rows = "\n".join(
        f"| `{method.upper()}` | [`{path}`]({BROWSER}#{section_of(route)}) | {route['summary']} |"
        for method, path, route in routes(description)
    )
    return (
        f"# HTTP API\n\nMade of the API's own description, which `GET /openapi.json` of a stage answers. "
        f"[Every field, answer and error]({BROWSER}) is a page of its own.\n\n"
        f"| method | path | what it does |\n|---|---|---|\n{rows}\n"
    )


def section_of(route: dict[str, Any]) -> str:
    """Where the page of the API has a route: it calls what has no tag `other`."""
    return f"/other/{route['operationId'].lower()}"


def routes(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation."""
    for path, item in description["paths"].items():
        yield from ((method, path, item[method]) for method in _METHODS if method in item)


def browser(description: dict[str, Any]) -> str:
    """The description as a page that needs no server and asks nothing of others: its script is in it."""
    node = ROOT / ".tools" / "node" / "bin" / "node"
    redocly = ROOT / ".tools" / "node_modules" / "@redocly" / "cli" / "bin" / "cli.js"
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    with tempfile.TemporaryDirectory() as folder:
        page, described = Path(folder) / "page.html", Path(folder) / "openapi.json"
        described.write_text(json.dumps(description))
        command = [node, redocly, "build-docs", described, "--inlineBundle", "--title", "Tickwheel: HTTP API"]
        done = subprocess.run(
            [*command, "--output", page], env={**os.environ, **quiet}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"the page of the API was not made: {done.stderr.strip()}")
        return page.read_text().replace("<head>", f"<head>\n  {ASKS_NOBODY}", 1)


def main() -> int:
    """Make the site, and say where it is."""
    gather(ROOT / ".build" / "docs")
    code = build(ROOT / ".build" / "docs", ROOT / ".build" / "site")
    if code == 0:
        print("the docs are in .build/site/index.html; with their search at http://localhost:8000 after")
        print("    python -m http.server --directory .build/site --bind 127.0.0.1")
    return code


if __name__ == "__main__":
    sys.exit(main())
