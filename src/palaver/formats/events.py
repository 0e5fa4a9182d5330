"""What a reader of a foreign format emits: pure values, in the order of the file.

A reader has keys of its own for dialogs and counts its own puts. Wherever an entry names a place (`Run`, `Place`, in a compaction, a
context edit, a label), `dialog` is the reader's key and `seq`, `start` and `stop` count that dialog's puts from 0. The importer maps
them to real ids and numbers. A place always names a put that came before.

A reader must emit the same events when a file has grown, and then more. So of two branches the one that was recorded first keeps the
dialog and the later one becomes a fork; `Conversation.main` names the dialog with the newest entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from palaver.log import Entry

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation begins; what follows belongs to it until the next one begins.

    Attributes:
        key: The format's own id of the conversation; if empty, the importer uses the file and `ordinal`.
        ordinal: Its number among the file's conversations, starting at 0.
        title: A name for people, or empty.
        workdir: The working folder it was about, or empty.
        model: The model that was used first, or empty.
        started_at: When it began, in seconds since 1970-01-01 UTC; 0.0 if it is not recorded.
        main: The key of the dialog with the conversation's newest entry, sub-agents aside.
        metadata: What else the format records of the whole conversation; JSON values.
        part_of: The key of the conversation this one belongs to, for a sub-agent with a file of its own; or empty.
    """

    key: str
    ordinal: int = 0
    main: str = "main"
    title: str = ""
    workdir: str = ""
    model: str = ""
    started_at: float = 0.0
    metadata: Mapping[str, object] = field(default_factory=lambda: NOTHING)
    part_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A dialog begins. The first of a conversation has no parent.

    Attributes:
        dialog: The reader's key of the dialog, the same at every reading of the same or a grown file.
        parent: The key of the dialog it leaves, or None.
        at: How many of the parent's own puts it shares; it also shares all that the parent inherited. A sub-agent shares nothing.
        owner: The name of the agent that owns it.
        relation: `root`, `fork` or `subagent`.
        metadata: What else is recorded, such as the call that started a sub-agent.
    """

    dialog: str
    parent: str | None = None
    at: int = 0
    owner: str = ""
    relation: str = "root"
    metadata: Mapping[str, object] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An entry for a dialog.

    Attributes:
        dialog: The key of the dialog.
        entry: The entry.
        record: The identity of the record it was made from: the format's own id, or its number in the file as text.
        digest: The first 16 bytes of the SHA-256 of the record; a later import finds changed records by it.
        counted: 1 for the first entry of a message record of the format, else 0.
    """

    dialog: str
    entry: Entry
    record: str
    digest: bytes
    counted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that could not be imported whole, or was repaired.

    Attributes:
        place: Where, such as `line 812` or `messages[3]`.
        reason: What was lost or changed, in one sentence.
        code: One word for counting, such as `torn_tail`, `bad_record`, `dangling_parent`, `duplicate_id`, `orphan_result`,
            `surrogate`, `nul`, `skipped`.
        severity: `note` (kept elsewhere or expected), `warning` (repaired) or `loss` (only the kept source has it).
    """

    place: str
    reason: str
    code: str
    severity: str = "warning"


Event: TypeAlias = Conversation | Branch | Put | Loss
