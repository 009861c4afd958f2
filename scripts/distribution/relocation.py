"""Python source that imports packages under another name.

In the repository `functions`, `infra` and the others are packages of the top level. Installed beside a user's own code they would
collide with folders of the same names, so the wheel has them below one name of its own.
"""

import ast
from collections.abc import Collection, Iterator


class Unmovable(ValueError):
    """An import that cannot be written under another name; the message says how to write it."""


def relocated(source: str, *, packages: Collection[str], under: str) -> str:
    """The same source, with each import of one of these packages taken from below another: `functions.x` as `under.functions.x`.

    Only statements are changed: what names a module in a string says so by `__name__` or `__package__`. Raises Unmovable.
    """
    lines = source.splitlines(keepends=True)
    for line, name, moved in _moves(ast.parse(source), packages, under):
        lines[line] = lines[line].replace(name, moved, 1)
    return "".join(lines)


def _moves(tree: ast.Module, packages: Collection[str], under: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_of(node.module or "", packages):
            yield node.lineno - 1, f"from {node.module} ", f"from {under}.{node.module} "
        if isinstance(node, ast.Import):
            for each in node.names:
                if _is_of(each.name, packages):
                    yield _import(node, each, under)


def _import(node: ast.Import, imported: ast.alias, under: str) -> tuple[int, str, str]:
    line, name = node.lineno - 1, f"import {imported.name}"
    if len(node.names) > 1 or (imported.asname is None and "." in imported.name):
        raise Unmovable(f"line {node.lineno}: write `from … import …` in place of `import {imported.name}`")
    if imported.asname is not None:
        return line, name, f"import {under}.{imported.name}"
    return line, name, f"from {under} import {imported.name}"


def _is_of(module: str, packages: Collection[str]) -> bool:
    return module.partition(".")[0] in packages
