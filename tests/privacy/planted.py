"""A session with a mark in every place where words can go, and a look for marks in raw files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from palaver import log, messages
from palaver.formats import open_source
from palaver.ids import DialogId, SessionId
from palaver.memory import Values
from palaver.session import Session, searchable
from palaver.store import SourceRecord, Store
from palaver.store.protocol import Capability
from palaver.transcripts.sources import keep

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def mark(name: str) -> str:
    """Make a mark that stands in no other text: letters of no word, so that an index stores it whole."""
    random = Random(name)  # noqa: S311 - nothing is protected by it
    return "".join(random.choice(_LETTERS) for _ in range(24))


@dataclass(frozen=True)
class Planted:
    """The session, and the marks in it.

    Attributes:
        session: The session.
        dialog: Its first dialog.
        marks: What was planted, by where.
        said: The entries that say something by themselves; the rest was made of them.
    """

    session: SessionId
    dialog: DialogId
    marks: Mapping[str, str]
    said: tuple[log.Handle, ...]


def plant(store: Store, folder: Path, who: str) -> Planted:
    """Make a session with a mark everywhere, a kept source file, and a full-text index of it all."""
    marks: dict[str, str] = {}

    def m(where: str) -> str:
        marks[where] = mark(f"{who} {where}")
        return f"words {marks[where]} words"

    session = Session.create(
        store, m("name"), subject=m("subject"), workdir=m("workdir"), metadata={"k": m("metadata")}
    )
    Values(session).set(m("value key"), [m("value")])
    root, dialog = session.root, session.root.dialog_id
    picture = messages.Media.from_bytes(b"\x89PNG\r\n\x1a\n" + m("media").encode())
    asked = messages.UserMessage(
        contents=(messages.TextContent(content=m("text")),), metadata={"note": m("message metadata")}
    )
    answered = messages.AssistantMessage(
        contents=(
            messages.ThinkingContent(content=m("thinking"), signature="c2ln"),
            messages.ToolCallContent(id="c1", name="find", args={"q": m("arguments")}),
            messages.ToolCallContent(id="c2", name="find", args={"q": 1}),
        ),
        usage={"input_tokens": 3, "provider_says": m("usage")},
        response_id="r1",
    )
    shown = (messages.TextContent(content=m("result")), messages.ImageContent(images=(picture,)))
    said = [
        *root.record(
            log.Instructions(sections=(log.Section(name=m("section"), text=m("instructions")),)),
            log.Toolset(tools=(log.ToolSpec(name="find", description=m("tool")),)),
            log.TurnStarted(agent="a"),
            log.MessageEntry(message=asked),
            log.MessageEntry(message=answered),
            log.CallStarted(call_id="c1", tool="find"),
            log.MessageEntry(message=_result("c1", shown)),
            log.MessageEntry(message=_result("c2", "short")),
            log.ErrorEntry(error=m("error"), data={"detail": m("error data")}),
            log.TurnEnded(),
            log.Custom(custom_type="note", data={"x": [m("custom")]}),
        ),
        *root.record(
            log.Approval(call_id="c2", decision="edit", reason=m("reason"), arguments={"q": m("approved")}),
            log.Inbox(message=messages.UserMessage(content=m("inbox"))),
            log.LateResult(message=_result("c1", m("late"))),
            beside=True,
        ),
    ]
    text, call = said[3:5]
    run = log.Run(dialog=dialog, start=text.seq, stop=call.seq + 1)
    child = root.fork()
    child.put_text("on a branch")
    root.record(
        log.Label(target=log.Place(dialog=dialog, seq=text.seq), label=m("label")),
        log.Quarantine(target=log.Place(dialog=dialog, seq=call.seq, block=0), reason=m("quarantined")),
        log.Invocation(model="m", manifest={"version": 1, "saw": {"items": [m("invocation")]}}),
        log.BranchSummary(summary=m("branch summary"), dialog=child.dialog_id, sources=(run,)),
        beside=True,
    )
    summary = log.Derived(text=m("summary"), sources=(run,))
    root.record(log.Compaction(base=store.last(dialog).seq, pieces=(summary,), policy="p"))
    file = folder / f"{who}.jsonl"
    file.write_text(m("source"))
    store.put_source(
        SourceRecord(
            identity=m("identity"),
            session_id=session.session_id,
            format="f",
            path=m("path"),
            raw=keep(store, session.session_id, open_source(file)),
        )
    )
    file.unlink()
    if Capability.SEARCH in store.capabilities:
        store.index(searchable)
    return Planted(session.session_id, dialog, marks, tuple(said))


def found(folders: Iterable[Path], marks: Mapping[str, str]) -> dict[str, list[str]]:
    """Return which marks stand in which raw files, whatever their case."""
    hits: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes().lower()
                for where, one in marks.items():
                    if one.encode() in data:
                        hits.setdefault(where, []).append(path.name)
    return hits


def _result(call: str, content: Any) -> messages.Message:  # noqa: ANN401 - a text or blocks
    return messages.ToolMessage.from_result(messages.ToolResultContent(id=call, content=content))
