"""`python -m soak.page`: the figures and the picture of the last soak, put into the docs."""

from __future__ import annotations

import json
from pathlib import Path

from soak.__main__ import FOLDER
from soak.picture import draw

PAGE = Path("docs") / "soak.md"
PICTURE = Path("docs") / "pictures" / "soak.png"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def with_figures(page: str, figures: str) -> str:
    """The page with other figures between its marks; raises ValueError where it has none."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{figures.strip()}\n\n![The curves]({PICTURE.relative_to('docs')})\n{END}{after}"


def draw_report(report: Path, picture: Path) -> None:
    """The picture of a soak whose report is kept."""
    kept = json.loads(report.read_text("utf-8"))
    draw(picture, kept["points"], rate=kept["rate"], seconds=kept["seconds"], judged_from=kept["judged_from"])


if __name__ == "__main__":
    PAGE.write_text(with_figures(PAGE.read_text("utf-8"), (FOLDER / "figures.md").read_text("utf-8")), "utf-8")
    draw_report(FOLDER / "report.json", PICTURE)
