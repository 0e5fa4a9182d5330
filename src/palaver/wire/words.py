"""The sentences that a compiled request adds or puts in another's place. One place, because a changed word breaks every cached prefix."""

from __future__ import annotations

import re

from palaver.log import Handle

NOT_BEGUN = "The conversation has not begun."
"""What is sent when a view shows nothing at all."""

BEGINS_WITH_ASSISTANT = "The conversation begins with the assistant's words."
"""What is sent before an assistant's words where a provider wants a user to speak first."""

FAILED_SILENTLY = "The tool failed and said nothing."
"""What stands in the result of a call that failed without a word: providers want to read what failed."""

MALFORMED = "malformed_arguments"
"""The key under which arguments that are no JSON object stand, as the model wrote them, where a provider wants an object."""

NO_TOOL = "not_available"
"""The name of the tool that is declared where a provider wants a tool for the calls of the history and the view declares none."""

NO_TOOL_DESCRIPTION = (
    "Stands for the tools used earlier in this conversation; they are not available now. Do not call it."
)


def answer_as(schema: str) -> str:
    """Give the instruction that asks for an answer of a structure, where no field of the request can."""
    return (
        "Give your final answer as one JSON value that holds to the JSON Schema below, with nothing before it and nothing after it.\n"
        + schema
    )


_OPENS, _CLOSES = "<from-harness", "</from-harness>"
_LIKE_IT = re.compile(r"<(?=\s{0,9}/?\s{0,9}from-harness)", re.IGNORECASE)
"""What a model may take for the mark, or for its end: it is no parser, and minds neither case nor spaces."""


def from_harness(kind: str, text: str) -> str:
    """Mark words that a user's turn carries and the user did not say.

    Args:
        kind: What they are, in one word: `record`, `summary`, `notice`, `system`, `media`.
        text: The words. They cannot close the mark: what looks like it is spelt another way.
    """
    inside = _LIKE_IT.sub(r"<\\", text)
    return f'{_OPENS} kind="{kind}" note="not said by the user">\n{inside}\n{_CLOSES}'


_MARKED = re.compile(rf'{_OPENS} kind="([a-z ]+)" note="not said by the user">\n(.*)\n{_CLOSES}\s*', re.DOTALL)


def marked(text: str) -> tuple[str, str] | None:
    """Give the kind and the words of a text that `from_harness` marked; None for any other text."""
    found = _MARKED.fullmatch(text)
    return None if found is None or _CLOSES in found[2] else (found[1], found[2])


def left_out(what: str, why: str, handle: Handle | None) -> str:
    """Give the text that stands where something could not be sent."""
    recall = "" if handle is None else f"; recall {handle}"
    return f"[{what} left out: {why}{recall}]"


def shortened(characters: int, handle: Handle | None) -> str:
    """Give the text at the end of a text that was too long for the provider."""
    recall = "" if handle is None else f"; recall {handle}"
    return f"\n[{characters} more characters left out: longer than the provider takes{recall}]"


def called(name: str, arguments: str) -> str:
    """Give the text that shows a tool call where none can stand."""
    return f"[tool call {name} {arguments}]"


def follows(what: str) -> str:
    """Give the text that stands in a result for media that follow after it."""
    return f"[{what} of this result follows in the next message]"


def returned(call_id: str) -> str:
    """Give the text before media that a tool returned and its result cannot hold."""
    return f"What follows was returned by tool call {call_id}."
