"""`make docs`: every page is on the site and every link leads somewhere, also on the site; it asks nothing of others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from functions.api.openapi import document
from scripts import docs_site
from scripts.docs_site import (
    BROWSER,
    PAGES,
    ROOT,
    build,
    gather,
    routes,
    section_of,
    with_links_of_the_site,
)

FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*\bhref=[\"']?(?:https?:)?//[^>]*(?:stylesheet|preconnect|icon)"
    r"|<link\b[^>]*(?:stylesheet|preconnect|icon)[^>]*\bhref=[\"']?(?:https?:)?//|@import|url\([\"']?(?:https?:)?//"
)
"""What a browser would fetch from elsewhere, by itself."""


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "pages"
    gather(folder)
    return folder


@pytest.fixture(scope="module")
def site(gathered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(gathered, folder) == 0
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    pages = [*sources, *(Path(uri).with_suffix(".html") for uri in PAGES.values())]

    assert [str(page) for page in pages if not (site / page).is_file()] == []
    assert (site / "search" / "search_index.json").is_file()


@pytest.mark.parametrize(
    ("page", "added", "said"),
    [
        ("glossary.md", "[nowhere](nowhere.md)", "nowhere.md"),
        ("glossary.md", "[no such part](jobs.md#no-such-part)", "no-such-part"),
        ("one-more.md", "# One more", "one-more.md"),
    ],
)
def test_a_link_that_leads_nowhere_and_a_page_that_is_left_out_are_found(
    gathered: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], page: str, added: str, said: str
) -> None:
    file = gathered / page
    before = file.read_text() if file.exists() else None
    try:
        file.write_text(f"{before or ''}\n\n{added}\n")
        assert build(gathered, tmp_path / "site") != 0
    finally:
        file.unlink() if before is None else file.write_text(before)

    assert said in capfd.readouterr().err


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    files = [file for file in site.rglob("*") if file.suffix in {".html", ".css"} and file.name != BROWSER]

    assert len(files) > 100
    assert {str(file) for file in files if FETCHED.search(file.read_text())} == set()


def test_the_page_of_the_api_may_ask_nobody(site: Path) -> None:
    page = (site / BROWSER).read_text()

    assert page.index("default-src 'none'") < page.index("<script")
    assert not re.search(r"<script[^>]*\bsrc=", page)


def test_every_route_is_linked_to_its_section_of_the_page_of_the_api(site: Path) -> None:
    sections = [section_of(route) for *_, route in routes(document())]
    text, page = (site / "http-api.html").read_text(), (site / BROWSER).read_text()

    assert len(sections) > 50
    assert [section for section in sections if f'{BROWSER}#{section}"' not in text] == []
    assert [section for section in sections if f'data-section-id="{section}"' not in page] == []


@pytest.mark.parametrize(
    ("link", "here", "uri", "expected"),
    [
        ("[a](docs/jobs.md#x)", "README.md", "index.md", "[a](jobs.md#x)"),
        ("[a](docs/decisions/)", "README.md", "index.md", "[a](decisions/index.md)"),
        ("[a](../README.md#b)", "docs/jobs.md", "jobs.md", "[a](index.md#b)"),
        ("[a](../jobs.md)", "docs/decisions/0001-x.md", "decisions/0001-x.md", "[a](../jobs.md)"),
        ("[`a`](../examples/testing)", "docs/testing.md", "testing.md", "`a`"),
        ("[a](../gone.py)", "docs/testing.md", "testing.md", "[a](../gone.py)"),
        ("[a](https://example.com/b.md) [c](#d)", "docs/jobs.md", "jobs.md", "[a](https://example.com/b.md) [c](#d)"),
        ("![a](docs/pictures/a.svg)", "README.md", "index.md", "![a](pictures/a.svg)"),
    ],
)
def test_a_link_of_the_repository_is_one_of_the_site(link: str, here: str, uri: str, expected: str) -> None:
    assert with_links_of_the_site(link, here=here, uri=uri) == expected


def test_a_description_that_is_none_ends_the_build() -> None:
    with pytest.raises(SystemExit, match="the page of the API was not made"):
        docs_site.browser({"no": "description"})
