"""The doctor: what is wrong with a transcript or a session, what each provider would refuse, and a branch without the faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from palaver.errors import PalaverError
from palaver.formats import matches, open_source
from palaver.formats.events import Loss
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, now
from palaver.log import Handle, MessageEntry, Node, decode_entry, draft
from palaver.messages import (
    AssistantMessage,
    Message,
    Role,
    Speaker,
    SystemMessage,
    ThinkingContent,
    ToolMessage,
    UserMessage,
    media_of,
)
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.transcripts.importing import Importer
from palaver.view import Block, Exchange, Reason, Turn, View, fold
from palaver.wire import PROFILES, Call, How, compile, validate  # noqa: A004 - the word for it

_MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
"""The model that stands for a provider where the session names none of it: what a request may hold does not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the doctor found.

    Attributes:
        place: Where: a line of the file, or a handle.
        code: One word for counting.
        what: What is wrong, in one sentence.
        severity: `fault` (a provider refuses a request built from the record as it stands, or content is damaged), `warning` (something is
            missing or was repaired), `note` (worth knowing).
        providers: The profiles that would refuse it, or get it otherwise than it was recorded; empty when that does not depend on the provider.
    """

    place: str
    code: str
    what: str
    severity: str
    providers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor says of one session.

    Attributes:
        name: What was examined.
        session_id: The session, or None for a file that was examined without importing it.
        dialogs: How many dialogs it has.
        total: How many entries it holds.
        reachable: How many of them stand in a dialog that the tree reaches and can be read back as they were written.
        findings: What was found, in order.
        valid: For each profile, whether the next request, as palaver compiles it, passes the provider's rules.
    """

    name: str
    session_id: SessionId | None
    dialogs: int
    total: int
    reachable: int
    findings: tuple[Finding, ...]
    valid: dict[str, bool]

    @property
    def unreachable(self) -> int:
        """How many entries cannot be reached or read back."""
        return self.total - self.reachable

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not any(finding.severity == "fault" for finding in self.findings)


# --- a file -----------------------------------------------------------------------------------------------------------------------


def examine_file(path: str | Path) -> Iterator[Diagnosis]:
    """Examine a file of another agent without importing it: one diagnosis for each conversation in it.

    Raises:
        UnsupportedTranscript: The file is in no known format.
    """
    store = MemoryStore()
    for imported in Importer(store, keep_source=False).import_path(path):
        found = examine(store, imported.session_id)
        reported = tuple(_of_loss(loss) for loss in imported.losses)
        yield replace(found, name=f"{path}: {imported.name}", session_id=None, findings=(*reported, *found.findings))


def format_of(path: str | Path) -> tuple[str, ...]:
    """Give the names of the formats that a file is in; an archive may hold several.

    Raises:
        UnsupportedTranscript: It is in no known format.
    """
    with open_source(path) as source:
        return tuple(dict.fromkeys(found.format.name for found in matches(source) if not isinstance(found, Loss)))


_SEVERITY = {"loss": "fault", "warning": "warning", "note": "note"}
_FAULTS = frozenset(
    {"surrogate", "nul", "orphan_result", "duplicate_id", "bad_record", "torn_tail", "malformed_arguments"}
)


def _of_loss(loss: Loss) -> Finding:
    severity = "fault" if loss.code in _FAULTS else _SEVERITY.get(loss.severity, "warning")
    return Finding(place=loss.place, code=loss.code, what=loss.reason, severity=severity)


# --- a session --------------------------------------------------------------------------------------------------------------------


def examine(store: Store, session_id: SessionId) -> Diagnosis:
    """Examine a session: its entries, its tree, its media, its views, and what each provider would refuse.

    Raises:
        UnknownSession: No such session.
    """
    record = store.session(session_id)
    nodes = store.nodes(session_id)
    findings: list[Finding] = []
    total = reachable = 0
    sound: list[Node] = []
    known = {node.dialog_id for node in nodes}
    for node in nodes:
        held = store.last(node.dialog_id).seq + 1
        total += held
        broken = tuple(_broken(store, node))
        findings.extend(broken)
        if node.parent_id is not None and node.parent_id not in known:
            findings.append(_missing_parent(node))
        elif not broken:
            sound.append(node)
        reachable += held - len(broken)
    for node in sound:
        findings.extend(_of_dialog(store, node))
    return Diagnosis(
        name=record.name or session_id,
        session_id=session_id,
        dialogs=len(nodes),
        total=total,
        reachable=reachable,
        findings=tuple(_once(findings)),
        valid={name: all(_valid(store, node.dialog_id, name) for node in sound) for name in PROFILES},
    )


