"""The entries of a log: a closed union of immutable records.

One entry is one fact. What may follow what is in `palaver.log.headers`, in one table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag

from palaver.ids import DialogId, now
from palaver.log.values import (
    BlockEdit,
    BoundTo,
    Derived,
    Erasure,
    JsonText,
    JsonValue,
    LogValue,
    Omitted,
    Place,
    Redaction,
    Run,
    Section,
    Source,
    ToolSpec,
    exact_json,
)
from palaver.messages import Message


class Entry(LogValue):
    """What all entries have.

    Attributes:
        kind: The member of the union.
        at: When the fact happened, in seconds since 1970-01-01 UTC.
        source: Where an imported entry came from; None for an entry recorded here.
        erased: When and by which receipt its words were erased; None when they were not.
        redacted: What was taken out of it before it was written (`palaver.log.redaction`); None when nothing was.
        raw: The JSON that it was made from, as ASCII text, where its other fields do not give that back; None where they do.
    """

    kind: str
    at: float = Field(default_factory=now)
    source: Source | None = None
    erased: Erasure | None = None
    redacted: tuple[Redaction, ...] | None = None
    raw: JsonText | None = None


class MessageEntry(Entry):
    """A message, or a fragment of one: fragments of one assistant response share `message.response_id`.

    Attributes:
        message: The message.
        prompt: The path of the registered prompt that governs the model's next turn, or None. Messages of models and tools have none.
        bound: What the request of an answer had before it; None where no request is recorded.
    """

    kind: Literal["message"] = "message"
    message: Message
    prompt: str | None = None
    bound: BoundTo | None = None


class Instructions(Entry):
    """The system sections in force from here on; they replace the earlier ones.

    Attributes:
        sections: The sections.
        replaces: The system messages before the conversation that they replace, too.
    """

    kind: Literal["instructions"] = "instructions"
    sections: tuple[Section, ...] = ()
    replaces: tuple[Place, ...] = ()


class Toolset(Entry):
    """The tools declared from here on; they replace the earlier ones.

    Attributes:
        tools: The tools that the program runs.
        provided: The tools that the provider runs itself, by name: true, or their options; None when there are none.
    """

    kind: Literal["toolset"] = "toolset"
    tools: tuple[ToolSpec, ...] = ()
    provided: JsonValue = None


class CallStarted(Entry):
    """A tool call is about to run. It is written before the effect, so that a crash leaves the call `unknown`.

    Attributes:
        call_id: The open call that runs; a new id when the harness makes the call.
        tool: The tool's name.
        idempotent: Whether the call may run again after a crash.
        repeats: The earlier call of the model that the harness makes again; None for a call of the model.
    """

    kind: Literal["call_started"] = "call_started"
    call_id: str
    tool: str = ""
    idempotent: bool = False
    repeats: Place | None = None


class TurnStarted(Entry):
    """An agent began a turn."""

    kind: Literal["turn_started"] = "turn_started"
    agent: str = ""


class TurnEnded(Entry):
    """An agent's turn ended: `final`, `failed`, `interrupted` or another word of the loop's."""

    kind: Literal["turn_ended"] = "turn_ended"
    outcome: str = "final"


class Cancelled(Entry):
    """Somebody cancelled: nothing continues unasked until something new is said or decided."""

    kind: Literal["cancelled"] = "cancelled"


class Inbox(Entry):
    """A message that arrived during a turn and waits to be delivered once."""

    kind: Literal["inbox"] = "inbox"
    message: Message


class Approval(Entry):
    """A decision about a call that waits for one.

    Attributes:
        call_id: The call.
        decision: `approve`, `deny`, `edit`, or `abandon` when the conversation continues without it.
        by: Who decided, or empty.
        reason: Why, for the model, or None.
        arguments: The arguments to run it with instead, when the decision is `edit`.
        always: The tool whose later calls in the session are decided in the same way, or None.
    """

    kind: Literal["approval"] = "approval"
    call_id: str
    decision: str
    by: str = ""
    reason: str | None = None
    arguments: JsonValue = None
    always: str | None = None


class LateResult(Entry):
    """A result that came after its call was answered or closed; it is kept and not shown."""

    kind: Literal["late_result"] = "late_result"
    message: Message


Piece: TypeAlias = Annotated[
    Annotated[Run, Tag("run")] | Annotated[Derived, Tag("derived")],
    Discriminator(lambda v: "derived" if "text" in (v if isinstance(v, dict) else vars(v)) else "run"),
]


class Compaction(Entry):
    """The whole view at `base`: a checkpoint from which later views start. The log keeps everything, so it can be undone.

    Attributes:
        base: The number of the dialog's last entry that it takes into account.
        pieces: What is in the view, in order: runs of entries, and derived texts between them.
        edits: The blocks of those runs that are shown in another form.
        omitted: Everything up to `base` that the view leaves out.
        leading: How many of the system messages in the pieces are instructions, because they came before the conversation; None when it is not
            recorded: then those before the first exchange are.
        closed: Whether the newest response is not in the pieces: then no older call can be answered any more.
        policy: The policy that made the plan.
        tokens_before: The size of the view before, in tokens.
        tokens_after: The size of the view after, in tokens; smaller than before.
        foreign: Whether another agent compacted, and the entry was imported.
        undone: The number of the dialog's own compaction that this one undoes, or None.
        attempt: How it came about: trigger, focus, what became of the summary; None when that is not recorded.
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
    """Single blocks shown in another form or left out; the newest edit of a block wins. `omitted` names blocks, never runs."""

    kind: Literal["context_edit"] = "context_edit"
    base: int
    edits: tuple[BlockEdit, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    policy: str = ""


class Pin(Entry):
    """An entry that every view must show, or (with `pinned` false) need not show any more."""

    kind: Literal["pin"] = "pin"
    target: Place
    pinned: bool = True


class BranchSummary(Entry):
    """What happened on another branch.

    Attributes:
        summary: What the model sees.
        dialog: The branch; None when it is not recorded.
        left: The last entry that both branches share; None when there is none, or it is not recorded.
        sources: The entries that the summary was made of; None when they are not recorded.
        trust: The lowest trust among them, the name of a `palaver.messages.Trust` in lower case; None for the lowest there is.
    """

    kind: Literal["branch_summary"] = "branch_summary"
    summary: str
    dialog: DialogId | None = None
    left: Place | None = None
    sources: tuple[Run, ...] | None = None
    trust: str | None = None


class Custom(Entry):
    """A record of an extension, or of an importer for content without an entry kind. No model sees it.

    `data` is made storable: a NUL or a lone surrogate in it is replaced, and keys are sorted. `Custom.exact` keeps a value as it is.

    Attributes:
        custom_type: What it records, such as `my-tool/state`.
        data: A JSON value, read-only.
    """

    kind: Literal["custom"] = "custom"
    custom_type: str
    data: JsonValue = None

    @classmethod
    def exact(cls, custom_type: str, value: object, **fields: Any) -> Self:  # noqa: ANN401 - of an entry
        """Return an entry whose `value` is exactly a JSON value: with NUL, lone surrogates and the order of keys.

        Args:
            custom_type: What it records.
            value: Dicts, lists, strings, numbers, bools and None.
            fields: Further fields of an entry, such as `at`.

        Raises:
            InvalidInput: The value is not JSON, such as NaN or a tuple.
        """
        return cls(custom_type=custom_type, raw=exact_json(value), **fields)

    @property
    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """The value as it went in, a new copy each time; of an entry made without `exact`, its `data`."""
        return self.data if self.raw is None else json.loads(self.raw)


class Label(Entry):
    """A name for an entry; None takes it away. The newest label wins."""

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
    """One model call: what it saw, as a difference to the manifest of the call before."""

    kind: Literal["invocation"] = "invocation"
    model: str = ""
    manifest: JsonValue = None


class ErrorEntry(Entry):
    """Something failed. An error is a fact of the log, not a message."""

    kind: Literal["error"] = "error"
    error: str
    data: JsonValue = None


class Quarantine(Entry):
    """A block that a provider refused, or an entry with all its blocks. Views show a placeholder with the handle.

    Attributes:
        target: What is set aside.
        reason: Why, for people; no model sees it.
        lifted: Whether this entry lifts the quarantine of the place. The newest entry about a place wins.
    """

    kind: Literal["quarantine"] = "quarantine"
    target: Place
    reason: str = ""
    lifted: bool = False


class Tombstone(Entry):
    """What is left of an erased entry of a kind that this version does not know. A known one keeps its kind (`Entry.erased`)."""

    kind: Literal["tombstone"] = "tombstone"
    was: str
    role: str = ""
    calls: tuple[str, ...] = ()


class UnknownEntry(Entry):
    """An entry of a kind that this version does not know. All its fields are kept and written back unchanged."""

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
        Cancelled,
        Inbox,
        Approval,
        LateResult,
        Compaction,
        ContextEdit,
        Pin,
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
"""Every known kind and its class. Any other kind is read as `UnknownEntry`."""
