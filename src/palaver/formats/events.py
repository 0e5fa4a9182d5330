"""The events of a reader of a foreign format: pure values, in the order of the file.

A reader has its own keys for dialogs and counts its own puts. Where an entry names a place (`Run`, `Place`, in a compaction, a
context edit, a label), `dialog` is the reader's key and `seq`, `start` and `stop` count that dialog's puts from 0. The importer maps
them to real ids and numbers. A place always names a put that came before.

When a file has grown, a reader must emit the same events, and then more. So the branch that was recorded first keeps the
dialog and a later one becomes a fork; `Conversation.main` names the dialog with the newest entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from palaver.log import Entry

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation begins. All events belong to it until the next one begins.

    Attributes:
        key: The format's own id of the conversation; if empty, the importer uses the file and `ordinal`.
        ordinal: Its number among the file's conversations, starting at 0.
        title: A name for people, or empty.
        workdir: Its working folder, or empty.
        model: The model that was used first, or empty.
        started_at: When it began, in seconds since 1970-01-01 UTC; 0.0 if it is not recorded.
        main: The key of the dialog with the conversation's newest entry, excluding sub-agents.
        metadata: Other data of the whole conversation; JSON values.
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
        parent: The key of the dialog it forks from, or None.
        at: The number of the parent's own puts that it shares. It also shares everything the parent inherited. A sub-agent shares nothing.
        owner: The name of the agent that owns it.
        relation: `root`, `fork` or `subagent`.
        metadata: Other recorded data, such as the call that started a sub-agent.
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
    """Content that could not be imported completely, or was repaired.

    Attributes:
        place: Its place, such as `line 812` or `messages[3]`.
        reason: The loss or change, in one sentence.
        code: One word for counting, such as `torn_tail`, `bad_record`, `dangling_parent`, `duplicate_id`, `orphan_result`,
            `surrogate`, `nul`, `skipped`.
        severity: `note` (kept elsewhere or expected), `warning` (repaired) or `loss` (no message has it: only the kept
            source does, or the metadata).
    """

    place: str
    reason: str
    code: str
    severity: str = "warning"


Event: TypeAlias = Conversation | Branch | Put | Loss

T = TypeVar("T")


def without_losses(values: Iterable[T | Loss], losses: list[Loss]) -> Iterator[T]:
    """Yield the values that could be read, and add the losses among them to a list."""
    for value in values:
        if isinstance(value, Loss):
            losses.append(value)
        else:
            yield value
