"""The entries of a log: a closed union of immutable records.

One entry is one fact. What a kind may do (belong to a turn, stand beside one, open or answer a call) is not written here but in
`palaver.log.legality`, in one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from palaver.ids import DialogId, now
from palaver.messages import Message, freeze
from palaver.messages.normalize import is_clean


def _storable(value: object) -> object:
    """Give the read-only form of a JSON value, in which every string can be written as UTF-8."""
    return freeze(value, "", [])


JsonValue: TypeAlias = Annotated[Any, AfterValidator(_storable)]
"""A value that JSON can hold, read-only; entries keep what other programs recorded without judging its shape."""


class Value(BaseModel):
    """A frozen value that keeps fields it does not know, so that a newer version's record survives an older reader."""

    # defer_build: as in palaver.messages.value, validators are built when they are first used, not at import
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _normalise(cls, data: object) -> object:
        """Clean strings where they enter, so that whatever was recorded can be stored and sent (U+FFFD for what UTF-8 cannot hold)."""
        if not isinstance(data, dict):
            return data
        known = cls.__pydantic_fields__
        stored = {
            name: _storable(value)
            for name, value in data.items()
            if (isinstance(value, str) and not (type(value) is str and is_clean(value)))
            or (name not in known and isinstance(value, dict | list))
        }
        return {**data, **stored} if stored else data

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Leave out fields of ours that are None; a field that another version wrote is kept even so."""
        known = type(self).model_fields
        return {name: value for name, value in handler(self).items() if value is not None or name not in known}


class Source(Value):
    """Where an imported entry came from.

    Attributes:
        format: The name of the format that was read, such as `claude-code`.
        record: The format's own id of the record, or empty where it has none.
        ordinal: The record's number in its file, starting at 0.
    """

    format: str
    record: str = ""
    ordinal: int = 0


class Redaction(Value):
    """What was taken out of an entry before it was written: never what it was.

    Attributes:
        kind: Which pattern found it, such as `github-token`.
        place: Where it was: the keys and numbers that lead to the text, such as `message.contents.0.content`.
        count: How many stood there.
        marks: Keyed hashes of them, where the redactor has a key: the same secret has the same mark.
    """

    kind: str
    place: str
    count: int = 1
    marks: tuple[str, ...] | None = None


class Erasure(Value):
    """The mark of an entry whose words were erased (ADR 46).

    Attributes:
        at: When, in seconds since 1970-01-01 UTC.
        receipt: The id of the receipt.
        part: True where only what was made of erased entries was taken out of it, such as a summary of them.
    """

    at: float
    receipt: str
    part: bool = False


class Entry(Value):
    """What every entry has.

    Attributes:
        kind: The member of the union.
        at: When the fact happened, in seconds since 1970-01-01 UTC.
        source: Where an imported entry came from; None for an entry recorded here.
        erased: Set on a tombstone: what stands in place of an entry that was erased, of the same kind and with the same calls; None otherwise.
        redacted: What was taken out of it before it was written, as `palaver.log.redaction` tells it; None where nothing was.
    """

    kind: str
    at: float = Field(default_factory=now)
    source: Source | None = None
    erased: Erasure | None = None
    redacted: tuple[Redaction, ...] | None = None


class MessageEntry(Entry):
    """A message, or a fragment of one: fragments of one assistant response share `message.response_id`.

    Attributes:
        message: The message.
        prompt: The path of the registered prompt that governs the model's next turn after it; None where none does. Only messages that are
            neither the model's nor a tool's say it.
    """

    kind: Literal["message"] = "message"
    message: Message
    prompt: str | None = None


class Section(Value):
    """A named part of the system instructions.

    Attributes:
        name: Its name.
        text: What it says.
        behind: True when it stands behind the instructions that were said as messages: what changes more often than they do, so that they stay
            in the provider's cache. None and False are the same.
    """

    name: str
    text: str
    behind: bool | None = None


class Instructions(Entry):
    """The system sections in force from here on; they replace the earlier ones."""

    kind: Literal["instructions"] = "instructions"
    sections: tuple[Section, ...] = ()


class ToolSpec(Value):
    """A tool as it is declared to a model.

    Attributes:
        name: The name the model calls.
        description: What the tool does, for the model.
        parameters: A JSON schema of the arguments, an object schema.
        stub: True when the declaration was reconstructed from recorded calls because the recording lacks it.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    stub: bool = False


class Toolset(Entry):
    """The tools declared from here on; they replace the earlier ones."""

    kind: Literal["toolset"] = "toolset"
    tools: tuple[ToolSpec, ...] = ()


