"""The script: exchanges spelled out as speeches, what changed in them on the way, and the words that palaver adds.

Compiling is a row of passes. The first turns an exchange into a script; each later pass returns a changed script; the provider's module
writes the last one. A script has only what may be sent: no metadata, no times, no ids of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from palaver.log import Handle
from palaver.messages import Media, Role, ThinkingContent, canonical_json

SpeechRole: TypeAlias = Literal["system", "user", "assistant", "tool"]

SPEAKS: Mapping[Role, SpeechRole] = {
    Role.SYSTEM: "system",
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.TOOL_CALL: "assistant",
    Role.TOOL: "tool",
    Role.CUSTOM: "user",
    Role.BRANCH_SUMMARY: "user",
    Role.COMPACTION_SUMMARY: "user",
}
"""The role on the wire of a message of each role."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text.

    Attributes:
        text: The text, as it is sent.
        origin: The block that it shows, or None.
        signature: A Gemini thought signature on this text, or empty.
        phase: OpenAI's label of the text, `commentary` or `final_answer`, or empty.
        carried: The provider's own fields, which go back with it, such as citations.
    """

    text: str
    origin: Handle | None = None
    signature: str = ""
    phase: str = ""
    carried: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image or a sound.

    Attributes:
        kind: `image` or `audio`.
        media: The value in the view.
        origin: The block that contains it, or None.
        number: Its place among the media of its block, from 1.
        of: How many media its block has.
        media_type: The type of its bytes, once they are read; empty for an address.
        data: Its bytes as base64, once they are read; empty for an address.
    """

    kind: Literal["image", "audio"]
    media: Media
    origin: Handle | None = None
    number: int = 1
    of: int = 1
    media_type: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's thinking."""

    content: ThinkingContent
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call.

    Attributes:
        id: Its id; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        args: The arguments, a JSON object.
        raw: The arguments as JSON text, as the model wrote them where that is valid JSON; it may be empty where the API takes an object.
        artefact: What the provider wants back with the call.
        origin: The block, or None.
        carried: The provider's own fields, which go back with it, such as the code that made the call.
    """

    id: str
    name: str
    args: Mapping[str, object]
    raw: str
    artefact: Mapping[str, object] = field(default_factory=dict, hash=False)
    origin: Handle | None = None
    carried: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A tool's result.

    Attributes:
        id: The id of the call that it answers; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        body: What the tool returned.
        error: Whether the tool failed.
        origin: The block, or None for a result of no entry.
        call: The call that it answers, once they are paired.
        artefact: The provider's own item of the result, where it is recorded.
    """

    id: str
    name: str
    body: tuple[TextPart | MediaPart, ...]
    error: bool = False
    origin: Handle | None = None
    call: CallPart | None = None
    artefact: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """The texts of the result, one a line."""
        return "\n".join(part.text for part in self.body if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class ProviderPart:
    """A block that only its provider reads. It goes back unchanged.

    Attributes:
        kind: Its type, in the provider's spelling.
        fields: Its fields, without the type.
        origin: The block.
    """

    kind: str
    fields: Mapping[str, object] = field(hash=False)
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as it is declared: its name on the wire, and its schema in the provider's dialect.

    Attributes:
        name: The name on the wire.
        description: What it is for.
        schema: The schema of its arguments, in the provider's dialect.
        strict: Whether arguments are held to the schema.
        deferred: Whether the model finds it with a search.
        callers: Who may call it, where code can: `model` and `code`; else empty.
        format: The form of its free text, where the provider has tools of free text; else None.
        native: The declaration of the provider's own tool whose calls it runs; None for a function.
        group: The name and the description of its group, where the provider has groups; else empty.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)
    strict: bool = False
    deferred: bool = False
    callers: tuple[str, ...] = ()
    format: str | Mapping[str, str] | None = field(default=None, hash=False)
    native: Mapping[str, Any] | None = field(default=None, hash=False)
    group: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolChangePart:
    """A tool that is offered from here on, or no longer.

    Attributes:
        name: Its name on the wire.
        declared: Its declaration; None where it is withdrawn.
        origin: None: no block shows it.
    """

    name: str
    declared: Declared | None = None
    origin: Handle | None = None


Part: TypeAlias = TextPart | MediaPart | ThinkingPart | CallPart | ResultPart | ProviderPart | ToolChangePart


@dataclass(frozen=True, slots=True)
class Speech:
    """What one role says without a break.

    Attributes:
        role: Who speaks; `tool` has results only.
        parts: What is said.
        name: The speaker's own name, or empty.
        provider: The provider whose model said it, or empty.
        model: The model that said it, or empty where none is recorded.
    """

    role: SpeechRole
    parts: tuple[Part, ...]
    name: str = ""
    provider: str = ""
    model: str = ""


