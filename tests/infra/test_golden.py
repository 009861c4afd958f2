from scripts.synthesis import Templates
from tests.infra.golden import golden_files


def test_the_templates_are_the_golden_ones(dev: Templates) -> None:
    for file, text in golden_files(dev).items():
        assert file.read_text() == text, f"{file.name} changed: if on purpose, run `python -m tests.infra.golden`"
