"""The handlers of a folder of Python modules, by name: read, not imported.

What they import is installed for Lambda, which need not be this machine; and to deploy runs no code of theirs.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import functions
from functions.domain.targets.handler_names import BUILT_IN

DECORATOR = "handler"
MODULE = "tickwheel.handlers"
"""Where users import it from."""

OWN_FOLDER = Path(next(iter(functions.__path__))).resolve() / "worker" / "handlers"
"""The folder of the handlers that every stage has; a fork may have put its own beside them."""

_OWN_PACKAGE = f"{functions.__name__}.worker.handlers"
_SKIPPED = re.compile(r"test_.*|.*_test|tests|conftest|__pycache__|\..*")
"""Modules and folders beside handlers that run nowhere."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class InvalidHandlers(ValueError):
    """A folder of handlers that cannot be deployed; the message says where, and what to do."""


@dataclass(frozen=True, slots=True)
class UserHandlers:
    """A package of handlers: its folder, and the modules that register them by their names."""

    folder: Path
    modules: Mapping[str, str]

    @property
    def package(self) -> str:
        """The name under which its modules import each other."""
        return self.folder.name

    def sources(self) -> Iterator[Path]:
        """Its files, in order, without what runs nowhere."""
        yield from _files(self.folder)


def read_handlers(folder: str | Path) -> UserHandlers:
    """What a folder registers. It is deployed as the package of its own name. Raises InvalidHandlers."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise InvalidHandlers(f"handlers is {str(folder)!r}, and {place} is no folder: use that of a Python package")
    _check_package(place)
    modules = _modules_of(place, package=place.name, origins={MODULE})
    if not modules:
        raise InvalidHandlers(
            f"{place} has no handlers: write `from {MODULE} import {DECORATOR}`, and @{DECORATOR} above a function"
        )
    for name in sorted(modules.keys() & own_handlers().keys()):
        raise InvalidHandlers(
            f"{place}: {modules[name]} has a handler called {name!r}, as every stage has: use another name"
        )
    return UserHandlers(place, modules)


def own_handlers() -> Mapping[str, str]:
    """Those of this package: of every stage, and of a fork that has added its own. Raises InvalidHandlers."""
    origins = {_OWN_PACKAGE, f"{_OWN_PACKAGE}.registry"}
    return _modules_of(OWN_FOLDER, package=_OWN_PACKAGE, origins=origins, skipped={"registry"})


def has_more_than_built_in(names: Collection[str]) -> bool:
    """Whether a stage must be told what it has."""
    return set(names) != BUILT_IN


def _check_package(place: Path) -> None:
    name, ours = place.name, functions.__name__.partition(".")[0]
    if not name.isidentifier():
        raise InvalidHandlers(f"{place} cannot be imported as {name!r}: rename the folder to letters, digits and _")
    if name == ours:
        raise InvalidHandlers(
            f"{place} is called {name!r}, as the folder of Tickwheel's own functions in this checkout: rename it, or deploy with "
            "the installed `tickwheel[cdk]`, where those stand below another name"
        )
    if name in {"tickwheel", *sys.stdlib_module_names}:
        raise InvalidHandlers(f"{place} is called {name!r}, as a package that its code needs: rename it")


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if _SKIPPED.fullmatch(path.stem if path.suffix == ".py" else path.name):
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _modules_of(
    folder: Path, *, package: str, origins: Collection[str], skipped: Collection[str] = ()
) -> dict[str, str]:
    """The handlers below a folder, each with its module."""
    found: dict[str, str] = {}
    for path in _files(folder):
        if path.suffix != ".py" or path.stem in skipped:
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        module = ".".join([package, *(part for part in parts if part != "__init__")])
        for name, line in _registered(path, origins):
            if name in found:
                raise InvalidHandlers(
                    f"{path}:{line}: {found[name]} has a handler called {name!r} already: use another"
                )
            found[name] = module
    return found


def _registered(path: Path, origins: Collection[str]) -> Iterator[tuple[str, int]]:
    """The names that a module registers when it is imported, with the lines that say so."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidHandlers(f"{path}:{line}: {getattr(error, 'msg', error)}") from None
    known = _Known(tree, origins)
    decorators: set[int] = set()
    for function in _at_the_top(tree.body):
        for decorator in function.decorator_list:
            if known.is_it(decorator):
                decorators.add(id(decorator))
                yield _checked(function.name, path, decorator), decorator.lineno
            elif isinstance(decorator, ast.Call) and known.is_it(decorator.func):
                decorators.update((id(decorator), id(decorator.func)))
                yield _checked(_name_in(decorator, function, path), path, decorator), decorator.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and known.is_it(node.func) and id(node) not in decorators:
            raise InvalidHandlers(
                f"{path}:{node.lineno}: register handlers with @{DECORATOR} above functions at the top of a module: their names "
                "are read without running the code"
            )


class _Known:
    """What the decorator is called in a module."""

    def __init__(self, tree: ast.Module, origins: Collection[str]) -> None:
        self._names: set[str] = set()
        self._modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                for each in node.names:
                    if node.module in origins and each.name == DECORATOR:
                        self._names.add(each.asname or each.name)
                    if f"{node.module}.{each.name}" in origins:
                        self._modules.add(each.asname or each.name)
            elif isinstance(node, ast.Import):
                self._modules.update(each.asname or each.name for each in node.names if each.name in origins)

    def is_it(self, node: ast.expr) -> bool:
        """Whether an expression is the decorator."""
        if isinstance(node, ast.Name):
            return node.id in self._names
        return isinstance(node, ast.Attribute) and node.attr == DECORATOR and ast.unparse(node.value) in self._modules


def _at_the_top(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node
            case ast.If() | ast.Try() | ast.With():
                for field in ("body", "orelse", "finalbody"):
                    yield from _at_the_top(getattr(node, field, []))
                for caught in getattr(node, "handlers", []):
                    yield from _at_the_top(caught.body)
            case _:
                pass


def _name_in(decorator: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> str:
    match decorator.args, decorator.keywords:
        case ([], []):
            return function.name
        case ([ast.Constant(value=str(name))], []):
            return name
        case _:
            raise InvalidHandlers(
                f'{path}:{decorator.lineno}: write the name of the handler as a text, as @{DECORATOR}("{function.name}"): it is '
                "read without running the code"
            )


def _checked(name: str, path: Path, decorator: ast.expr) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidHandlers(
            f"{path}:{decorator.lineno}: a handler cannot be called {name!r}: use 1 to 64 of A-Z a-z 0-9 _ . -"
        )
    return name
