"""Recall and search: from a handle to the original, and from words to handles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import (
    VERSION_OF,
    BranchSummary,
    Compaction,
    Derived,
    Entry,
    ErrorEntry,
    Handle,
    Inbox,
    Instructions,
    Label,
    LateResult,
    MessageEntry,
    decode_entry,
)
from palaver.messages import Content, Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent, hydrate
from palaver.messages.roles import Speaker
from palaver.plurals import a_type, counted
from palaver.store.protocol import Store
from palaver.store.records import payloads_of
from palaver.store.text import APART

_ID_DIGITS = 32

_SPEAK = frozenset({Speaker.HUMAN, Speaker.MODEL, Speaker.SUMMARY})
"""Whose words are prose."""


def whole(store: Store, session_id: SessionId, handle: Handle | str, reader: DialogId | None = None) -> Handle:
    """Return a handle with its full dialog id.

    Args:
        store: The store.
        session_id: The session.
        handle: The handle.
        reader: The dialog in which it was read. Where that is another machine's version of the dialog in the handle, the entry is the version's.

    Raises:
        InvalidInput: The text is not a handle.
        NotFound: The session has no such dialog.
    """
    place = Handle.parse(handle) if isinstance(handle, str) else handle
    if not isinstance(place, Handle):
        raise InvalidInput(
            f"{handle!r} is not a handle, but {a_type(handle)}.",
            hint="Writes return handles; their printed form works too.",
        )
    try:
        dialog = place.dialog if len(place.dialog) == _ID_DIGITS else store.resolve(place.dialog, session_id)
        ours = store.node(dialog).session_id == session_id
    except NotFound as error:
        raise NotFound(str(place), what="entry") from error
    if not ours:
        raise NotFound(str(place), what="entry", hint="It belongs to another session.")
    return Handle(_version(store, DialogId(dialog), reader), place.seq, place.block)


def _version(store: Store, dialog: DialogId, reader: DialogId | None) -> DialogId:
    """Return the dialog that another means by a dialog's id."""
    read = [] if reader is None else [reader, *(span.dialog for span in store.node(reader).ranges)]
    versions = (name for name in read if dialog not in read and store.node(name).metadata.get(VERSION_OF) == dialog)
    return next(versions, dialog)


def recall(
    store: Store, session_id: SessionId, handle: Handle | str, reader: DialogId | None = None
) -> Entry | Content:
    """Return the entry or block of a handle, with its media in memory; the arguments are those of `whole`.

    Raises:
        InvalidInput: The text is not a handle.
        NotFound: The session has no such entry or block, or the store lost the bytes of its media.
        Erased: The entry was erased.
    """
    place = whole(store, session_id, handle, reader)
    entry = decode_entry(store.body(place.dialog, place.seq))
    if entry.erased is not None:
        raise Erased("entry", str(place), entry.erased.at, entry.erased.receipt)
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        message = hydrate(entry.message, payloads_of(store, session_id))
        entry = entry.model_copy(update={"message": message})
    if place.block is None:
        return entry
    blocks = blocks_of(entry)
    if place.block >= len(blocks):
        raise NotFound(str(place), what="block", hint=f"The entry has {counted(len(blocks), 'block')}.")
    return blocks[place.block]


def blocks_of(entry: Entry) -> tuple[Content, ...]:
    """Return the blocks of an entry that handles can name."""
    match entry:
        case MessageEntry(message=message) | Inbox(message=message) | LateResult(message=message):
            return message.contents
        case Instructions(sections=sections):
            return tuple(TextContent(content=section.text) for section in sections)
        case BranchSummary(summary=text):
            return (TextContent(content=text),)
        case _:
            return ()


# --- search -----------------------------------------------------------------------------------------------------------------------------


def searchable(kind: str, body: bytes) -> str:  # noqa: ARG001 - the signature that a store's index needs
    """Return the text of an entry for a full-text index, each text on its line: what a person or model said, U+001E, and the rest."""
    entry = decode_entry(body)
    match entry:
        case MessageEntry(message=message) | Inbox(message=message) | LateResult(message=message):
            said, rest = _of_message(message)
        case BranchSummary(summary=text) | Label(label=str(text)):
            said, rest = [text], []
        case Compaction(pieces=pieces):
            said, rest = [piece.text for piece in pieces if isinstance(piece, Derived)], []
        case Instructions(sections=sections):
            said, rest = [], [section.text for section in sections]
        case ErrorEntry(error=text):
            said, rest = [], [text]
        case _:
            return ""
    return "\n".join(said) + (f"{APART}{chr(10).join(rest)}" if rest else "")


def _of_message(message: Message) -> tuple[list[str], list[str]]:
    """Return the texts of a message that a person or model said, and the rest: of tools, and what the program put in."""
    texts: list[str] = []
    rest: list[str] = []
    if not message.contents:
        texts.append(message.text_content())  # a summary has its text outside its blocks
    for block in message.contents:
        match block:
            case TextContent(content=text):
                texts.append(text)
            case ThinkingContent(content=text):
                rest.append(text)
            case ToolCallContent(name=name):
                rest += [name, *_in_json(block.args if block.raw_args is None else block.raw_args)]
            case ToolResultContent():
                rest.append(block.text())
            case _:
                pass
    return (texts, rest) if message.speaker in _SPEAK else ([], texts + rest)


def _in_json(value: object) -> Iterator[str]:
    """Yield the keys and plain values in JSON. Strings are unchanged, so that a search finds a path or a line of code as written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _in_json(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in_json(item)
    elif value is not None:
        yield json.dumps(value)
