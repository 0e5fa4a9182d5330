"""Parts: conversations that have a file of their own and belong to another one, as those of sub-agents do."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from palaver.formats.events import Conversation
from palaver.ids import DialogId, SessionId
from palaver.log import MessageEntry, decode_entry
from palaver.messages import ToolCallContent
from palaver.store.protocol import Store
from palaver.transcripts.places import Places

_AGENT = "agent-"
"""What Claude Code's names of the files of sub-agents begin with: beside the session's file, or in its folder `subagents`."""


class Joint(NamedTuple):
    """Where a part hangs on the conversation it belongs to.

    Attributes:
        session: The session of that conversation.
        under: The dialog that started it.
        owner: What kind of agent it is, or empty.
        call: The id of the call that started it, or empty.
        shown: The dialog that holds what the conversation itself recorded of it, or None.
    """

    session: SessionId
    under: DialogId
    owner: str = ""
    call: str = ""
    shown: DialogId | None = None


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Give files in an order in which each part comes after what it belongs to, as far as names tell; otherwise as they are."""
    return sorted(paths, key=lambda path: path.name.startswith(_AGENT))


def joint(store: Store, format_name: str, part: Conversation) -> Joint | None:
    """Find where a part belongs; None when it is no part, or what it belongs to was not imported whole."""
    source = store.source(f"{format_name}:{part.part_of}") if part.part_of else None
    if source is None or source.index is None:
        return None
    known = Places.decode(store.blob(source.index)).dialogs
    shown = known.get(part.key.partition("/")[2])
    if shown is not None:
        node = store.node(shown)
        if node.parent_id is not None:
            return Joint(source.session_id, node.parent_id, node.owner, str(node.metadata.get("call", "")), shown)
    return _called(store, source.session_id, part.prompt) or Joint(
        source.session_id, store.nodes(source.session_id)[0].dialog_id
    )


def _called(store: Store, session_id: SessionId, prompt: str) -> Joint | None:
    """Find the newest call that gave these words to an agent."""
    found: Joint | None = None
    for node in store.nodes(session_id) if prompt else ():
        for _, body in store.bodies(node.dialog_id, 0, store.last(node.dialog_id).seq + 1):
            if b'"prompt"' not in body:  # most entries call no agent, and need not be decoded
                continue
            entry = decode_entry(body)
            for block in entry.message.contents if isinstance(entry, MessageEntry) else ():
                if isinstance(block, ToolCallContent) and _digest(block.args.get("prompt")) == prompt:
                    owner = block.args.get("subagent_type")
                    found = Joint(session_id, node.dialog_id, owner if isinstance(owner, str) else "", block.id)
    return found


def _digest(words: object) -> str:
    return sha256(words.encode(errors="replace")).hexdigest() if isinstance(words, str) else ""
