"""JSON Schema: whether a schema is one, and whether everything it says about a value can be checked.

Answers are judged by :mod:`palaver.tools.judging`, like the arguments of tools. It lets words pass that it does not know. For arguments that is
right, the tool looks at them itself; an answer nobody looks at again. So a schema that says more than can be judged is refused when it is
made (json-schema.org/draft/2020-12: core, section 10; validation, section 6). `format` is an annotation there, and none of our business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.errors import InvalidPrompt

__all__ = ["examine"]

Schema: TypeAlias = Mapping[str, Any] | bool

_ONE = frozenset({"items", "additionalProperties", "not"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NOT_JUDGED = frozenset({
    "if", "then", "else", "contains", "minContains", "maxContains", "propertyNames", "dependentRequired", "dependentSchemas",
    "dependencies", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "$dynamicRef", "$recursiveRef", "$anchor",
})  # fmt: skip
_SHOWN = 80


def examine(schema: object) -> None:
    """See that a schema is one, and that all it says can be checked.

    Args:
        schema: The schema, of JSON's types.

    Raises:
        InvalidPrompt: It is none; it says something that cannot be checked; or a reference leads nowhere.
    """
    waiting: list[tuple[str, object]] = [("", schema)]
    while waiting:
        place, each = waiting.pop()
        if isinstance(each, bool):
            continue
        if not isinstance(each, Mapping):
            raise InvalidPrompt(f"{place or 'The format'} is a {type(each).__name__}, not a JSON schema.")
        for word, value in each.items():
            at = f"{place}.{word}" if place else str(word)
            _word(word, value, at, schema)
            waiting.extend(_inside(word, value, at))


def _target(reference: str, root: object) -> Schema | None:
    """Follow a reference into its own document (RFC 6901); None when it leads nowhere."""
    if not reference.startswith("#"):
        return None
    found: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list | tuple) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found if isinstance(found, Mapping | bool) else None


def _types_of(value: object) -> tuple[object, ...]:
    """Give the types that the word `type` names, one or several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _show(value: object) -> str:
    """Write a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# --- what the words hold ---------------------------------------------------------------------------------------------------


def _inside(word: str, value: object, at: str) -> Iterator[tuple[str, object]]:
    """Give the schemas that a word holds, each with its place."""
    if word in _ONE:
        yield at, value
    elif word in _LISTED and isinstance(value, list | tuple):
        yield from ((f"{at}[{index}]", each) for index, each in enumerate(value))
    elif word in _NAMED and isinstance(value, Mapping):
        yield from ((f"{at}.{name}", each) for name, each in value.items())


def _word(word: str, value: object, at: str, root: object) -> None:
    """Refuse a value that the word cannot have, or that would only fail when an answer is judged."""
    if word in _NOT_JUDGED:
        raise InvalidPrompt(f"{at} of the format cannot be checked.", hint="Say it in other words of JSON Schema.")
    if not _VALUES.get(word, _anything)(value):
        raise InvalidPrompt(f"{at} of the format has a value that cannot be one of its kind: {_show(value)}.")
    if word == "$ref" and _target(str(value), root) is None:
        raise InvalidPrompt(f"{at} of the format leads nowhere: {value!r}.", hint="References stay in the schema.")


_JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _anything(_value: object) -> bool:
    return True


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _pattern(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


_VALUES: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
        "multipleOf": lambda value: _number(value) and value > 0,  # type: ignore[operator]  # a number, as was just seen
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
        **dict.fromkeys((*_LISTED, "enum"), _list),
        **dict.fromkeys(_NAMED, lambda value: isinstance(value, Mapping)),
        "patternProperties": lambda value: isinstance(value, Mapping) and all(map(_pattern, value)),
        "type": lambda value: all(isinstance(each, str) and each in _JSON_TYPES for each in _types_of(value)),
        "pattern": _pattern,
        "$ref": lambda value: isinstance(value, str),
        "required": _names,
    }
)
"""What the values of the words are."""
