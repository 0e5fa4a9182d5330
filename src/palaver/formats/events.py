"""What a reader of a foreign format tells, one event after another: pure values, in the order of the file.

How a reader names places. It knows no dialog ids and no numbers in a store; it has keys of its own for dialogs, and counts its own puts.
So wherever an entry names a place (`Run`, `Place`, in a compaction, a context edit, a label), `dialog` is the reader's key of the dialog
and `seq`, `start` and `stop` count that dialog's puts from 0, whatever their kind. In a dialog that was imported in one go the count is
the number of the entry; the importer maps both otherwise, and writes the real ones. A place always names a put that came before.

How a reader stays the same while a file grows. Of two branches, the one that was recorded first keeps the dialog, and the later one
becomes a fork, because an entry that was imported never moves; `Conversation.main` says which dialog holds the newest entry of the
conversation itself, the one to go on with. What a reader can only say of the whole file it marks `derived`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from palaver.log import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation begins; what follows belongs to it until the next one begins.

    Attributes:
        key: The format's own id of the conversation, or empty where it has none (the importer then uses the file's lineage and `ordinal`).
        ordinal: Its number among the file's conversations, starting at 0.
        title: A name for people, or empty.
        workdir: The working folder it was about, or empty.
        model: The model that was used first, or empty.
        started_at: When it began, in seconds since 1970-01-01 UTC; 0.0 where it is not recorded.
        main: The key of the dialog to go on with: the one that holds the conversation's newest entry; sub-agents do not count.
        metadata: What else the format says of the whole conversation; JSON values.
        part_of: The key of the conversation that this one is a part of, as that of a sub-agent with a file of its own is; or empty.
        prompt: SHA-256, hexadecimal, of the words that such a part was started with, which the call that started it has too; or empty.
    """

    key: str
    ordinal: int = 0
    main: str = ""
    title: str = ""
    workdir: str = ""
    model: str = ""
    started_at: float = 0.0
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    part_of: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A dialog begins. The first of a conversation has no parent.

    Attributes:
        dialog: The reader's own key of the dialog, the same at every reading of the same or a grown file.
        parent: The key of the dialog it leaves, or None.
        at: How many entries, of those the reader has put into the parent itself, it shares; it shares all that the parent inherited.
            0 with `relation` `subagent` means that it shares nothing.
        owner: Who owns it: the agent's name.
        relation: `root`, `fork` or `subagent`.
        metadata: What else is known, such as the call that started a sub-agent.
    """

    dialog: str
    parent: str | None = None
    at: int = 0
    owner: str = ""
    relation: str = "root"
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An entry for a dialog.

    Attributes:
        dialog: The key of the dialog.
        entry: The entry.
        record: The identity of the record it was made from: the format's own id, or its number in the file as text.
        digest: The first 16 bytes of SHA-256 of the record's bytes: tells at a later import whether the record was changed.
        counted: 1 when the record is one of the format's own message records, else 0; at most one entry of a record says 1. What a
            format records twice counts once, and what it records beside the conversation (the messages of a sub-agent within the
            progress of its call) not at all, although they are put.
        derived: True when the entry was made from the file as a whole (tools reconstructed from the calls): no record stands for it,
            `digest` is empty, and a later import does not compare it, but puts it anew where it has changed.
    """

    dialog: str
    entry: Entry
    record: str
    digest: bytes
    counted: int = 0
    derived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that could not be carried over whole, or was repaired.

    Attributes:
        place: Where, such as `line 812` or `messages[3].content[0]`.
        reason: What was lost or changed, in one sentence.
        code: One word for counting, such as `torn_tail`, `bad_record`, `dangling_parent`, `duplicate_id`, `orphan_result`, `surrogate`, `nul`, `skipped`, `stub`.
        severity: `note` (kept elsewhere or expected), `warning` (repaired), `loss` (content is gone from the log; the kept source still has it).
    """

    place: str
    reason: str
    code: str
    severity: str = "warning"


Event: TypeAlias = Conversation | Branch | Put | Loss
