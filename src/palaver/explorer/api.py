"""The answers: each a plain function of an open store and the words of a request. The server sends them, and an exported file contains them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from palaver.browsing.calls import Calls, ImportedCall, calls
from palaver.errors import Ambiguous, InfeasibleBudget, InvalidInput, PalaverError
from palaver.explorer.seen import LastSeen
from palaver.session import Dialog
from palaver.store import Store

LINES = "application/x-ndjson"
"""The media type of JSON values, one a line."""

_LARGEST = 2**53 - 1
"""The largest whole number that JavaScript has."""


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The store that the page shows.

    Attributes:
        store: The store, opened read-only; for an action the writer.
        url: Its address, for work in other processes.
        name: What the page calls it: no path, and no password.
        writer: The same store, opened for the actions of the page; None where it only reads.
        option: What a command of the terminal adds to find the store; None where it cannot.
        marks: What the user has seen.
        numbered: The responses of the imported dialog whose calls were asked for last, by its state: numbering those of 30,000 entries is 0.2 s of work.
    """

    store: Store
    url: str
    name: str
    writer: Store | None = None
    option: str | None = ""
    marks: LastSeen = field(default_factory=LastSeen)
    numbered: dict[tuple[object, ...], list[ImportedCall]] = field(default_factory=dict, repr=False)

    def calls(self, dialog: Dialog) -> Calls:
        """Return the calls of a dialog."""
        state = (dialog.dialog_id, self.store.last(dialog.dialog_id), self.store.session(dialog.session_id).updated_at)
        known = self.numbered.get(state)
        if known is not None:
            return known
        numbered = calls(dialog)
        if isinstance(numbered, list):
            self.numbered.clear()
            self.numbered[state] = numbered
        return numbered


class Raw(NamedTuple):
    """An answer that is not made here: bytes of a media type."""

    data: bytes
    media_type: str


Answer: TypeAlias = Raw | Iterator[Any] | dict[str, Any] | list[Any]
"""Bytes, JSON values of which each is sent as a line as soon as it is there, or one JSON value."""


class Endpoint(NamedTuple):
    """What the page can ask, and the function that answers.

    The function is called with the source and, by name, with the parts of the path and the words of the query; a parameter without a default must
    be there. A trailing underscore is not part of a name: `in_` is the word `in`.

    Attributes:
        pattern: The path, with the names of its parts in braces.
        function: What answers.
        method: The method of the requests.
        file: The name under which a browser keeps the answer; empty for an answer to the page.
    """

    pattern: str
    function: Callable[..., Any]
    method: str = "GET"
    file: str = ""


def number(word: str, name: str, default: int | None = None) -> int:
    """Return the number that a word of a query names; for an empty one the default.

    Raises:
        InvalidInput: It is not a whole number from 0 on.
    """
    if not word and default is not None:
        return default
    if not (word.isascii() and word.isdecimal() and len(word) < 17 and int(word) <= _LARGEST):  # noqa: PLR2004 - digits of 2^53
        raise InvalidInput(f"{name} is {word!r}, not a whole number.")
    return int(word)


def as_json(value: object) -> bytes:
    """Return a value as JSON; what JSON cannot express is replaced: the name of a file need not be text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


def as_data(error: Exception) -> dict[str, Any]:
    """Return an error as JSON values; of an error that is not palaver's own, only that there was one."""
    if not isinstance(error, PalaverError):
        hint = "The terminal of `palaver open` has the details."
        return {"error": {"kind": "Defect", "message": "This is a defect of palaver.", "hint": hint}}
    told: dict[str, Any] = {"kind": type(error).__name__, "message": error.message or str(error), "hint": error.hint}
    if isinstance(error, Ambiguous):
        told["candidates"] = list(error.candidates)
    if isinstance(error, InfeasibleBudget):
        told |= {"budget": error.budget, "needed": error.needed, "breakdown": dict(error.breakdown)}
    return {"error": told}
