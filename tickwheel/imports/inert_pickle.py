"""Pickles as data: nothing that they name is imported, and nothing is called."""

import io
import pickle
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from tickwheel.imports.clock import zone_of
from tickwheel.imports.fields import Unreadable


def _datetime(*arguments: Any) -> datetime:
    """A datetime, whose zone is an Inert that has its name."""
    head, zone = arguments[0], arguments[1] if len(arguments) > 1 else None
    return datetime(head, zone_named(zone) if isinstance(zone, Inert) else zone)  # type: ignore[arg-type]  # noqa: DTZ001


def zone_named(zone: "Inert") -> ZoneInfo:
    """The zone of zoneinfo's or pytz's, which keep its name among what they are made of. Raises Unreadable."""
    names = [each for each in zone.arguments if isinstance(each, str) and each]
    return zone_of(names[0] if names else "UTC" if "utc" in zone.name.lower() else "without a name")


_VALUES: Any = {
    ("datetime", "datetime"): _datetime,
    ("datetime", "date"): date,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
}
"""What may be made: values that do nothing when they are."""
_MOST_BYTES = 1_000_000
_PICKLES: Any = pickle


class Inert:
    """Something that a pickle makes of a class or a function: its name, what it is made of, and its state."""

    def __init__(self, name: str, arguments: tuple[Any, ...] = (), state: Any = None) -> None:
        self.name = name
        self.arguments = arguments
        self.state = state

    def __call__(self, *arguments: Any) -> "Inert":
        """What the pickle calls: an object that remembers with what."""
        flat = [part for each in arguments for part in (each.arguments if isinstance(each, Inert) else (each,))]
        first = arguments[0] if arguments and isinstance(arguments[0], Inert) else self
        name = first.name if self.name.startswith(("copyreg.", "copy_reg.", "builtins.")) else self.name
        return Inert(name, tuple(flat))

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reader(_PICKLES._Unpickler):  # noqa: SLF001  the one in C makes room for any index
    def find_class(self, module: str, name: str) -> Any:
        return _VALUES.get((module, name)) or Inert(f"{module}.{name}")

    def load_newobj(self) -> None:
        arguments = self.stack.pop()
        self.stack.append(self._made(self.stack.pop(), arguments))

    def load_newobj_ex(self) -> None:
        named, arguments = self.stack.pop(), self.stack.pop()
        self.stack.append(self._made(self.stack.pop(), (*arguments, *named.values())))

    def _made(self, kind: Any, arguments: tuple[Any, ...]) -> Any:
        if not (isinstance(kind, Inert) or kind in _VALUES.values()):
            raise pickle.UnpicklingError(f"makes a {type(kind).__name__}")
        return kind(*arguments)

    dispatch = {  # noqa: RUF012  as in the class it extends
        **_PICKLES._Unpickler.dispatch,  # noqa: SLF001
        pickle.NEWOBJ[0]: load_newobj,
        pickle.NEWOBJ_EX[0]: load_newobj_ex,
    }


def read_pickle(data: bytes) -> Any:
    """What a pickle holds, with an Inert for each object of a class. Raises Unreadable."""
    if len(data) > _MOST_BYTES:
        raise Unreadable(f"has a pickle of more than {_MOST_BYTES:,} bytes")
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as error:  # noqa: BLE001  a pickle that is broken breaks in any way
        raise Unreadable(f"has a pickle that cannot be read: {type(error).__name__}: {str(error)[:100]}") from None
