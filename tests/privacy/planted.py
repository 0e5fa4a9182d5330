"""A session with a mark in every place where words can go, and a look for marks in raw files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from palaver.ids import DialogId, SessionId
from palaver.log import (
    Approval,
    BranchSummary,
    CallStarted,
    Compaction,
    Custom,
    Derived,
    Entry,
    ErrorEntry,
    Handle,
    Inbox,
    Instructions,
    Invocation,
    Label,
    LateResult,
    MessageEntry,
    Place,
    Quarantine,
    Run,
    Section,
    Toolset,
    ToolSpec,
    TurnEnded,
    TurnStarted,
)
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.session import Session, searchable
from palaver.store import SourceRecord, Store
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
    said: tuple[Handle, ...]
    made: frozenset[str] = field(default=frozenset())


def plant(store: Store, folder: Path, who: str) -> Planted:
    """Make a session with a mark everywhere, a kept source file, and a full-text index of it all."""
    marks: dict[str, str] = {}

    def m(where: str) -> str:
        marks[where] = mark(f"{who} {where}")
        return f"words {marks[where]} words"

    session = Session.create(
        store, m("name"), subject=m("subject"), workdir=m("workdir"), metadata={"k": m("metadata")}
    )
    root = session.root
    dialog = root.dialog_id
    picture = b"\x89PNG\r\n\x1a\n" + m("media").encode()
    said: list[Handle] = []

    def turn(*entries: Entry) -> None:
        said.extend(root.record(*entries))

    turn(
        Instructions(sections=(Section(name=m("section"), text=m("instructions")),)),
        Toolset(tools=(ToolSpec(name="find", description=m("tool")),)),
        TurnStarted(agent="a"),
        MessageEntry(
            message=UserMessage(contents=(TextContent(content=m("text")),), metadata={"note": m("message metadata")})
        ),
    )
    turn(
        MessageEntry(
            message=AssistantMessage(
                contents=(
                    ThinkingContent(content=m("thinking"), signature="c2ln"),
                    ToolCallContent(id="c1", name="find", args={"q": m("arguments")}),
                    ToolCallContent(id="c2", name="find", args={"q": 1}),
                ),
                usage={"input_tokens": 3, "provider_says": m("usage")},
                response_id="r1",
            )
        ),
        CallStarted(call_id="c1", tool="find"),
        MessageEntry(
            message=ToolMessage(
                contents=(
                    ToolResultContent(
                        id="c1",
                        content=(
                            TextContent(content=m("result")),
                            ImageContent(images=(Media.from_bytes(picture),)),
                        ),
                    ),
                )
            )
        ),
        MessageEntry(message=ToolMessage(contents=(ToolResultContent(id="c2", content="short"),))),
        ErrorEntry(error=m("error"), data={"detail": m("error data")}),
        TurnEnded(),
        Custom(custom_type="note", data={"x": [m("custom")]}),
    )
    call, text = said[4], said[3]
    beside = (
        Approval(call_id="c2", decision="edit", reason=m("reason"), arguments={"q": m("approved")}),
        Inbox(message=UserMessage(content=m("inbox"))),
        LateResult(message=ToolMessage(contents=(ToolResultContent(id="c1", content=m("late")),))),
    )
    said.extend(root.record(*beside))
    made = {"label", "summary", "invocation", "quarantined", "branch summary"}
    run = Run(dialog=dialog, start=text.seq, stop=call.seq + 1)
    place = Place(dialog=dialog, seq=text.seq)
    root.record(Label(target=place, label=m("label")), beside=True)
    root.record(Quarantine(target=Place(dialog=dialog, seq=call.seq, block=0), reason=m("quarantined")), beside=True)
    root.record(Invocation(model="m", manifest={"version": 1, "saw": {"items": [m("invocation")]}}), beside=True)
    root.record(
        Compaction(
            base=store.last(dialog).seq,
            pieces=(Derived(text=m("summary"), sources=(run,)),),
            policy="p",
        )
    )
    child = root.fork()
    child.put_text("on a branch")
    root.record(BranchSummary(summary=m("branch summary"), dialog=child.dialog_id, sources=(run,)), beside=True)
    file = folder / f"{who}.jsonl"
    file.write_text(m("source"))
    store.put_source(
        SourceRecord(
            identity=m("identity"), session_id=session.session_id, format="f", path=m("path"), raw=keep(store, file)
        )
    )
    file.unlink()
    store.index(searchable)
    return Planted(session.session_id, dialog, marks, tuple(said), frozenset(made & marks.keys()))


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