def media_parts(script: Iterable[Speech]) -> Iterator[MediaPart]:
    """List all media of a script, those inside results included, oldest first."""
    for speech in script:
        for part in speech.parts:
            if isinstance(part, MediaPart):
                yield part
            elif isinstance(part, ResultPart):
                yield from (inner for inner in part.body if isinstance(inner, MediaPart))


class Taken:
    """The ids that a request uses: those of earlier exchanges, and those of the exchange being compiled.

    Attributes:
        met: The ids of earlier exchanges that this one would have used.
        added: The ids that this one uses.
    """

    __slots__ = ("_before", "added", "met")

    def __init__(self, before: AbstractSet[str]) -> None:
        self._before = before
        self.met: set[str] = set()
        self.added: set[str] = set()

    def __contains__(self, one: str) -> bool:
        """Return whether an id is used."""
        if one in self._before:
            self.met.add(one)
            return True
        return one in self.added


# --- what changed -----------------------------------------------------------------------------------------------------


class How(StrEnum):
    """What happened to something on its way to the wire."""

    DROPPED = "dropped"
    """It is not in the request."""
    REPLACED = "replaced"
    """A text replaces it."""
    RENAMED = "renamed"
    """It has another id or name."""
    CHANGED = "changed"
    """It has another form."""
    ADDED = "added"
    """It is in the request and not in the view."""
    KEPT = "kept"
    """It is unchanged, although the provider may not accept or not read it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the view and the request.

    Attributes:
        handle: The block it is about; None for parts of no entry (a derived text, a tool's schema, a parameter).
        what: What it is about: `text`, `image`, `audio`, `thinking`, `call id`, `tool name`, `tool schema`, `parameter` and so on.
        how: What happened to it.
        why: The reason, a clause that starts with a small letter.
    """

    handle: Handle | None
    what: str
    how: How
    why: str

    def __str__(self) -> str:
        """Return the difference as one line."""
        place = "" if self.handle is None else f" ({self.handle})"
        return f"{self.what}{place} {self.how.value}: {self.why}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was dropped or changed in a request, in the order of the request.

    Attributes:
        changes: The differences. When there are none, the provider gets what the view shows.
    """

    changes: tuple[Change, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        """Iterate over the changes in order."""
        return iter(self.changes)

    def __len__(self) -> int:
        """Count the changes."""
        return len(self.changes)

    def lost(self) -> tuple[Change, ...]:
        """Return the changes by which the model sees less than the view shows: what was dropped or replaced."""
        return tuple(change for change in self.changes if change.how in {How.DROPPED, How.REPLACED})

    def about(self, handle: Handle) -> tuple[Change, ...]:
        """Return the changes of one block."""
        return tuple(change for change in self.changes if change.handle == handle)


class ChangeNotes(list[Change]):
    """The changes so far, while a request is compiled."""

    def add(self, handle: Handle | None, what: str, how: How, why: str) -> None:
        """Append a change."""
        self.append(Change(handle, what, how, why))


# --- the words that palaver adds; a changed word breaks every cached prefix -------------------------------------------

NOT_BEGUN = "The conversation has not begun."
"""Sent when a view shows nothing."""

BEGINS_WITH_ASSISTANT = "The conversation begins with the assistant's words."
"""Sent before an assistant's words where a provider wants the user to speak first."""

NOT_ANSWERED = "The assistant did not answer."
"""Said by the assistant between results and what another says, where a provider wants it to speak first."""

FAILED_SILENTLY = "The tool failed and said nothing."
"""The result of a call that failed without a word: providers refuse an empty failure."""

REPLACED = "The instructions that follow replace all earlier instructions."
"""Stands before instructions inside a conversation that replace those before them."""

NO_INSTRUCTIONS = "The earlier instructions no longer apply."
"""Said inside a conversation where no instructions are in force any more."""

_QUOTED = 60
"""Characters by which a part of the instructions is named."""


def amended(gone: Sequence[str], known: Sequence[str], *, replaced: bool) -> str:
    """Return the text that says which parts of the instructions no longer apply; an empty one where their beginnings do not tell them apart.

    Args:
        gone: The parts.
        known: All parts.
        replaced: Whether others follow that replace them.
    """
    names = [text[:_QUOTED] for text in gone]
    if any(sum(text.startswith(name) for text in known) != 1 for name in names):
        return ""
    listed = "\n".join(canonical_json(name).decode() for name in names)
    ends = "What follows here replaces them." if replaced else "The others do."
    return f"The parts of the instructions that begin with these words no longer apply:\n{listed}\n{ends}"


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
        text: The words. Anything in them that looks like the mark is escaped.
    """
    return f'{_OPENS} kind="{kind}" note="not said by the user">\n{unmarked(text)}\n{_CLOSES}'


def unmarked(text: str) -> str:
    """Return words as they are inside a mark, which they cannot close."""
    return _LIKE_IT.sub(r"<\\", text)


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
    """Return the text before media that a tool returned and its result cannot contain."""
    return f"What follows was returned by tool call {call_id}."
