"""Python source as data: it is parsed, and never executed."""

import ast
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tickwheel.imports.durations import interval
from tickwheel.imports.fields import Unreadable


class Call:
    """A call in the source, whose function has this last name. line: on which it begins."""

    def __init__(self, name: str, arguments: list[Any], named: Mapping[str, Any], line: int) -> None:
        self.name = name
        self.arguments = arguments
        self.named = named
        self.line = line


def parse_source(text: str) -> ast.Module:
    """The tree of a module. Raises Unreadable."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"is not Python that can be parsed: {error}") from None


def value_of(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> Any:
    """The value of an expression of literals, of names that the module gives one, and of calls, which stay calls. Raises Unreadable."""
    if depth > 20:  # noqa: PLR2004
        raise Unreadable(f"line {node.lineno}: is nested too deeply")
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple() | ast.Set():
            return [value_of(each, names, depth + 1) for each in node.elts]
        case ast.Dict():
            return {
                value_of(key, names, depth + 1): value_of(value, names, depth + 1)
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            }
        case ast.UnaryOp(op=ast.USub()):
            return -_number(value_of(node.operand, names, depth + 1), node)
        case ast.BinOp(op=ast.Mult()):
            return _number(value_of(node.left, names, depth + 1), node) * _number(
                value_of(node.right, names, depth + 1), node
            )
        case ast.Call():
            return _call(node, names, depth)
        case ast.Name() if node.id in names:
            return value_of(names[node.id], names, depth + 1)
        case _:
            raise Unreadable(f"line {node.lineno}: {ast.unparse(node)[:80]!r} is known only when the module runs")


def _number(value: Any, node: ast.expr) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 10**12:
        raise Unreadable(f"line {node.lineno}: {ast.unparse(node)[:80]!r} is no number")
    return value


def _call(node: ast.Call, names: Mapping[str, ast.expr], depth: int) -> Any:
    function = node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    arguments = [value_of(each, names, depth + 1) for each in node.args]
    named = {each.arg: value_of(each.value, names, depth + 1) for each in node.keywords if each.arg is not None}
    if name == "timedelta":
        return _interval(arguments, named, node)
    if name == "dict" and not arguments:
        return named
    return Call(name, arguments, named, node.lineno)


def _interval(arguments: list[Any], named: Mapping[str, Any], node: ast.Call) -> timedelta:
    units = dict(
        zip(("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks"), arguments, strict=False)
    )
    total = timedelta(0)
    for unit, number in {**units, **named}.items():
        total += interval(_number(number, node), unit)
    return total


def assigned_names(tree: ast.Module) -> dict[str, ast.expr]:
    """The values that names of the module are given, the last of each."""
    found: dict[str, ast.expr] = {}
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            found[statement.targets[0].id] = statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            found[statement.target.id] = statement.value
    return found