class CallStarted(Entry):
    """A tool call is about to run: written before the effect, so that a crash leaves `unknown`, never silence."""

    kind: Literal["call_started"] = "call_started"
    call_id: str
    tool: str = ""
    idempotent: bool = False


class TurnStarted(Entry):
    """An agent began a turn."""

    kind: Literal["turn_started"] = "turn_started"
    agent: str = ""


class TurnEnded(Entry):
    """An agent's turn ended: `final`, `failed`, `interrupted` or another word of the loop's."""

    kind: Literal["turn_ended"] = "turn_ended"
    outcome: str = "final"


class Inbox(Entry):
    """A message that arrived during a turn and waits to be delivered once."""

    kind: Literal["inbox"] = "inbox"
    message: Message


class Approval(Entry):
    """A decision about a call that waits for one.

    Attributes:
        call_id: The call.
        decision: `approve`, `deny` or `edit`.
        by: Who decided, or empty.
        reason: Why, for the model; None where nobody said.
        arguments: The arguments to run it with instead, where the decision is `edit`.
    """

    kind: Literal["approval"] = "approval"
    call_id: str
    decision: str
    by: str = ""
    reason: str | None = None
    arguments: JsonValue = None


class LateResult(Entry):
    """A result that came after its call had been answered or closed; kept, and never shown twice."""

    kind: Literal["late_result"] = "late_result"
    message: Message


class Place(Value):
    """A handle as it is stored: whole dialog id, entry number, block index."""

    dialog: DialogId
    seq: int
    block: int | None = None


class Run(Value):
    """A span as it is stored: entries `start` (inclusive) to `stop` (exclusive) of a dialog."""

    dialog: DialogId
    start: int
    stop: int


class BlockEdit(Value):
    """A block shown in another form.

    Attributes:
        target: The block that is replaced in the view; the log keeps the original.
        text: What the model sees instead. It names the handle of the original.
        reason: Why, in one word of `palaver.view.reasons`.
        reversible: True when the handle in `text` brings back all that was taken out.
    """

    target: Place
    text: str
    reason: str
    reversible: bool = True


class Omitted(Value):
    """Entries or one block that a view leaves out.

    Attributes:
        run: The entries left out, when whole entries are.
        target: The block left out, when a single block is.
        reason: Why, in one word of `palaver.view.reasons`.
        by: The policy that decided it, or `palaver` for what the fold itself leaves out.
        messages: How many messages it held.
        size: The size of what was left out, in bytes of its recorded form.
    """

    run: Run | None = None
    target: Place | None = None
    reason: str
    by: str = ""
    messages: int = 0
    size: int = 0


class Derived(Value):
    """Text brought into the view that no one said: a deterministic record, a summary.

    Attributes:
        text: What the model sees. Stored here, so that a past view never depends on running a policy again.
        label: What it is: `record`, `summary`, `notice`.
        speaker: Provenance, a value of `palaver.messages.Speaker`; a summary never speaks with the user's authority.
        trust: The lowest trust among the sources, the name of a `palaver.messages.Trust` in lower case.
        sources: The entries it was made from.
        facts: What a record says, as canonical JSON, from which the next record goes on; None where the text is all there is.
    """

    text: str
    label: str = "record"
    speaker: str = "summary"
    trust: str = "outside"
    sources: tuple[Run, ...] = ()
    facts: str | None = None


Piece: TypeAlias = Annotated[
    Annotated[Run, Tag("run")] | Annotated[Derived, Tag("derived")],
    Discriminator(lambda v: "derived" if "text" in (v if isinstance(v, dict) else vars(v)) else "run"),
]