def _broken(store: Store, node: Node) -> Iterator[Finding]:
    for seq in store.verify(node.dialog_id):
        yield Finding(
            place=f"{node.dialog_id[:12]}:{seq}",
            code="damaged_entry",
            what="What the store gives back is not what was written.",
            severity="fault",
        )


def _missing_parent(node: Node) -> Finding:
    return Finding(
        place=node.dialog_id[:12],
        code="dangling_parent",
        what="The dialog it was forked from is not in the session.",
        severity="fault",
    )


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Give each finding once: forks share entries, and what is wrong with one shows in every dialog that holds it."""
    yield from dict.fromkeys(findings)


def _of_dialog(store: Store, node: Node) -> Iterator[Finding]:
    yield from _of_entries(store, node)
    view = fold(store, node.dialog_id, whole=True)
    yield from _of_view(store, view)
    yield from _of_wire(store, view)


def _of_entries(store: Store, node: Node) -> Iterator[Finding]:
    """Find what single messages have: text that had to be changed, arguments that cannot be read, payloads that are gone."""
    for header, (seq, body) in zip(store.headers(node.dialog_id), store.bodies(node.dialog_id), strict=True):
        if header.kind != "message" or not any(mark in body for mark in (b'"changes"', b'"error"', b'"digest"')):
            continue
        entry = decode_entry(body)
        if isinstance(entry, MessageEntry):
            yield from _of_message(store, f"{node.dialog_id[:12]}:{seq}", entry.message)


def _of_message(store: Store, place: str, message: Message) -> Iterator[Finding]:
    for kind in dict.fromkeys(change.kind for block in message.contents for change in block.changes):
        yield Finding(
            place=place,
            code=kind,
            what=f"Its text held what cannot be sent ({kind}); it was replaced, and the original can be restored.",
            severity="fault",
        )
    for block in message.contents:
        error = getattr(block, "error", None)
        if block.type == "tool_call" and error:
            what = f"The arguments of a call cannot be read: {error}"
            yield Finding(place=place, code="malformed_arguments", what=what, severity="fault")
    for media in media_of(message):
        if media.url is None and not store.has_blob(BlobId(media.digest)):
            what = f"Its {media.media_type} payload is not in the store."
            yield Finding(place=place, code="missing_blob", what=what, severity="fault")


_OF_REASON = {
    Reason.DUPLICATE_RESULT: ("duplicate_result", "A call has a second result; the first one counts.", "fault"),
    Reason.EMPTY: ("empty_message", "It says nothing; providers refuse it.", "fault"),
    Reason.FAILED_RESPONSE: ("failed_response", "A failed response that holds nothing to reply to.", "warning"),
}


def _of_view(store: Store, view: View) -> Iterator[Finding]:
    for exchange in view.exchanges:
        for block in exchange.blocks():
            place = str(block.origin or exchange.first or "")
            if block.derived == "interrupted":
                what = "A tool call has no result; a request that repeats it as recorded is refused."
                yield Finding(place=place, code="unanswered_call", what=what, severity="fault")
            elif block.derived == "pending":
                what = "A tool call waits for its result."
                yield Finding(place=place, code="open_call", what=what, severity="note")
            elif block.reason is Reason.UNPAIRED:
                what = "A tool result has no call before it; a request that repeats it as recorded is refused."
                yield Finding(place=place, code="orphan_result", what=what, severity="fault")
    for omission in view.omissions:
        if omission.reason in _OF_REASON:
            code, what, severity = _OF_REASON[omission.reason]
            handle = next(omission.handles())
            if omission.reason is Reason.EMPTY and _only_thought(store, handle):
                code, what, severity = (
                    "empty_thinking",
                    "A thought that only its provider could read, and that was not kept.",
                    "note",
                )
            yield Finding(place=str(handle), code=code, what=what, severity=severity)


def _only_thought(store: Store, handle: Handle) -> bool:
    entry = decode_entry(store.body(handle.dialog, handle.seq))
    contents = entry.message.contents if isinstance(entry, MessageEntry) else ()
    return bool(contents) and all(isinstance(block, ThinkingContent) for block in contents)


_NATIVE = frozenset({"thinking", "failure"})
"""What only the provider that wrote it takes back as it is; that another one does not is no defect of the session."""


def _of_wire(store: Store, view: View) -> Iterator[Finding]:
    """Find what one provider or another does not take as it was recorded."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in PROFILES:
        request = compile(
            view, PROFILES[name], Call(model=_model(view, name)), lambda digest: store.blob(BlobId(digest))
        )
        for change in request.report:
            if change.handle is not None and change.how in {How.DROPPED, How.REPLACED}:
                found.setdefault((str(change.handle), change.what, change.why), []).append(name)
    for (place, what, why), names in found.items():
        code = f"refused_{what.replace(' ', '_')}"
        severity = "note" if what in _NATIVE else "warning"
        yield Finding(place=place, code=code, what=f"{what}: {why}", severity=severity, providers=tuple(names))


