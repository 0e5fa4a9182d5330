"""Export a session in a format that another tool reads, and report content that the format cannot express."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from palaver.dialects import names, write_view
from palaver.errors import InvalidInput, NotFound
from palaver.formats.claude_code import writing as claude_code
from palaver.formats.codex import writing as codex
from palaver.formats.pi import writing as pi
from palaver.formats.writing import Continuing, Heading, Tool, uuid
from palaver.ids import DialogId, SessionId
from palaver.log import Handle, MessageEntry
from palaver.messages import Role, canonical_json
from palaver.plurals import counted
from palaver.providers import APIS
from palaver.session.waiting import undelivered
from palaver.store.protocol import SessionRecord, Store
from palaver.store.records import payloads_of
from palaver.store.redacting import RedactLike, redactor_of
from palaver.store.titles import own_title
from palaver.transcripts.markdown import markdown
from palaver.transcripts.operations import lost_in_events, operations
from palaver.transcripts.trajectory import subagents, trajectory
from palaver.transfer.bundle import export_bundle, redacted_copy
from palaver.view import Exchange, View, fold
from palaver.wire import Change, How, Report
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An exported session.

    Attributes:
        pieces: Its bytes in pieces, which can be read once.
        report: Content that the format cannot express, or expresses differently, and other dialogs of the session. Empty for a bundle, which contains everything.
        continuing: Where to put a tool's transcript and what to type to continue; None for other formats.
        end: The dialog that a tool's transcript shows, and the number of its last own entry, or -1; None for other formats.
        exchanges: The exchange that each line of a tool's transcript shows, or None; empty for other formats.
    """

    pieces: Iterator[bytes]
    report: Report
    continuing: Continuing | None = None
    end: Handle | None = None
    exchanges: Sequence[Exchange | None] = ()

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
        to: One of `export_forms()`. A bundle contains all dialogs; the other formats contain one.
        dialog_id: The dialog; None for the one to continue with, `SessionRecord.root`.
        whole: True for the whole conversation, False for the model's current view.
        redact: A redactor that removes secrets, or True for one that recognises common keys and tokens.

    Raises:
        NotFound: The format or the session does not exist.
        InvalidInput: The session has no dialog.
    """
    if to not in export_forms():
        raise no_form(to, export_forms())
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
    others = tuple(_other_dialogs(store, session_id, {dialog, *(_with_subagents(store, view) if to == "atif" else ())}))
    if to == "markdown":
        said = markdown(store, record, view, (message for _, message in waiting))
        return Exported(pieces=(text.encode() for text in said), report=Report(others))
    done = _dialog(store, record, view, to, whole=whole)
    left = (Change(Handle(dialog, seq), "message", How.DROPPED, _NOT_DELIVERED) for seq, _ in waiting)
    return replace(done, report=Report((*done.report, *left, *others)))


def _other_dialogs(store: Store, session_id: SessionId, written: Collection[DialogId]) -> Iterator[Change]:
    """Yield one change that names the session's dialogs that are not written, if it has any."""
    if others := [node.dialog_id[:12] for node in store.nodes(session_id) if node.dialog_id not in written]:
        why = f"an export has one dialog; export the others by their ids, or all in a bundle: {', '.join(others)}"
        yield Change(None, counted(len(others), "other dialog"), How.DROPPED, why)


def _with_subagents(store: Store, view: View) -> Iterator[DialogId]:
    """Yield the dialogs of sub-agents that a trajectory contains, those in them included."""
    for dialog in subagents(store, view):
        yield dialog
        yield from _with_subagents(store, fold(store, dialog))


_NOT_DELIVERED = "it waits in the inbox and is not part of the conversation yet"


TOOLS: Mapping[str, Tool] = MappingProxyType({"claude-code": claude_code, "codex": codex, "pi": pi})
"""The tools whose transcripts can be written."""


def export_forms() -> tuple[str, ...]:
    """Return the formats that `export` writes: palaver's own, pages for people, transcripts of tools, and a list of each dialect."""
    return ("bundle", "markdown", *TOOLS, "atif", "otel-events", *names())


def no_form(name: str, forms: Collection[str]) -> NotFound:
    """Return the error for a format that does not exist."""
    return NotFound(name, what="form", close=get_close_matches(name, forms), hint=f"Forms: {', '.join(forms)}.")


def _list(view: View, to: str, load: Load) -> Exported:
    """Export a list of a dialect: of an API, the parts of a request that contain the conversation; of others, the list alone."""
    written = write_view(view, to, load)
    if to in APIS:
        said = APIS[to].dialect
        parts = {said.system: written.system, said.items: written.items, "tools": written.tools}
        body: object = {key: part for key, part in parts.items() if key == said.items or (key and part)}
        return Exported(pieces=iter((canonical_json(body), b"\n")), report=written.report)
    notes = ChangeNotes(written.report)
    if view.tools:
        notes.add(None, "tools", How.DROPPED, "a list of this dialect has only messages")
    return Exported(pieces=iter((canonical_json(written.items), b"\n")), report=Report(tuple(notes)))


def _dialog(store: Store, record: SessionRecord, view: View, to: str, *, whole: bool) -> Exported:
    """Export a view in a format of one dialog."""
    load, notes = payloads_of(store, record.session_id), ChangeNotes()
    if to in TOOLS:
        return _transcript(store, record, view, TOOLS[to])
    if to == "atif":
        body = trajectory(store, record, view, load, notes, whole=whole)
        return Exported(pieces=iter((canonical_json(body), b"\n")), report=Report(tuple(notes)))
    if to == "otel-events":
        lost_in_events(store, view, notes)
        return Exported(pieces=operations(store, view), report=Report(tuple(notes)))
    return _list(view, to, load)


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
    return Exported(
        pieces=(canonical_json(line.record) + b"\n" for line in lines),
        report=Report(tuple(notes)),
        continuing=tool.continuing(heading),
        end=Handle(view.dialog_id, view.at),
        exchanges=[line.exchange for line in lines],
    )


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
