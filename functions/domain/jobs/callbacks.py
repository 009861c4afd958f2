"""Callbacks of a job: targets that are called with its outcome when it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from functions.domain.errors import Undecodable
from functions.domain.lifecycle import State

PREFIX = "c-"
"""How the identity of a callback's job begins: no other identity that Tickwheel makes has a dash there."""


class CallbackName(StrEnum):
    """When a callback is called."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ON_END = "on_end"


_CALLED: dict[State, frozenset[CallbackName]] = {
    State.SUCCEEDED: frozenset({CallbackName.ON_SUCCESS, CallbackName.ON_END}),
    State.FAILED: frozenset({CallbackName.ON_FAILURE, CallbackName.ON_END}),
    State.EXPIRED: frozenset({CallbackName.ON_FAILURE, CallbackName.ON_END}),
    State.CANCELLED: frozenset({CallbackName.ON_END}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Targets, empty for none. on_success: after a success. on_failure: after a failure for good, an expiry, or when its schedule has given it up. on_end: after any end."""

    on_success: str = ""
    on_failure: str = ""
    on_end: str = ""

    def __bool__(self) -> bool:
        return bool(self.on_success or self.on_failure or self.on_end)

    def named(self) -> Iterator[tuple[CallbackName, str]]:
        """Those that there are, with their targets."""
        for name in CallbackName:
            if target := getattr(self, name.value):
                yield name, target

    def of(self, state: State, *, is_abandoned: bool = False) -> Iterator[tuple[CallbackName, str]]:
        """Those that are called when a job has ended so, with their targets. is_abandoned: cancelled by nobody who knew of it."""
        called = _CALLED.get(state, frozenset()) | ({CallbackName.ON_FAILURE} if is_abandoned else frozenset())
        return (each for each in self.named() if each[0] in called)

    def body(self) -> dict[str, str]:
        """By name, as a request has them."""
        return {name.value: target for name, target in self.named()}


NO_CALLBACKS = Callbacks()


def write_callbacks(callbacks: Callbacks) -> list[str]:
    """As a record has them: what is empty at the end is left out."""
    values = [callbacks.on_success, callbacks.on_failure, callbacks.on_end]
    while values and not values[-1]:
        values.pop()
    return values


def read_callbacks(values: Sequence[object]) -> Callbacks:
    """What `write_callbacks` wrote. Raises Undecodable."""
    texts = [value for value in values if isinstance(value, str)]
    if isinstance(values, str) or len(texts) != len(values) or len(texts) > len(CallbackName):
        raise Undecodable("callbacks are up to three texts")
    return Callbacks(**dict(zip((name.value for name in CallbackName), texts, strict=False)))


def is_callback(identity: str) -> bool:
    """Whether a job is a callback of another."""
    return identity.startswith(PREFIX)
