"""Gemini's dialect of tool schemas: the subset of OpenAPI 3.0 that its Schema type has (ai.google.dev/api/caching#Schema)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

__all__ = ["openapi"]

Schema: TypeAlias = dict[str, Any]

_SAME = (
    "title", "description", "default", "pattern", "minItems", "maxItems", "minLength", "maxLength",
    "minProperties", "maxProperties", "minimum", "maximum", "nullable",
)  # fmt: skip
"""Keywords that both dialects have, with the same meaning."""

_SAID_ANOTHER_WAY = frozenset(
    {"type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "format"}
)
_SILENT = frozenset(
    {"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "examples", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that say nothing about a value, or are resolved where they are referred to."""

_FORMATS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "string": frozenset({"enum", "date-time"}),
        "number": frozenset({"float", "double"}),
        "integer": frozenset({"int32", "int64"}),
    }
)
"""The formats that every Gemini model takes; others answer «only 'enum' and 'date-time' are supported for STRING type»."""


def openapi(schema: Schema, lost: list[str]) -> Schema:
    """Give an object schema of JSON Schema in Gemini's dialect, and add to `lost` what it has no word for."""
    return _Dialect(schema, lost).of(schema, "", ())


class _Dialect:
    """Turns one schema; references are looked up in its root and spelt out."""

    def __init__(self, root: Schema, lost: list[str]) -> None:
        self._root = root
        self._lost = lost

    def of(self, schema: object, place: str, through: tuple[str, ...]) -> Schema:
        """Give a schema; `through` are the references that led to it."""
        if not isinstance(schema, dict):
            return {"type": "string"} if schema is not False else {"type": "string", "description": "Leave this out."}
        merged, through = self._spelt_out(schema, place, through)
        for word in merged:
            if word not in _SAME and word not in _SAID_ANOTHER_WAY and word not in _SILENT:
                self._lose(place, word)
        out: Schema = {word: merged[word] for word in _SAME if word in merged}
        self._type(merged, out, place)
        self._cases(merged, out, place, through)
        self._values(merged, out, place)
        self._inside(merged, out, place, through)
        return out

    def _lose(self, place: str, word: str) -> None:
        self._lost.append(f"{place}.{word}" if place else word)

    def _spelt_out(self, schema: Schema, place: str, through: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Put in what a schema refers to and what it is made of; a reference into itself ends as any object."""
        out = {word: value for word, value in schema.items() if word not in {"$ref", "allOf"}}
        sources: list[object] = list(schema.get("allOf", ()))
        reference = schema.get("$ref")
        if reference in through:
            self._lose(place, "$ref to itself")
            return {"type": "object", **out}, through
        if isinstance(reference, str):
            through = (*through, reference)
            sources.insert(0, self._found(reference, place))
        for source in sources:
            part, through = self._spelt_out(source, place, through) if isinstance(source, dict) else ({}, through)
            out = {
                **part,
                **out,
                **(
                    {"properties": {**part.get("properties", {}), **out.get("properties", {})}}
                    if "properties" in part
                    else {}
                ),
                **({"required": [*part["required"], *out.get("required", [])]} if "required" in part else {}),
            }
        return out, through

    def _found(self, reference: str, place: str) -> object:
        target: object = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        if target is None:
            self._lose(place, f"$ref to {reference}")
        return target

    def _type(self, schema: Schema, out: Schema, place: str) -> None:
        """Say one type; null among several is said by `nullable`, and of several others the first is taken."""
        named = schema.get("type")
        types = [each for each in (named if isinstance(named, list) else [named]) if each]
        if "null" in types and len(types) > 1:
            out["nullable"] = True
        real = [each for each in types if each != "null"]
        if len(real) > 1:
            self._lose(place, f"type beside {real[0]}")
        if real:
            out["type"] = real[0]
        elif types:
            out |= {"type": "string", "nullable": True}
        elif "properties" in schema:
            out["type"] = "object"
        elif "items" in schema:
            out["type"] = "array"

    def _cases(self, schema: Schema, out: Schema, place: str, through: tuple[str, ...]) -> None:
        """Say `oneOf` as `anyOf`, and a case that is null by `nullable`."""
        cases = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        real = [case for case in cases if not (isinstance(case, dict) and case.get("type") == "null")]
        if len(real) < len(cases):
            out["nullable"] = True
        shown = [
            self.of(case, f"{place}.anyOf[{index}]" if place else f"anyOf[{index}]", through)
            for index, case in enumerate(real)
        ]
        if len(shown) == 1:
            out |= {word: value for word, value in shown[0].items() if word not in out}
        elif shown:
            out["anyOf"] = shown
            out.pop("type", None)

    def _values(self, schema: Schema, out: Schema, place: str) -> None:
        """Say which values and formats there are: only strings may be listed."""
        listed = [schema["const"]] if "const" in schema else schema.get("enum", [])
        texts = [value for value in listed if isinstance(value, str) and value]
        if None in listed:
            out["nullable"] = True
        if any(value not in texts and value is not None for value in listed):
            self._lose(place, "enum" if "enum" in schema else "const")
        elif texts and out.get("type", "string") == "string":
            out |= {"type": "string", "enum": texts}
        if "type" not in out and "anyOf" not in out:
            self._lose(place, "a type: none is said, and text is taken")
            out["type"] = "string"
        if "format" in schema:
            if schema["format"] in _FORMATS.get(str(out.get("type")), ()):
                out["format"] = schema["format"]
            else:
                self._lose(place, "format")

    def _inside(self, schema: Schema, out: Schema, place: str, through: tuple[str, ...]) -> None:
        """Say what objects and arrays hold."""
        if out.get("type") == "object" and schema.get("properties"):
            at = f"{place}.properties" if place else "properties"
            out["properties"] = {
                name: self.of(each, f"{at}.{name}", through) for name, each in schema["properties"].items()
            }
            required = [name for name in dict.fromkeys(schema.get("required", ())) if name in out["properties"]]
            if required:
                out["required"] = required
        elif out.get("type") == "array":
            out["items"] = self.of(
                schema.get("items", {"type": "string"}), f"{place}.items" if place else "items", through
            )
