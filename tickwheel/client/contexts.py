"""Contexts: names for the schedulers that a person works with, each with its endpoint, profile and region.

They are kept in `~/.config/tickwheel`, or where `XDG_CONFIG_HOME` or `TICKWHEEL_CONFIG` says: a file each, so that two
commands at once cannot lose one. They contain no secrets; their files are readable by their owner only all the same.
"""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwheel.client.endpoint import Endpoint
from tickwheel.errors import NoEndpoint

CONFIG_VARIABLE = "TICKWHEEL_CONFIG"
LOCAL = "local"
"""The context that is always there: the local cloud."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FOR_THE_OWNER = 0o600


@dataclass(frozen=True, kw_only=True)
class Context:
    """A scheduler by name. profile: of AWS; region: that requests are signed for; None: as without a context.

    Raises NoEndpoint for a name that is none, and for an address that is none or contains a password.
    """

    name: str
    endpoint: str
    profile: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == LOCAL:
            raise NoEndpoint(
                f"{self.name!r} cannot be the name of a context: use up to 64 letters, digits, dots, dashes and "
                f"underscores, but not {LOCAL!r}, which is the local cloud"
            )
        if "@" in self.endpoint:
            raise NoEndpoint("an endpoint contains no password: requests are signed with the credentials of a profile")
        object.__setattr__(self, "endpoint", Endpoint(self.endpoint).url)


def add_context(context: Context) -> None:
    """Keeps a context. Raises NoEndpoint if there is another one of its name."""
    file = _file_of(context.name)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = {name: value for name, value in asdict(context).items() if name != "name" and value is not None}
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_THE_OWNER)
    except FileExistsError:
        if get_context(context.name) == context:
            return
        raise NoEndpoint(
            f"there is a context {context.name} already: `tickwheel context remove {context.name}` removes it"
        ) from None
    with os.fdopen(opened, "w", encoding="utf-8") as out:
        out.write(json.dumps(written, indent=2) + "\n")


def get_context(name: str) -> Context:
    """The context of a name. Raises NoEndpoint, which lists those that there are."""
    file = _file_of(name)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Context(name=name, **found)
    except FileNotFoundError:
        names = ", ".join(each.name for each in list_contexts())
        there_are = f"there are {names} and {LOCAL}" if names else f"there is only {LOCAL}"
        raise NoEndpoint(
            f"there is no context {name!r}: {there_are}; `tickwheel context add {name} --endpoint …` adds it"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise NoEndpoint(f"{file} is not a context ({error}): remove it, and add the context again") from None


def list_contexts() -> list[Context]:
    """All contexts by name, without that of the local cloud."""
    return [get_context(file.stem) for file in sorted(_folder().glob("contexts/*.json")) if _NAME.fullmatch(file.stem)]


def remove_context(name: str) -> None:
    """Removes a context, which is then no longer in use either. Raises NoEndpoint if there is none of this name."""
    get_context(name)
    if name == context_in_use():
        _in_use().unlink(missing_ok=True)
    _file_of(name).unlink(missing_ok=True)


def use_context(name: str) -> None:
    """Uses a context where a command names none. Raises NoEndpoint if there is none of this name."""
    if name != LOCAL:
        get_context(name)
    file = _in_use()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FOR_THE_OWNER), "w", encoding="utf-8") as out:
        out.write(f"{name}\n")
    draft.replace(file)


def context_in_use() -> str | None:
    """The name of the context that commands use, or None."""
    try:
        return _in_use().read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _folder() -> Path:
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "tickwheel"


def _file_of(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise NoEndpoint(f"{name!r} is not the name of a context")
    return _folder() / "contexts" / f"{name}.json"


def _in_use() -> Path:
    return _folder() / "context"
