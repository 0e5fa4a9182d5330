"""What a provider would refuse, as values: the rules, a violation of one, and its place in the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Place", "Rule", "Violation", "show"]

_SHOWN = 60  # characters of a value in a message: enough to recognise it, never a whole payload


class Rule(StrEnum):
    """The rules that a request can break, named after the fault; the values are stable ids."""

    # The body as JSON
    NOT_JSON = "not-json"
    LONE_SURROGATE = "lone-surrogate"
    NUL = "nul"
    REQUEST_BYTES = "request-bytes"
    # Fields and their values
    FIELD_MISSING = "field-missing"
    FIELD_UNKNOWN = "field-unknown"
    FIELD_TYPE = "field-type"
    FIELD_VALUE = "field-value"
    LIST_LENGTH = "list-length"
    PARAMETER_CONFLICT = "parameter-conflict"
    PARAMETER_REFUSED = "parameter-refused"
    JSON_WORD = "json-word"
    # Roles and turns
    ROLE_UNKNOWN = "role-unknown"
    ROLE_FIRST = "role-first"
    ROLE_ALTERNATION = "role-alternation"
    ROLE_LAST = "role-last"
    SYSTEM_PLACE = "system-place"
    # Content
    BLOCK_KIND = "block-kind"
    BLOCK_PLACE = "block-place"
    MESSAGE_EMPTY = "message-empty"
    TEXT_EMPTY = "text-empty"
    TEXT_TRAILING = "text-trailing"
    TEXT_LENGTH = "text-length"
    PARTICIPANT_NAME = "participant-name"
    # Calls and their results
    CALL_ID = "call-id"
    CALL_DUPLICATE = "call-duplicate"
    CALL_UNANSWERED = "call-unanswered"
    CALL_PLACE = "call-place"
    CALL_ARGUMENTS = "call-arguments"
    CALL_COUNT = "call-count"
    RESULT_ORPHAN = "result-orphan"
    RESULT_DUPLICATE = "result-duplicate"
    RESULT_PLACE = "result-place"
    RESULT_COUNT = "result-count"
    RESULT_NAME = "result-name"
    # Reasoning
    THINKING_SIGNATURE = "thinking-signature"
    THINKING_ORDER = "thinking-order"
    THINKING_FIRST = "thinking-first"
    THINKING_LAST = "thinking-last"
    THINKING_OFF = "thinking-off"
    THINKING_BUDGET = "thinking-budget"
    REASONING_FOLLOW = "reasoning-follow"
    ITEM_ID = "item-id"
    ITEM_DUPLICATE = "item-duplicate"
    ITEM_UNSTORED = "item-unstored"
    # Media
    MEDIA_KIND = "media-kind"
    MEDIA_DATA = "media-data"
    MEDIA_MISMATCH = "media-mismatch"
    MEDIA_BYTES = "media-bytes"
    MEDIA_SIDE = "media-side"
    MEDIA_COUNT = "media-count"
    MEDIA_URL = "media-url"
    # Tools
    TOOL_NAME = "tool-name"
    TOOL_DUPLICATE = "tool-duplicate"
    TOOL_COUNT = "tool-count"
    TOOL_SCHEMA = "tool-schema"
    TOOL_CHOICE = "tool-choice"
    TOOLS_MISSING = "tools-missing"
    # Answers
    ANSWER_NAME = "answer-name"
    ANSWER_SCHEMA = "answer-schema"
    # Cache marks
    CACHE_COUNT = "cache-count"
    CACHE_PLACE = "cache-place"
    CACHE_ORDER = "cache-order"


@dataclass(frozen=True, slots=True)
class Violation:
    """One place of a request that its provider would refuse.

    Attributes:
        rule: The rule that it breaks.
        path: The place from the body's root, as ``messages[3].content[0].text``; empty for the body itself.
        message: The fault, one sentence.
    """

    rule: Rule
    path: str
    message: str

    def __str__(self) -> str:
        """Return place, sentence and rule on one line."""
        return f"{self.path or 'request'}: {self.message} [{self.rule}]"


class Place:
    """A value and its place in a request: validators walk over places instead of bare values.

    A place is total: a key or element that is missing gives a place whose value is ``None`` and that is not ``there``. So a rule reads the
    request as if it were well formed and leaves missing fields to the shapes.

    Attributes:
        value: The value.
        path: The keys and numbers that lead to it from the body.
        there: Whether the request has a value here, ``None`` included.
    """

    __slots__ = ("path", "there", "value")

    def __init__(self, value: object, path: tuple[str | int, ...] = (), *, there: bool = True) -> None:
        self.value = value
        self.path = path
        self.there = there

    def __getitem__(self, key: str | int) -> Place:
        """Return the member or element ``key``."""
        value = self.value
        if isinstance(key, str):
            there = isinstance(value, Mapping) and key in value
            return Place(value[key] if there else None, (*self.path, key), there=there)  # type: ignore[index] # it is a mapping
        if isinstance(value, list | tuple) and -len(value) <= key < len(value):
            return Place(value[key], (*self.path, key % len(value)))
        return Place(None, (*self.path, key), there=False)

    def __iter__(self) -> Iterator[Place]:
        """Iterate over the elements of a list; any other value has none."""
        if isinstance(self.value, list | tuple):
            for index, element in enumerate(self.value):
                yield Place(element, (*self.path, index))

    def __len__(self) -> int:
        """Count the elements of a list or the members of an object; 0 for any other value."""
        return len(self.value) if isinstance(self.value, dict | list | tuple | Mapping) else 0

    def __bool__(self) -> bool:
        """Return whether there is a value other than null; an empty string or list is one."""
        return self.value is not None

    def __contains__(self, key: object) -> bool:
        """Return whether an object has the member ``key``, whatever its value."""
        return isinstance(self.value, Mapping) and key in self.value

    def members(self) -> Iterator[tuple[str, Place]]:
        """Return the members of an object by name; any other value has none."""
        if isinstance(self.value, Mapping):
            for key, member in self.value.items():
                name = key if isinstance(key, str) else repr(key)
                yield name, Place(member, (*self.path, name))

    @property
    def text(self) -> str:
        """The value when it is a string, else the empty string."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def number(self) -> float | None:
        """The value when it is a number, else None; true and false are not numbers."""
        return self.value if isinstance(self.value, int | float) and not isinstance(self.value, bool) else None

    def breaks(self, rule: Rule, message: str) -> Violation:
        """Return the violation of ``rule`` at this place; what UTF-8 cannot carry is escaped in its path."""
        spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return Violation(rule, spelled.removeprefix(".").encode("utf-8", "backslashreplace").decode("utf-8"), message)


def show(value: object) -> str:
    """Return a value for a message: shortened, with what cannot be printed escaped."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {json_type(value)}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def json_type(value: object) -> str:
    """Return the name of the JSON type that a value is written as."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds = ((str, "string"), ((int, float), "number"), ((list, tuple), "list"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)
