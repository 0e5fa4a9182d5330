"""Writing into a dialog: what callers say as messages, and the known head, after which they are written."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from palaver.errors import Conflict, InvalidInput, InvalidMessage, MissingFile, NotFound
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Entry, Handle, Header, Reader, draft, erased_since
from palaver.messages import Content, FrozenDict, Media, Message, Role, TextContent, ToolMessage, media_of
from palaver.messages.media import sniff
from palaver.plurals import a_type
from palaver.prompts import Prompt, StringFormatterRenderer
from palaver.prompts.render import VerbatimRenderer
from palaver.store.protocol import Store

__all__ = [
    "KnownHead",
    "SessionClock",
    "mapping",
    "media_from",
    "message_of",
    "rendered",
    "require_unerased",
    "stamped",
]

_TICK = 1e-6
"""Seconds between two entries of a clock that stands still or was set back."""


class SessionClock:
    """Gives times after all that a session has, so that a clock that was set back makes no branch older than it is."""

    def __init__(self, store: Store, session_id: SessionId) -> None:
        """Read nothing yet."""
        self._store = store
        self._session_id = session_id
        self._latest = 0.0

    def tick(self, at: float) -> float:
        """Return a time, or one just after the session's newest where that is later."""
        latest = self._latest or self._store.session(self._session_id).updated_at
        self._latest = at if at > latest else latest + _TICK
        return self._latest


class KnownHead:
    """The newest entry of a dialog that this process wrote or read.

    A write that continues the turn is compared with it: when another writer was first, the store raises `Conflict` and nothing is written.
    Several threads may use one object, one at a time: a lock is held around each write.

    Attributes:
        last: The header of that entry; `NOTHING` in an empty dialog.
        changes: How often something that was read is different now: erased, or rolled back with its transaction. What was computed before is void.
    """

    def __init__(
        self,
        store: Store,
        dialog_id: DialogId,
        clock: SessionClock | None = None,
        written: Callable[[Header], None] | None = None,
    ) -> None:
        """Read the newest header.

        Args:
            store: The store.
            dialog_id: The dialog.
            clock: Gives entries their time, unless their maker did.
            written: Called after each write, when it is durable.
        """
        self._clock = clock
        self._store = store
        self._dialog_id = dialog_id
        self._written = written
        self._lock = threading.RLock()
        self.last = store.last(dialog_id)
        self.changes = 0
        self._looked = self.last.seq

    def append(self, entries: Iterable[Entry]) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, with their media, all or none, and return their handles.

        Raises:
            Conflict: Another writer was first; nothing was written.
            InvalidInput: An entry may not follow.
        """
        drafts, payloads = [], list[bytes]()
        for entry in entries:
            ready, media = draft(self._timed(entry))
            drafts.append(ready)
            payloads += media.values()
        with self._lock:
            with _keeping(self._store, payloads) if payloads else nullcontext():
                headers = self._store.append(self._dialog_id, drafts, self.last.turn_head)
            if headers:
                self._note(headers[0], headers[-1])
        return tuple(Handle(self._dialog_id, header.seq) for header in headers)

    def annotate(self, entry: Entry, check: Callable[[Header], None] | None = None) -> Handle:
        """Add an entry beside the turn, with its media, and return its handle.

        Args:
            entry: The entry.
            check: Raises to refuse the entry, given its header. Called in the same transaction, after the write, so no other writer comes between.

        Raises:
            InvalidInput: The entry may not stand beside a turn.
        """
        ready, media = draft(self._timed(entry))
        with self._lock:
            with self._store.transaction() if check else nullcontext(), _keeping(self._store, media.values()):
                header = self._store.annotate(self._dialog_id, ready)
                if check is not None:
                    check(header)
            self._note(header, header if header.turn_head == self.last.turn_head else self.last)
        return Handle(self._dialog_id, header.seq)

    def _note(self, first: Header, last: Header) -> None:
        """Record what was just written."""
        if first.seq == self._looked + 1:  # nobody wrote in between
            self._looked = max(last.seq, first.seq)
        self.last = last
        if self._written is not None:
            self._written(max(first, last))

    def _timed(self, entry: Entry) -> Entry:
        """Return an entry with the session's time, unless its maker gave it one."""
        if self._clock is None or "at" in entry.model_fields_set:
            return entry
        at = self._clock.tick(entry.at)
        return entry if at == entry.at else entry.model_copy(update={"at": at})

    def refresh(self) -> Header:
        """Read entries beside the turn, whoever wrote them, and return the newest known header.

        What another writer added to the turn stays unknown until `reload`, but an erasure counts at once.
        """
        newest = self._store.last(self._dialog_id)
        with self._lock:
            if newest == self.last and newest.seq == self._looked:
                return newest
            if not self._stands(newest):  # its transaction was rolled back
                self.changes += 1
                self.last = newest
            elif erased_since(self._store, self._dialog_id, self._looked) is not None:
                self.changes += 1
            self._looked = newest.seq
            if newest.turn_head == self.last.turn_head:
                self.last = newest
            return self.last

    def _stands(self, newest: Header) -> bool:
        if self.last.seq < 0:
            return True
        try:
            return self.last.seq <= newest.seq and _same(self._store.header(self._dialog_id, self.last.seq), self.last)
        except NotFound:
            return False

    def reload(self) -> Header:
        """Read everything that was written, and return the newest header."""
        self.refresh()
        with self._lock:
            self.last = self._store.last(self._dialog_id)
            return self.last


