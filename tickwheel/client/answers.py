"""Make values of what the scheduler answered."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from tickwheel.errors import Unreachable

T = TypeVar("T")


def read_answer(read: Callable[[Any], T], body: Any, *, is_secret: bool = False) -> T:
    """What `read` makes of an answer; raises Unreachable when it makes nothing of it, without repeating a secret one."""
    try:
        return read(body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = "the scheduler's answer is not understood"
        if is_secret:
            raise Unreachable(message, may_have_been_applied=True) from None
        message += f" ({error!r}): {json.dumps(body)[:200]}"
        raise Unreachable(message, may_have_been_applied=True) from error
