"""The schemas of tools, as any provider takes them, read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from reprlib import repr as shortened
from typing import Any

from palaver.dialects.lists import require_finite
from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.providers import Item

_TOOLS_WANTED = "Pass a list of the dicts that the provider gets."

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema", "format")
"""The keys of what a tool takes; the last is a custom tool's, which may hold a grammar."""


def tool_specs(tools: object) -> tuple[tuple[Item, ...], tuple[ToolSpec, ...]]:
    """Return tool schemas of any dialect as the caller passed them, and read. A tool that the provider runs itself has only a name.

    Raises:
        InvalidInput: They are not a list of schemas.
    """
    if tools is None:
        return (), ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise InvalidInput(f"The tools are {shortened(tools)}, not a list.", hint=_TOOLS_WANTED)
    given = tuple(tools)
    for index, tool in enumerate(given):
        if not isinstance(tool, Mapping):
            raise InvalidInput(f"Item {index} of the tools is {shortened(tool)}, not a schema.", hint=_TOOLS_WANTED)
        require_finite(tool, f"Item {index} of the tools")
    return given, tuple(spec for tool in given for spec in _specs(tool))


def _specs(tool: Item) -> Iterator[ToolSpec]:
    declared = tool.get("functionDeclarations") or tool.get("function_declarations")
    group: dict[str, Any] = {}
    if tool.get("type") == "namespace":  # of Responses: a group of tools
        declared = tool.get("tools")
        group = {"group": {name: str(tool.get(name) or "") for name in ("name", "description")}}
    for declaration in declared if isinstance(declared, list | tuple) else [tool]:
        if not isinstance(declaration, Mapping):
            raise InvalidInput(f"A tool declares {shortened(declaration)}, not a function.", hint=_TOOLS_WANTED)
        inner = (declaration.get(key) for key in ("function", "custom", "toolSpec"))
        said: Item = next((value for value in inner if isinstance(value, Mapping)), declaration)
        schema = next((said[key] for key in _SCHEMAS if key in said), None)
        if isinstance(schema, Mapping) and schema.keys() == {"json"}:  # of Converse
            schema = schema["json"]
        yield ToolSpec(
            name=str(said.get("name") or said.get("type") or ""),
            description=str(said.get("description") or ""),
            parameters=schema if isinstance(schema, Mapping) else {},
            **group,
        )
