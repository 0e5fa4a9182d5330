"""Export a session in a format that another tool reads, and report content that the format cannot express."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from palaver.errors import InvalidInput, NotFound
from palaver.formats.claude_code import writing as claude_code
from palaver.formats.codex import writing as codex
from palaver.formats.pi import writing as pi
from palaver.formats.writing import Continuing, Heading, Tool, uuid
from palaver.ids import DialogId, SessionId
from palaver.log import Handle, MessageEntry
from palaver.messages import Role, canonical_json
from palaver.plurals import counted
from palaver.providers import profile
from palaver.session.waiting import undelivered
from palaver.store.protocol import SessionRecord, Store
from palaver.store.records import payloads_of
from palaver.store.redacting import RedactLike, redactor_of
from palaver.store.titles import own_title
from palaver.transcripts.markdown import markdown
from palaver.transfer.bundle import export_bundle, redacted_copy
from palaver.view import View, fold
from palaver.wire import Call, Change, How, Report, compile  # noqa: A004 - the word for it
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An exported session.

    Attributes:
        pieces: Its bytes in pieces, which can be read once.
        report: Content that the format cannot express, or expresses differently, and other dialogs of the session. Empty for a bundle, which contains everything.
        continuing: Where to put a tool's transcript and what to type to continue; None for other formats.
    """

    pieces: Iterator[bytes]
    report: Report
    continuing: Continuing | None = None

    @property
    def advice(self) -> str:
        """Where to put a tool's transcript and what to type to continue; empty for other formats."""
        return str(self.continuing or "")


def export(
    store: Store,
    session_id: SessionId,
    to: str,
    *,
    dialog_id: DialogId | None = None,
    whole: bool = True,
    redact: RedactLike = False,
) -> Exported:
    """Export a session.

    Args:
        store: Its store.
        session_id: The session.
        to: One of `EXPORTS`. A bundle contains all dialogs; the other formats contain one.
        dialog_id: The dialog; None for the one to continue with, `SessionRecord.root`.
        whole: True for the whole conversation, False for the model's current view.
        redact: A redactor that removes secrets, or True for one that recognises common keys and tokens.

    Raises:
        NotFound: The format or the session does not exist.
        InvalidInput: The session has no dialog.
    """
    if to not in EXPORTS:
        close = get_close_matches(to, EXPORTS)
        raise NotFound(to, what="form", close=close, hint=f"Forms: {', '.join(EXPORTS)}.")
    redactor = redactor_of(redact)
    if redactor is not None:
        store = redacted_copy(store, session_id, redactor)
    record = store.session(session_id)
    if to == "bundle":
        return Exported(pieces=export_bundle(store, session_id), report=Report())
    dialog = dialog_id or record.root
    if dialog is None:
        raise InvalidInput(f"Session {session_id[:12]} has no dialog yet.", hint="Append to it first.")
    view = fold(store, dialog, whole=whole)
    view.load()
    waiting = tuple(undelivered(store, dialog))
    others = tuple(_other_dialogs(store, session_id, dialog))
    if to == "markdown":
        said = markdown(store, record, view, (message for _, message in waiting))
        return Exported(pieces=(text.encode() for text in said), report=Report(others))
    done = (
        _transcript(store, record, view, TOOLS[to])
        if to in TOOLS
        else _compiled(view, to, payloads_of(store, session_id))
    )
    left = (Change(Handle(dialog, seq), "message", How.DROPPED, _NOT_DELIVERED) for seq, _ in waiting)
    return replace(done, report=Report((*done.report, *left, *others)))


def _other_dialogs(store: Store, session_id: SessionId, dialog_id: DialogId) -> Iterator[Change]:
    """Yield one change that names the session's other dialogs, if it has any."""
    if others := [node.dialog_id[:12] for node in store.nodes(session_id) if node.dialog_id != dialog_id]:
        why = f"an export has one dialog; export the others by their ids, or all in a bundle: {', '.join(others)}"
        yield Change(None, counted(len(others), "other dialog"), How.DROPPED, why)


_NOT_DELIVERED = "it waits in the inbox and is not part of the conversation yet"


EXPORTS: Mapping[str, str] = MappingProxyType(
    {
        "bundle": "palaver's own: everything, framed and checked",
        "openai": "chat completions messages and tools",
        "anthropic": "Anthropic instructions, messages and tools",
        "markdown": "Markdown, for people",
        "claude-code": "a transcript that Claude Code resumes",
        "codex": "a transcript that Codex resumes",
        "pi": "a transcript that pi resumes",
    }
)
"""The export formats, each with a description."""

TOOLS: Mapping[str, Tool] = MappingProxyType({"claude-code": claude_code, "codex": codex, "pi": pi})
"""The tools whose transcripts can be written."""

_PROFILES: Mapping[str, tuple[str, Sequence[str]]] = {
    "openai": ("openai-chat", ("messages", "tools")),
    "anthropic": ("anthropic", ("system", "messages", "tools")),
}
"""The profile of each provider's format, and the parts of a request that contain the conversation."""


def _compiled(view: View, to: str, load: Load) -> Exported:
    """Export the parts of a request that contain the conversation. Content that the provider would refuse is replaced and reported."""
    name, keys = _PROFILES[to]
    call = Call(model=view.model or "unknown", cache=False)
    request = compile(view, profile(name), call, load)
    body = {key: request.body[key] for key in keys if key in request.body}
    return Exported(pieces=iter((canonical_json(body), b"\n")), report=request.report)


def _transcript(store: Store, record: SessionRecord, view: View, tool: Tool) -> Exported:
    """Export a transcript with a new id, so that it never replaces an earlier export that the tool has continued."""
    heading = Heading(
        session=uuid(view.dialog_id, str(view.at), *view.policies, str(len(view.exchanges))),
        created=record.created_at,
        folder=record.workdir,
        title=own_title(store, record),
        model=view.model,
    )
    notes = ChangeNotes()
    lines = list(tool.written(view, heading, payloads_of(store, record.session_id), notes))
    if _has_usage(view):
        notes.add(None, "usage", How.DROPPED, "it would count as the tool's own")
    pieces = (canonical_json(line) + b"\n" for line in lines)
    return Exported(pieces=pieces, report=Report(tuple(notes)), continuing=tool.continuing(heading))


def _has_usage(view: View) -> bool:
    said = (each.source for each in view.exchanges if each.role is Role.ASSISTANT)
    entries = (entry for source in said for entry in source.read(source.places()).values())
    return any(isinstance(entry, MessageEntry) and entry.message.usage for entry in entries)


# --- files ----------------------------------------------------------------------------------------------------------------------


def partial_path(target: Path) -> Path:
    """Return the path of a file while it is written: next to the target, with the same name at every try."""
    place = target.resolve()
    return place.with_name(f".{place.name}.partial")


def write_file(target: Path, pieces: Iterable[bytes], note: Callable[[Path], None] = lambda _path: None) -> int:
    """Write a file atomically, readable only by its owner. Return its size in bytes.

    Args:
        target: The file. A pipe or another special file is written to directly.
        pieces: Its bytes.
        note: Called with the path of the unfinished file before it exists, so that an interrupted export leaves no unknown file.

    Raises:
        OSError: It cannot be written.
    """
    place = target.resolve()
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            return sum(file.write(piece) for piece in pieces)
    unfinished = partial_path(target)
    note(unfinished)
    try:
        unfinished.unlink(missing_ok=True)
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            size = sum(file.write(piece) for piece in pieces)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(place)
    except BaseException:  # an interrupt, too, must leave no partial file
        with suppress(OSError):
            unfinished.unlink()
        raise
    return size
