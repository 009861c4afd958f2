"""Source that imports packages under another name: what is changed, and what is not."""

import ast

import pytest

from scripts.distribution.relocation import Unmovable, relocated

PACKAGES = ("functions", "infra")


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("from functions.domain.wheel import Wheel\n", "from engine.functions.domain.wheel import Wheel\n"),
        ("from functions import domain\n", "from engine.functions import domain\n"),
        ("import functions\n", "from engine import functions\n"),
        ("import infra.stage as stages\n", "import engine.infra.stage as stages\n"),
        (
            "from infra.stage import (\n    Stage,  # from infra.stage import\n)\n",
            "from engine.infra.stage import (\n    Stage,  # from infra.stage import\n)\n",
        ),
        (
            "def f():\n    from functions.api import handler\n",
            "def f():\n    from engine.functions.api import handler\n",
        ),
        (
            "if TYPE_CHECKING:\n    from infra.api import Api\n",
            "if TYPE_CHECKING:\n    from engine.infra.api import Api\n",
        ),
    ],
)
def test_an_import_of_a_package_is_taken_from_below_the_new_name(source: str, moved: str) -> None:
    assert relocated(source, packages=PACKAGES, under="engine") == moved


@pytest.mark.parametrize(
    "source",
    [
        "from functionsmore.domain import x\n",
        "import infrared\n",
        "from .functions import x\n",
        '"""from functions.domain import x"""\n',
        'name = "functions.domain"  # import functions\n',
        "functions = 1\n",
        "from collections import functions\n",
    ],
)
def test_what_only_looks_like_one_stays(source: str) -> None:
    assert relocated(source, packages=PACKAGES, under="engine") == source


@pytest.mark.parametrize("source", ["import functions.domain\n", "import functions, json\n"])
def test_an_import_that_binds_another_name_below_is_refused_with_what_to_write(source: str) -> None:
    with pytest.raises(Unmovable, match=r"line 1: write `from … import …` in place of `import functions"):
        relocated(source, packages=PACKAGES, under="engine")


def test_what_is_moved_still_parses_and_imports_the_same_names() -> None:
    source = "from functions.a import (\n    b as c,\n    d,\n)\nimport infra.e as f\n"

    names = {
        each.asname or each.name
        for node in ast.walk(ast.parse(relocated(source, packages=PACKAGES, under="x")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in node.names
    }

    assert names == {"c", "d", "f"}
