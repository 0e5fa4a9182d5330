"""What a provider would refuse, as values: the rules, a violation of one, and the place it stands.

A violation is data for a report, an error or the doctor. It names the rule by a stable id, says where in the request the
fault lies, and tells in a sentence what is wrong there. Which provider holds which rule to what figure is the business of
:mod:`palaver.wire.profiles` and of the validators in :mod:`palaver.wire.check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from typing_extensions import TypeIs

__all__ = ["Place", "Rule", "Violation"]


class Rule(StrEnum):
    """The rules a request can break, each named after what is wrong; the values are stable ids."""

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
        rule: The rule it breaks.
        path: Where, from the body's root, as ``messages[3].content[0].text``; empty for the body itself.
        message: What is wrong there, one sentence.
    """

    rule: Rule
    path: str
    message: str

    def __str__(self) -> str:
        """Give place, sentence and rule on one line."""
        return f"{self.path or 'request'}: {self.message} [{self.rule}]"


class Place:
    """A value and where in the request it stands: what validators walk over instead of bare values.

    A place is total: asking for a key or element that is not there, or of a value that is no object or list, gives a
    place whose value is ``None``. So a rule reads the request as if it were well formed, says nothing about what is
    not there, and leaves that to the rules about fields.

    A long request has a million places, and nearly none of them is wrong: so it is no dataclass, and its path is put together
    when somebody asks.

    Attributes:
        value: The value.
        path: The keys and numbers that lead to it from the body.
    """

    __slots__ = ("_above", "_step", "value")

    def __init__(self, value: object, path: tuple[str | int, ...] = ()) -> None:
        self.value = value
        self._above: Place | None = None
        self._step: str | int | tuple[str | int, ...] = path

    def _inside(self, value: object, step: str | int) -> Place:
        """Give the place one step further."""
        place = _blank(Place)
        place.value = value
        place._above = self  # noqa: SLF001 - of this very class
        place._step = step  # noqa: SLF001 - of this very class
        return place

    @property
    def path(self) -> tuple[str | int, ...]:
        """The keys and numbers that lead to it from the body."""
        steps: list[str | int] = []
        place = self
        while place._above is not None and not isinstance(place._step, tuple):
            steps.append(place._step)
            place = place._above
        first = place._step if isinstance(place._step, tuple) else ()  # noqa: SLF001 - of this very class
        return (*first, *reversed(steps))

    def __repr__(self) -> str:
        return f"Place({self.value!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        """Compare value and path."""
        return isinstance(other, Place) and (self.value, self.path) == (other.value, other.path)

    __hash__ = None  # type: ignore[assignment] # its value may be a plain dict

    def __getitem__(self, key: str | int) -> Place:
        """Give the member or element ``key``; its value is None when it is not there."""
        value, found = self.value, None
        if isinstance(key, str):
            if isinstance(value, dict) or _is_object(value):
                found = value.get(key)
        elif isinstance(value, list | tuple) and -len(value) <= key < len(value):
            key %= len(value)
            found = value[key]
        return self._inside(found, key)

    def __iter__(self) -> Iterator[Place]:
        """Give the elements of a list, and nothing for any other value."""
        value = self.value
        if isinstance(value, list | tuple):
            for index, element in enumerate(value):
                yield self._inside(element, index)

    def __len__(self) -> int:
        """Count the elements of a list or the members of an object; 0 for any other value."""
        value = self.value
        return len(value) if isinstance(value, dict | list | tuple) or _is_object(value) else 0

    def __bool__(self) -> bool:
        """Tell whether there is a value at all: an empty string or list is one."""
        return self.value is not None

    def __contains__(self, key: object) -> bool:
        """Tell whether an object has the member ``key``, whatever its value."""
        value = self.value
        return (isinstance(value, dict) or _is_object(value)) and key in value

    def members(self) -> Iterator[tuple[str, Place]]:
        """Give the members of an object by name, and nothing for any other value."""
        value = self.value
        if isinstance(value, dict) or _is_object(value):
            for key, member in value.items():
                name = key if isinstance(key, str) else repr(key)
                yield name, self._inside(member, name)

    @property
    def text(self) -> str:
        """The value when it is a string, else the empty string."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def number(self) -> float | None:
        """The value when it is a number, else None; true and false are no numbers."""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return self.value
        return None

    def breaks(self, rule: Rule, message: str) -> Violation:
        """Give the violation of ``rule`` that stands here."""
        return Violation(rule, _spell(self.path), message)


_blank = Place.__new__
_PLAIN = (str, int, float, list, tuple, type(None))


def _is_object(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Tell an object that is no dict; what JSON has besides is told first, because asking for a mapping takes long."""
    return not isinstance(value, _PLAIN) and isinstance(value, Mapping)


def _spell(path: tuple[str | int, ...]) -> str:
    """Write a path as ``messages[3].content[0].text``; what UTF-8 cannot carry is escaped."""
    spelt = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return spelt.removeprefix(".").encode("utf-8", "backslashreplace").decode("utf-8")
