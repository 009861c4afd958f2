import json
from pathlib import Path

import pytest

from scripts.synthesis import ROOT
from soak.page import BEGIN, END, PAGE, draw_report, with_figures


def test_figures_take_the_place_of_those_before() -> None:
    page = with_figures(f"# Soak\n{BEGIN}\nold\n{END}\nmore\n", "new\n")
    assert page.startswith(f"# Soak\n{BEGIN}\nnew\n")
    assert page.endswith(f"{END}\nmore\n")
    assert "old" not in page


def test_the_page_has_a_place_for_them() -> None:
    assert "figures!" in with_figures((ROOT / PAGE).read_text("utf-8"), "figures!")


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="has no"):
        with_figures("# Soak", "figures")


def test_the_picture_is_drawn_of_the_report(tmp_path: Path) -> None:
    report, picture = tmp_path / "report.json", tmp_path / "soak.svg"
    points = {"lag p50": [[15.0, 400.0], [45.0, 500.0]], "oldest bucket": [[0.0, 86_400.0]]}
    report.write_text(json.dumps({"points": points, "rate": 2, "seconds": 1_800, "judged_from": 600}))
    draw_report(report, picture)
    assert "30 minutes at 2 jobs a second" in picture.read_text("utf-8")