def _same(one: Header, other: Header) -> bool:
    """Return whether two headers are of one entry; an erasure changes its size and digest, and the totals after it."""
    return (one.at, one.kind, one.role, one.number) == (other.at, other.kind, other.role, other.number)


@contextmanager
def _keeping(store: Store, payloads: Collection[bytes]) -> Iterator[None]:
    """Store payloads in one step with the entries that name them, so that no erasure or sweep removes them in between."""
    if not payloads:
        yield
        return
    with store.transaction():
        for payload in payloads:
            store.put_blob(payload)
        yield


def require_unerased(reader: Reader, dialog_id: DialogId, at: int, what: str) -> None:
    """Refuse what was computed from a dialog before something in it was erased: it may repeat the words.

    Args:
        reader: The log as it is now.
        dialog_id: The dialog.
        at: The number of the last own entry that was taken into account, -1 for none.
        what: What was computed, as the subject of a clause.

    Raises:
        Conflict: Something was erased.
    """
    erased = erased_since(reader, dialog_id, at)
    if erased is not None:
        raise Conflict(
            dialog_id,
            at,
            erased,
            why=f"An entry that dialog {dialog_id} holds was erased after {what} was made. Nothing was written.",
            hint=f"Reload the dialog and make {what} again.",
        )


# --- what callers say -----------------------------------------------------------------------------------------------------------------


def message_of(
    dialog_id: DialogId,
    said: str | tuple[Content, ...],
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    role: Role | str = Role.USER,
) -> Message:
    """Return a message that bears its dialog's id; the name defaults to that of the role."""
    kept = {**mapping(metadata, "metadata"), "dialog_id": dialog_id}
    if role == Role.TOOL:  # what a tool says is a result
        return Message(role=role, content=said, name=name, metadata=kept)
    blocks = (TextContent(content=said),) if isinstance(said, str) else said
    return Message(role=role, contents=blocks, name=name, metadata=kept)


def mapping(value: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Return an optional mapping, empty for None.

    Raises:
        TypeError: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a mapping, not {a_type(value)}.")
    return value


def rendered(prompt: Prompt, prompt_args: Mapping[str, Any] | None) -> str:
    """Return the text of a prompt with a caller's arguments.

    Raises:
        TypeError: The arguments are not a mapping.
        InvalidInput: Variables are missing, or there are arguments although the prompt is a plain text or has no variables.
    """
    args = mapping(prompt_args, "prompt_args")
    if args and not prompt.template_vars and isinstance(prompt.renderer, StringFormatterRenderer | VerbatimRenderer):
        raise InvalidInput(
            f"The prompt {prompt.path!r} has no variables for {', '.join(map(str, args))}.",
            hint="A string is not a template: pass a Prompt, or leave out prompt_args.",
        )
    return prompt.render(args)


def stamped(message: Message, dialog_id: DialogId, store: Store) -> Sequence[Message]:
    """Return a message as a dialog stores it: with the dialog's id in its metadata, and one message for each result of a tool.

    Raises:
        MissingFile: It refers to media whose bytes neither it nor the store has.
    """
    for media in media_of(message):
        if media.data is None and not media.url and not store.has_blob(BlobId(media.digest)):
            raise MissingFile(media.digest, what="media payload", hint="Neither the message nor the store has it.")
    parts = message.split() if isinstance(message, ToolMessage) else (message,)
    return [_stamped(part, dialog_id) for part in parts]


def _stamped(message: Message, dialog_id: DialogId) -> Message:
    if message.metadata.get("dialog_id") == dialog_id:
        return message
    metadata = FrozenDict({**message.metadata, "dialog_id": dialog_id})
    return BaseModel.model_copy(message, update={"metadata": metadata})  # valid before, so valid now


def media_from(image: object) -> Media:
    """Return the media value of a path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.

    A string that is the base64 of an image is that image, even where a file has such a name. Any other string that is not an address names
    a file.

    Raises:
        MissingFile: A string or path names no file.
        InvalidMessage: It is not an image that palaver knows.
    """
    if not isinstance(image, str) or image.startswith(("http://", "https://")) or image[:5].lower() == "data:":
        return Media.of(image)
    decoded = _decoded(image)
    if decoded and sniff(decoded, "image") is not None:
        return Media.from_bytes(decoded)
    if decoded and not Path(image).exists():
        raise InvalidMessage(f"{image[:40]!r} is not a file, and as base64 it is not an image that palaver knows.")
    return Media.from_file(image)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
