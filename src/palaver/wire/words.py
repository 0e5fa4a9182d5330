"""The sentences that a compiled request adds. They live in one place because a changed word breaks every cached prefix."""

from __future__ import annotations

import re

from palaver.log import Handle

NOT_BEGUN = "The conversation has not begun."
"""Sent when a view shows nothing."""

BEGINS_WITH_ASSISTANT = "The conversation begins with the assistant's words."
"""Sent before an assistant's words where a provider wants the user to speak first."""

FAILED_SILENTLY = "The tool failed and said nothing."
"""The result of a call that failed without a word: providers refuse an empty failure."""

NO_TOOL = "not_available"
"""The tool that is declared where a provider wants one for the calls of the history and the view declares none."""

NO_TOOL_DESCRIPTION = (
    "Stands for the tools used earlier in this conversation; they are not available now. Do not call it."
)


def answer_as(schema: str) -> str:
    """Return the instruction that asks for an answer of a structure, where no field of the request can."""
    return (
        "Give your final answer as one JSON value that holds to the JSON Schema below, with nothing before it and nothing after it.\n"
        + schema
    )


_OPENS, _CLOSES = "<from-harness", "</from-harness>"
_LIKE_IT = re.compile(r"<(?=\s{0,9}/?\s{0,9}from-harness)", re.IGNORECASE)
"""What a model may read as the mark or its end: a model ignores case and spaces."""


def from_harness(kind: str, text: str) -> str:
    """Mark words in a user's turn that the user did not say.

    Args:
        kind: What they are, in one word: `record`, `summary`, `notice`, `system`, `media`.
        text: The words. They cannot close the mark: anything that looks like it is escaped.
    """
    inside = _LIKE_IT.sub(r"<\\", text)
    return f'{_OPENS} kind="{kind}" note="not said by the user">\n{inside}\n{_CLOSES}'


_MARKED = re.compile(rf'{_OPENS} kind="([a-z ]+)" note="not said by the user">\n(.*)\n{_CLOSES}\s*', re.DOTALL)


def marked(text: str) -> tuple[str, str] | None:
    """Return the kind and the words of a text that `from_harness` marked; None for any other text."""
    found = _MARKED.fullmatch(text)
    return None if found is None or _CLOSES in found[2] else (found[1], found[2])


def left_out(what: str, why: str, handle: Handle | None) -> str:
    """Return the text that replaces something which cannot be sent."""
    recall = "" if handle is None else f"; recall {handle}"
    return f"[{what} left out: {why}{recall}]"


def shortened(characters: int, handle: Handle | None) -> str:
    """Return the end of a text that is too long for the provider."""
    recall = "" if handle is None else f"; recall {handle}"
    return f"\n[{characters} more characters left out: longer than the provider takes{recall}]"


def called(name: str, arguments: str) -> str:
    """Return the text that shows a tool call where a call is not allowed."""
    return f"[tool call {name} {arguments}]"


def follows(what: str) -> str:
    """Return the text in a result whose media follow in the next message."""
    return f"[{what} of this result follows in the next message]"


def returned(call_id: str) -> str:
    """Return the text before media that a tool returned and its result cannot hold."""
    return f"What follows was returned by tool call {call_id}."
