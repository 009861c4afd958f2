"""The components of the API's description: models, which check what is asked, and shapes, which answers have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases, is_typeddict

from functions.api.http.openapi_parts import REFERENCE

_DOCUMENTED = ConfigDict(use_attribute_docstrings=True)


class _Untitled(GenerateJsonSchema):
    """Without titles: each would be its name again."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def _update_class_schema(self, json_schema: Any, cls: type[Any], config: Any) -> None:
        super()._update_class_schema(json_schema, cls, config)
        json_schema.pop("title", None)


def shapes_of(modules: Iterable[ModuleType]) -> dict[str, Any]:
    """Every shape of these modules by its name."""
    return {
        name: shape
        for module in modules
        for name, shape in vars(module).items()
        if is_typeddict(shape) and shape.__module__ == module.__name__
    }


def schemas_of(models: Iterable[type[BaseModel]], shapes: Mapping[str, Any]) -> dict[str, Any]:
    """A schema by each name."""
    for shape in shapes.values():
        shape.__pydantic_config__ = _DOCUMENTED
    described = [*models, *shapes.values()]
    _, found = TypeAdapter.json_schemas(
        [(each.__name__, "validation", TypeAdapter(each)) for each in described],
        ref_template=REFERENCE,
        schema_generator=_Untitled,
    )
    schemas: dict[str, Any] = found["$defs"]
    for name, shape in shapes.items():
        # Docstrings are those of a class alone.
        for base in get_original_bases(shape):
            if base.__name__ in shapes:
                schemas[name]["properties"] |= schemas[base.__name__]["properties"]
    return schemas


def describe_defaults(schemas: Mapping[str, Any]) -> None:
    """State defaults in the descriptions: code generators take a field with a `default` for one that is always present."""
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            if "default" not in field:
                continue
            default = field.pop("default")
            if default is not None:
                words = f"Default: `{json.dumps(default)}`."
                field["description"] = f"{field['description']} {words}" if "description" in field else words
