"""YAML within bounds: of depth, of size, and of what its aliases expand to."""

from collections.abc import Iterator
from typing import Any

from tickwheel.imports.documents import MOST_DEPTH, MOST_NODES, Lined, read_json
from tickwheel.imports.fields import Unreadable

_MOST_DOCUMENTS = 5_000
_FUNCTIONS = {"!Ref": "Ref", "!Condition": "Condition"}
"""Short forms of CloudFormation that are no Fn::…"""


def read_any(text: str) -> Iterator[Any]:
    """The documents of a JSON file, or of a YAML file. Raises Unreadable."""
    if text.lstrip()[:1] in {"{", "["}:
        yield read_json(text)
    else:
        yield from read_yaml(text)


def read_yaml(text: str) -> Iterator[Any]:
    """The documents of a file; objects know their lines. Nothing in it is executed, and no tag makes an object. Raises Unreadable."""
    try:
        import yaml
    except ImportError:
        raise Unreadable("is YAML, which needs a library: pip install 'tickwheel[yaml]'") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml, loader, text)
        for number, node in enumerate(yaml.compose_all(text, Loader=loader)):
            if number >= _MOST_DOCUMENTS:
                raise Unreadable(f"has more than {_MOST_DOCUMENTS} documents")
            if node is not None:
                yield _Reading(yaml).value(node, 0)
    except yaml.YAMLError as error:
        raise Unreadable(f"is not YAML: {' '.join(str(error).split())}") from None


def _check_depth(yaml: Any, loader: Any, text: str) -> None:
    # Before anything is composed: what composes it calls itself.
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        depth += isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent)
        depth -= isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent)
        if depth > MOST_DEPTH:
            raise Unreadable(f"is nested more than {MOST_DEPTH} deep, at line {event.start_mark.line + 1}")
        if count > 2 * MOST_NODES:
            raise Unreadable(f"has more than {MOST_NODES:,} parts")


class _Reading:
    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._scalars = yaml.constructor.SafeConstructor()
        self._left = MOST_NODES

    def value(self, node: Any, depth: int) -> Any:
        # An alias is walked each time that it is named, so what it expands to counts.
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise Unreadable(
                f"expands to more than {MOST_NODES:,} parts or {MOST_DEPTH} levels, at line {node.start_mark.line + 1}"
            )
        if isinstance(node, self._yaml.MappingNode):
            value: Any = self._mapping(node, depth)
        elif isinstance(node, self._yaml.SequenceNode):
            value = [self.value(each, depth + 1) for each in node.value]
        elif node.tag.startswith("tag:yaml.org,2002:"):
            return self._scalar(node)
        else:
            value = node.value
        return value if node.tag.startswith("tag:yaml.org,2002:") else self._tagged(node.tag, value, node)

    def _scalar(self, node: Any) -> Any:
        try:
            return self._scalars.construct_object(node, deep=True)
        except (ValueError, OverflowError, self._yaml.YAMLError):
            return node.value

    def _tagged(self, tag: str, value: Any, node: Any) -> Lined:
        found = Lined({_FUNCTIONS.get(tag, f"Fn::{tag.lstrip('!')}"): value})
        found.line = node.start_mark.line + 1
        return found

    def _mapping(self, node: Any, depth: int) -> Lined:
        found = Lined()
        found.line = node.start_mark.line + 1
        merged: dict[str, Any] = {}
        for key, value in node.value:
            name = self.value(key, depth + 1)
            if key.tag == "tag:yaml.org,2002:merge":
                inner = self.value(value, depth + 1)
                for each in reversed(inner) if isinstance(inner, list) else (inner,):
                    merged.update(each if isinstance(each, dict) else {})
                continue
            # `on:` of a workflow is a truth to YAML 1.1.
            found[key.value if isinstance(name, bool) else str(name)] = self.value(value, depth + 1)
        for name, each in merged.items():
            found.setdefault(name, each)
        return found
