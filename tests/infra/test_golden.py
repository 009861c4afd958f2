from collections.abc import Callable

from infra.stage import Stage
from scripts.synthesis import Templates
from tests.infra.golden import golden_files


def test_the_templates_are_the_golden_ones(templates_of: Callable[[Stage], Templates]) -> None:
    for file, text in golden_files(templates_of).items():
        assert file.read_text() == text, f"{file.name} changed: if on purpose, run `python -m tests.infra.golden`"
