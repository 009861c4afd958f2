"""Metric math, as far as alarms use it: arithmetic, comparisons, IF and FILL, over one datapoint of each metric.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html: where a metric has no datapoint, what is
worked out of it has none either; a comparison is 1 or 0.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class UnknownId(ValueError):
    """An expression names what no metric is called."""


def evaluate(expression: str, values: Mapping[str, float | None]) -> float | None:
    """The value of an expression at one period; None where it has none. values: by id, None where there is no datapoint."""
    return _value(ast.parse(expression.replace("\n", " "), mode="eval").body, values)


def _value(node: ast.expr, values: Mapping[str, float | None]) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            if name not in values:
                raise UnknownId(f"{name!r} is not one of {', '.join(values)}")
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = _value(operand, values)
            return None if found is None else -found
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _both(left, right, values, lambda one, other: one / other if other else None)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _both(left, right, values, _BINARY[type(op)])
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            return _both(left, right, values, lambda one, other: float(_COMPARED[type(op)](one, other)))
        case ast.Call(func=ast.Name(id="IF"), args=[condition, then, otherwise]):
            is_so = _value(condition, values)
            return None if is_so is None else _value(then if is_so else otherwise, values)
        case ast.Call(func=ast.Name(id="FILL"), args=[series, ast.Constant(value=int() | float() as filling)]):
            found = _value(series, values)
            return float(filling) if found is None else found
        case _:
            raise NotImplementedError(ast.unparse(node))


def _both(
    left: ast.expr, right: ast.expr, values: Mapping[str, float | None], work_out: Callable[[float, float], Any]
) -> float | None:
    one, other = _value(left, values), _value(right, values)
    return None if one is None or other is None else work_out(one, other)
