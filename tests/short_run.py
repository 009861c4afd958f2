"""Which cases of a test `make test` has, where all of them together take long; `make test-all` has every one."""

from collections.abc import Iterable
from typing import Any

import pytest

from testkit.dynamodb_local import missing_because


def first_of(cases: Iterable[Any], *, most: int = 1) -> list[Any]:
    """Cases for `parametrize`, of which the first few are in the short run."""
    return [case if number < most else _long(case) for number, case in enumerate(cases)]


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`, of which one in so many is in the short run. count: one that does not divide how often their last value recurs."""
    return [_long(case) if number % count else case for number, case in enumerate(cases)]


def moto() -> Any:
    """The engine `moto`, in the short run only where AWS's own engine is not there to run the same test."""
    return "moto" if missing_because() is not None else pytest.param("moto", marks=pytest.mark.long)


def _long(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)
