"""Make values of what the scheduler answered."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from tickwheel.errors import Unreachable

T = TypeVar("T")


def read_answer(read: Callable[[Any], T], body: Any) -> T:
    """What `read` makes of an answer; raises Unreachable when it makes nothing of it."""
    try:
        return read(body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"the scheduler's answer is not understood ({error!r}): {json.dumps(body)[:200]}"
        raise Unreachable(message, may_have_been_applied=True) from error
