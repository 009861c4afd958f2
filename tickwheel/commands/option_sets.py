"""Options that several commands share: declared once as the fields of a class, which is one parameter of each command."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin

from typer.models import OptionInfo


@dataclass(kw_only=True)
class OptionSet:
    """Base of a dataclass whose fields are options, or further sets of them.

    A command with a parameter of such a class has its options in that place, and gets an instance. panel: where the help
    shows them.
    """

    panel: ClassVar[str | None] = None

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Surrounds the command."""
        yield self


@dataclass(frozen=True)
class Without:
    """Annotates a parameter whose set of options this command has without these."""

    names: tuple[str, ...]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: with single options in place of their sets."""

    @functools.wraps(command)
    def taking_options(**given: Any) -> None:
        with ExitStack() as stack:
            command(**_arguments_of(command, given, stack))

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in _options_of(command)]
    taking_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    taking_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return taking_options


def _options_of(taker: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(taker).parameters.values():
        kind, left_out = _set_of(parameter)
        if kind is None:
            yield parameter
        else:
            yield from (option for option in _options_in(kind) if option.name not in left_out)


@functools.cache
def _options_in(kind: type[OptionSet]) -> tuple[inspect.Parameter, ...]:
    options = tuple(_options_of(kind))
    return options if kind.panel is None else tuple(_in_panel(option, kind.panel) for option in options)


def _set_of(parameter: inspect.Parameter) -> tuple[type[OptionSet] | None, tuple[str, ...]]:
    annotation, left_out = parameter.annotation, ()
    if get_origin(annotation) is Annotated:
        annotation, mark, *_ = get_args(annotation)
        left_out = mark.names if isinstance(mark, Without) else ()
    is_set = isinstance(annotation, type) and issubclass(annotation, OptionSet)
    return (annotation if is_set else None), left_out


def _in_panel(option: inspect.Parameter, panel: str) -> inspect.Parameter:
    kind, info = get_args(option.annotation)
    shown: OptionInfo = copy(info)
    shown.rich_help_panel = panel
    return option.replace(annotation=Annotated[kind, shown])


def _arguments_of(taker: Callable[..., Any], given: Mapping[str, Any], stack: ExitStack) -> dict[str, Any]:
    """What a command, or a set, is called with: its own options, and its sets, opened."""
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(taker).parameters.values():
        kind, left_out = _set_of(parameter)
        if kind is not None:
            said = {name: value for name, value in given.items() if name not in left_out}
            arguments[parameter.name] = stack.enter_context(kind(**_arguments_of(kind, said, stack)).opened())
        elif parameter.name in given:
            arguments[parameter.name] = given[parameter.name]
    return arguments