def _model(view: View, profile_name: str) -> str:
    family = {"openai-chat": "gpt", "openai-responses": "gpt", "anthropic": "claude", "gemini": "gemini"}[profile_name]
    return view.model if family in view.model else _MODELS[profile_name]


def _valid(store: Store, dialog_id: DialogId, name: str) -> bool:
    view = fold(store, dialog_id)
    call = Call(model=_model(view, name), then="Go on.")
    try:
        request = compile(view, PROFILES[name], call, lambda digest: store.blob(BlobId(digest)))
    except PalaverError:
        return False
    return not validate(request.body, PROFILES[name], as_history=request.history)


# --- a branch without the faults ----------------------------------------------------------------------------------------------------


_CARRIED = frozenset({"instructions", "toolset", "model_change", "message"})
"""Of the entries a view depends on, those that a repaired branch says again; messages among them are instructions."""


def repair(store: Store, dialog_id: DialogId) -> Node:
    """Write a branch that says what the dialog says, without its faults; the dialog itself is left as it is.

    On the branch every call has a result, every result its call, nothing is empty, and each response is one message. A provider takes it as it
    stands, also from a tool that knows nothing of palaver.

    Raises:
        UnknownDialog: No such dialog.
    """
    source = store.node(dialog_id)
    view = fold(store, dialog_id, whole=True)
    node = store.create_dialog(
        Node(
            dialog_id=new_dialog_id(),
            session_id=source.session_id,
            owner=source.owner,
            parent_id=dialog_id,
            split_point=0,
            last_n=0,
            first_k=0,
            created_at=now(),
            relation="repair",
            metadata={"of": dialog_id, "at": view.at},
        )
    )
    entries = [decode_entry(store.body(span.dialog, span.start)) for span in view.state]
    kept = [entry for entry in entries if entry.kind in _CARRIED]
    said = [MessageEntry(message=message) for exchange in view.exchanges for message in _messages(exchange)]
    drafts = [draft(entry)[0] for entry in (*kept, *said)]
    store.append(node.dialog_id, drafts, -1)
    return node


def _messages(exchange: Exchange) -> Iterator[Message]:
    for turn in exchange.turns:
        yield _message(turn)


def _message(turn: Turn) -> Message:
    contents = tuple(block.content for block in turn.blocks)
    speaker = _speaker(turn.blocks)
    if turn.role is Role.ASSISTANT:
        return AssistantMessage(contents=contents, model=turn.model or None, speaker=speaker)
    if turn.role is Role.TOOL:
        return ToolMessage(contents=contents, speaker=speaker)
    if turn.role is Role.SYSTEM:
        return SystemMessage(contents=contents, speaker=speaker)
    return UserMessage(contents=contents, speaker=speaker, name=turn.name or None)


def _speaker(blocks: tuple[Block, ...]) -> Speaker:
    """Give who said it; of several, the one to be trusted least."""
    return min((block.speaker for block in blocks), key=lambda speaker: speaker.trust)