class Compaction(Entry):
    """The whole view as it stands at `base`: a checkpoint from which later views are computed.

    What the model saw before is still in the log; choosing an earlier view is undoing this entry.

    Attributes:
        base: The number of the dialog's last entry that the checkpoint takes into account.
        pieces: What is in the view, in order: runs of entries, and derived texts between them.
        edits: The blocks within those runs that are shown in another form.
        omitted: Everything up to `base` that the view leaves out.
        leading: How many of the system messages in the pieces are instructions, because they stood before the conversation;
            None where it is not recorded, and then those before the first exchange are.
        closed: True when the newest response is not in the pieces: no older call can be answered any more.
        policy: The policy that made the plan.
        tokens_before: The view's estimated size before, in tokens.
        tokens_after: The view's estimated size after, in tokens; smaller than before.
        foreign: The summary another agent recorded, where this compaction was imported; its text stands in `pieces`.
        undone: The number of the dialog's own compaction that this one undoes; None for one that undoes nothing.
        attempt: How it came about: what triggered it, what it was to dwell on, what became of the summary; None where that is not recorded.
    """

    kind: Literal["compaction"] = "compaction"
    base: int
    pieces: tuple[Piece, ...] = ()
    edits: tuple[BlockEdit, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    leading: int | None = None
    closed: bool = False
    policy: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    foreign: bool = False
    undone: int | None = None
    attempt: JsonValue = None


class ContextEdit(Entry):
    """A small change of the view: single blocks shown in another form, or left out. The newest edit of a block wins.

    Whole entries leave the view through a compaction only; `omitted` names blocks, never runs.
    """

    kind: Literal["context_edit"] = "context_edit"
    base: int
    edits: tuple[BlockEdit, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    policy: str = ""


class Pin(Entry):
    """An entry that every view must hold, or (with `pinned` false) need not hold any more."""

    kind: Literal["pin"] = "pin"
    target: Place
    pinned: bool = True


class Constraint(Entry):
    """Something that must or must not be, put on the list of the user's constraints by hand, or (with `stands` false) taken off it.

    What code finds in the user's words is on the list without an entry. The newest entry about a text wins.

    Attributes:
        text: The sentence, word for word.
        stands: Whether it is on the list.
    """

    kind: Literal["constraint"] = "constraint"
    text: str
    stands: bool = True


class BranchSummary(Entry):
    """What happened on another branch: on one that was left, or one that is told of here.

    Attributes:
        summary: What the model sees.
        dialog: The branch; None where it is not recorded.
        left: The entry after which that branch and this one went apart; None where nothing is common to them, or it is not recorded.
        sources: The entries that the summary was made of; None where they are not recorded.
        trust: The lowest trust among them, the name of a `palaver.messages.Trust` in lower case; None for the lowest there is.
    """

    kind: Literal["branch_summary"] = "branch_summary"
    summary: str
    dialog: DialogId | None = None
    left: Place | None = None
    sources: tuple[Run, ...] | None = None
    trust: str | None = None


class Custom(Entry):
    """A record of an extension, or of an importer that met something no other kind holds. Never shown to a model."""

    kind: Literal["custom"] = "custom"
    custom_type: str
    data: JsonValue = None


class Label(Entry):
    """A name for an entry; None takes it away. The newest wins."""

    kind: Literal["label"] = "label"
    target: Place
    label: str | None = None


class ModelChange(Entry):
    """The model in force from here on."""

    kind: Literal["model_change"] = "model_change"
    model: str
    provider: str = ""


class ModeChange(Entry):
    """A mode of the harness (plan, permission, thinking level) in force from here on."""

    kind: Literal["mode_change"] = "mode_change"
    mode: str
    value: str = ""


class Invocation(Entry):
    """One model call: what it saw, as a delta on the previous manifest."""

    kind: Literal["invocation"] = "invocation"
    model: str = ""
    manifest: JsonValue = None


class ErrorEntry(Entry):
    """Something failed. An error is a fact of the log and never a message."""

    kind: Literal["error"] = "error"
    error: str
    data: JsonValue = None


class Quarantine(Entry):
    """A block that a provider refused, or an entry with all its blocks: views show a placeholder with its handle.

    Attributes:
        target: What is set aside.
        reason: Why, in words for people; it is never shown to a model.
        lifted: True when this entry takes the quarantine of the same place back. The newest entry about a place wins.
    """

    kind: Literal["quarantine"] = "quarantine"
    target: Place
    reason: str = ""
    lifted: bool = False


class Tombstone(Entry):
    """What is left of an erased entry of a kind that this version does not know; one that it knows keeps its kind (`Entry.erased`)."""

    kind: Literal["tombstone"] = "tombstone"
    was: str
    role: str = ""
    calls: tuple[str, ...] = ()


class UnknownEntry(Entry):
    """An entry of a kind that this version does not know; all its fields are kept and written back as they came."""

    kind: str


KINDS: Mapping[str, type[Entry]] = {
    model.model_fields["kind"].default: model
    for model in (
        MessageEntry,
        Instructions,
        Toolset,
        CallStarted,
        TurnStarted,
        TurnEnded,
        Inbox,
        Approval,
        LateResult,
        Compaction,
        ContextEdit,
        Pin,
        Constraint,
        BranchSummary,
        Custom,
        Label,
        ModelChange,
        ModeChange,
        Invocation,
        ErrorEntry,
        Quarantine,
        Tombstone,
    )
}
"""Every known kind and its class. What is not here is read as `UnknownEntry`."""
