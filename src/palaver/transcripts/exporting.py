"""Exporting: a session in the form another tool reads. What the form cannot hold is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from palaver.errors import InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId
from palaver.messages import canonical_json
from palaver.store.protocol import Store
from palaver.store.redacting import RedactLike, redactor_of
from palaver.transcripts.bundle import export_bundle
from palaver.transcripts.chains import chain_report, export_chain
from palaver.transcripts.markdown import markdown
from palaver.transcripts.redacting import redacted_copy
from palaver.view import View, fold
from palaver.wire import Call, Report, compile, profile  # noqa: A004 - the word for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A session in another form.

    Attributes:
        pieces: Its bytes, piece by piece; they can be taken once.
        report: What the form cannot hold, or holds otherwise. Empty for a bundle, which holds everything.
        suffix: How such a file's name ends, with the dot.
    """

    pieces: Iterator[bytes]
    report: Report
    suffix: str


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
        store: Where it is.
        session_id: The session.
        to: One of `EXPORTS`. A bundle and a session file of pi hold all dialogs; the other forms hold one.
        dialog_id: The dialog; None for the one to go on with, `SessionRecord.root`.
        whole: True for everything that was said, False for what the model would see now.
        redact: What takes secrets out of all that is written: a redactor, or True for one that knows the usual keys and tokens.

    Raises:
        NotFound: There is no such form.
        InvalidInput: The session has no dialog.
        UnknownSession: No such session.
    """
    form = EXPORTS.get(to)
    if form is None:
        close = get_close_matches(to, EXPORTS)
        raise NotFound(to, what="form", close=close, hint=f"Forms: {', '.join(EXPORTS)}.")
    redactor = redactor_of(redact)
    if redactor is not None:
        store = redacted_copy(store, session_id, redactor)
    record = store.session(session_id)
    if form.all is not None:
        return form.all(store, session_id)
    dialog = dialog_id or record.root
    if dialog is None or form.one is None:
        raise InvalidInput(f"Session {session_id[:12]} has no dialog yet.", hint="Append to it first.")
    return form.one(store, session_id, fold(store, dialog, whole=whole))


def _chat(store: Store, session_id: SessionId, view: View) -> Exported:
    return _compiled(store, session_id, view, "openai-chat", ("messages", "tools"))


def _anthropic(store: Store, session_id: SessionId, view: View) -> Exported:
    return _compiled(store, session_id, view, "anthropic", ("system", "messages", "tools"))


def _compiled(store: Store, _session_id: SessionId, view: View, name: str, keys: tuple[str, ...]) -> Exported:
    """Write the parts of a request that are the conversation. What the provider would not take is replaced, and in the report."""
    request = compile(
        view, profile(name), Call(model=view.model or "unknown", cache=False), lambda digest: store.blob(BlobId(digest))
    )
    body = {key: request.body[key] for key in keys if key in request.body}
    return Exported(pieces=iter((canonical_json(body), b"\n")), report=request.report, suffix=".json")


def _markdown(store: Store, session_id: SessionId, view: View) -> Exported:
    pieces = (text.encode() for text in markdown(store.session(session_id), view))
    return Exported(pieces=pieces, report=Report(), suffix=".md")


def _bundle(store: Store, session_id: SessionId) -> Exported:
    return Exported(pieces=export_bundle(store, session_id), report=Report(), suffix=".palaver")


def _pi(store: Store, session_id: SessionId) -> Exported:
    return Exported(pieces=export_chain(store, session_id), report=chain_report(store, session_id), suffix=".jsonl")


@dataclass(frozen=True, slots=True)
class Form:
    """A form that sessions are exported in.

    Attributes:
        title: What it is, for people.
        suffix: How such a file's name ends.
        one: Writes one dialog, as a view shows it; None for a form that holds a whole session.
        all: Writes the whole session; None for a form that holds one dialog.
    """

    title: str
    suffix: str
    one: Callable[[Store, SessionId, View], Exported] | None = None
    all: Callable[[Store, SessionId], Exported] | None = None


EXPORTS: Mapping[str, Form] = MappingProxyType(
    {
        "bundle": Form("palaver's own: everything, framed and checked", ".palaver", all=_bundle),
        "openai-chat": Form("chat completions messages", ".json", _chat),
        "anthropic": Form("Anthropic messages", ".json", _anthropic),
        "pi": Form("a session file with parents, as pi and session managers keep it", ".jsonl", all=_pi),
        "markdown": Form("Markdown, for people", ".md", _markdown),
    }
)
"""The forms, by the name that `export` takes."""
