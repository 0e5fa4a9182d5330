"""The doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter, deque
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from palaver.context import Meter
from palaver.errors import InvalidHandle, MissingBlob, PalaverError, StoreDamaged, UnknownDialog
from palaver.formats import matches, open_source
from palaver.formats.events import Loss
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle, MessageEntry, Node, decode_entry
from palaver.messages import Media, Message, ThinkingContent, ToolCallContent, ToolResultContent, media_of
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.tokens import counter, model_info
from palaver.transcripts import poison
from palaver.transcripts.bundle_files import import_bundle_file, is_bundle
from palaver.transcripts.findings import Diagnosis, Finding
from palaver.transcripts.importing import Importer
from palaver.transcripts.places import Places
from palaver.transcripts.sources import kept
from palaver.view import Block, Reason, View, fold, held
from palaver.wire import PROFILES, Call, How, compile, validate  # noqa: A004 - the word for it

OVER_WINDOW = "over_window"
"""The code of a view that is larger than what its model takes: valid in form all the same, and a budget is the way out."""

DAMAGED_STORE = "damaged_store"
"""The code of a session that the store cannot read as a whole."""


# --- a file -----------------------------------------------------------------------------------------------------------------------


def examine_file(path: str | Path) -> Iterator[Diagnosis]:
    """Examine a file of another agent, or a bundle, without importing it: one diagnosis for each conversation in it.

    Raises:
        UnsupportedTranscript: The file is in no known format.
        InvalidBundle: It is a bundle, and damaged.
    """
    store = MemoryStore()
    if is_bundle(path):
        found = examine(store, import_bundle_file(store, path).session_id)
        yield replace(found, name=f"{path}: {found.name}", session_id=None)
        return
    for imported in Importer(store, keep_source=False).import_path(path):
        found = examine(store, imported.session_id)
        reported = [_of_loss(loss) for loss in imported.losses]
        seen = [_in_file(store, finding) for finding in found.findings]
        listed = tuple(map(poison.told, _once(reported, seen)))
        yield replace(found, name=f"{path}: {imported.name}", session_id=None, findings=listed)


def _once(reported: Sequence[Finding], seen: Sequence[Finding]) -> Iterator[Finding]:
    """Give what the reader reported and what is wrong with what it read; where both name a kind of fault, only the fuller of the two lists.

    They name the same faults in their own words and count places in their own way, the one lines and the other records.
    """
    of_reader, of_view = (Counter(one.code for one in found) for found in (reported, seen))
    yield from (one for one in reported if of_reader[one.code] > of_view[one.code])
    yield from (one for one in seen if of_view[one.code] >= of_reader[one.code])


def unreadable(store: Store, session_id: SessionId, error: StoreDamaged) -> Diagnosis:
    """Give the diagnosis of a session that the store itself cannot read as a whole any more: its file is damaged, not an entry."""
    found = Finding(place=session_id[:12], code=DAMAGED_STORE, what=error.why or error.message, severity="fault")
    return Diagnosis(
        name=store.session(session_id).name or session_id,
        session_id=session_id,
        dialogs=0,
        total=0,
        reachable=0,
        findings=(found,),
        valid=dict.fromkeys(PROFILES, False),
    )


def _in_file(store: Store, finding: Finding) -> Finding:
    """Name the record of the file where the finding has a handle, which would lead nowhere: nothing was imported."""
    try:
        handle = Handle.parse(finding.place)
    except InvalidHandle:
        return replace(finding, place="whole file") if finding.code == OVER_WINDOW else finding
    source = decode_entry(store.body(store.resolve(handle.dialog), handle.seq)).source
    return finding if source is None else replace(finding, place=f"record {source.ordinal + 1}")


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


def examine(store: Store, session_id: SessionId, dialog_id: DialogId | None = None) -> Diagnosis:
    """Examine a session: its entries, its tree, its media and kept sources, its views, and what each provider would refuse.

    Args:
        store: Where it is.
        session_id: The session.
        dialog_id: The one dialog to examine; None for all.

    Raises:
        UnknownSession: No such session.
        UnknownDialog: The session has no such dialog.
    """
    record = store.session(session_id)
    nodes = store.nodes(session_id)
    chosen = [node for node in nodes if dialog_id in {None, node.dialog_id}]
    if not chosen and dialog_id is not None:
        raise UnknownDialog(dialog_id)
    known = {node.dialog_id for node in nodes}
    needed = known if dialog_id is None else {dialog_id, *(span.dialog for node in chosen for span in node.ranges)}
    broken = {name: store.verify(name) for name in needed}
    findings = [_broken(name, seq) for name, seqs in broken.items() for seq in seqs]
    findings.extend(_missing_parent(node) for node in chosen if not _rooted(node, known))
    findings.extend(_of_sources(store, session_id))
    sound = [node for node in chosen if _rooted(node, known) and not _touched(store, node, broken)]
    for node in sound:
        findings.extend(_of_dialog(store, node))
    total = sum(store.last(node.dialog_id).seq + 1 for node in chosen)
    return Diagnosis(
        name=record.name or session_id,
        session_id=session_id,
        dialogs=len(chosen),
        total=total,
        reachable=total - sum(len(broken[node.dialog_id]) for node in chosen),
        findings=tuple(
            map(poison.told, dict.fromkeys(findings))
        ),  # forks share entries: what is wrong with one shows in every dialog that holds it
        valid={
            name: len(sound) == len(chosen) and all(_valid(store, node.dialog_id, name) for node in sound)
            for name in PROFILES
        },
    )


def _rooted(node: Node, known: Container[DialogId]) -> bool:
    return node.parent_id is None or node.parent_id in known


def _touched(store: Store, node: Node, broken: Mapping[DialogId, Collection[int]]) -> bool:
    """Tell whether a dialog holds, of its own or of its ancestors', an entry that is broken: then it cannot be read."""
    return any(
        span.start <= seq < span.stop for span in held(store, node.dialog_id, None) for seq in broken[span.dialog]
    )


def _broken(dialog_id: DialogId, seq: int) -> Finding:
    return Finding(
        place=f"{dialog_id[:12]}:{seq}",
        code="damaged_entry",
        what="What the store gives back is not what was written.",
        severity="fault",
    )


def _of_sources(store: Store, session_id: SessionId) -> Iterator[Finding]:
    """Find kept files, and maps of imports, that cannot be read back."""
    for source in store.sources(session_id):
        try:
            if source.index is not None:
                Places.decode(store.blob(source.index))
            if source.raw is not None:
                deque(kept(store, source.raw), maxlen=0)
        except (StoreDamaged, MissingBlob) as error:
            what = f"What was kept of the import cannot be read back: {error}"
            yield Finding(place=source.identity, code="damaged_source", what=what, severity="fault")


def _missing_parent(node: Node) -> Finding:
    return Finding(
        place=node.dialog_id[:12],
        code="dangling_parent",
        what="The dialog it was forked from is not in the session.",
        severity="fault",
    )


def _of_dialog(store: Store, node: Node) -> Iterator[Finding]:
    yield from _of_entries(store, node)
    view = fold(store, node.dialog_id, whole=True)
    yield from _of_view(store, view)
    yield from _of_wire(store, view)
    yield from _of_window(fold(store, node.dialog_id))


_SUSPICIOUS = re.compile(
    rb'"changes"|"error"|"digest"|"content":"(?:\s|\\[nrt])*"|"type":"tool_call"|"signature"|"type":"thinking"'
)


def _of_entries(store: Store, node: Node) -> Iterator[Finding]:
    """Find what single messages have: text that had to be changed, arguments that cannot be read, payloads that are gone."""
    for seq, body in store.bodies(node.dialog_id):
        if _SUSPICIOUS.search(body) is None:
            continue  # most entries have nothing that could be wrong, and need not be decoded
        entry = decode_entry(body)
        if isinstance(entry, MessageEntry):
            yield from _of_message(store, f"{node.dialog_id[:12]}:{seq}", entry.message)


def _of_message(store: Store, place: str, message: Message) -> Iterator[Finding]:
    for kind in dict.fromkeys(change.kind for change in message.normalized):
        yield Finding(
            place=place,
            code=kind,
            what=f"Its text held what cannot be sent ({kind}); it was replaced, and the original can be restored.",
            severity="fault",
        )
    for index, block in enumerate(message.contents):
        yield from poison.of_content(f"{place}:{index}", block)
        for media in media_of(message.model_copy(update={"contents": (block,)})):
            yield from _of_media(store, f"{place}:{index}", media)


def _of_media(store: Store, place: str, media: Media) -> Iterator[Finding]:
    """Find a payload that is gone or changed, or that a provider does not take."""
    if media.url is not None:
        return
    if why := _payload_fault(store, BlobId(media.digest)):
        what = f"Its {media.media_type} payload {why}."
        yield Finding(place=place, code="missing_blob", what=what, severity="fault")
    elif media.media_type.startswith("image/"):
        data = b64encode(store.blob(BlobId(media.digest))).decode("ascii")
        if poison.suspicious_image(media.media_type, data):
            yield from poison.of_image(place, media.media_type, data)


def _payload_fault(store: Store, blob_id: BlobId) -> str:
    try:
        return "" if sha256(store.blob(blob_id)).hexdigest() == blob_id else "is not what was written"
    except MissingBlob:
        return "is not in the store"


_REFUSED = "a request that repeats it as recorded is refused."
_ORPHAN = ("orphan_result", f"A tool result has no call before it; {_REFUSED}", "fault")
_OF_DERIVED = {
    "interrupted": ("unanswered_call", f"A tool call has no result; {_REFUSED}", "fault"),
    "pending": ("open_call", "A tool call waits for its result.", "note"),
}
_THOUGHT = ("empty_thinking", "A thought that only its provider could read, and that was not kept.", "note")
_OF_REASON = {
    Reason.DUPLICATE_RESULT: ("duplicate_result", "A call has a second result; the first one counts.", "fault"),
    Reason.EMPTY: ("empty_message", "It says nothing; providers refuse it.", "fault"),
    Reason.FAILED_RESPONSE: ("failed_response", "A failed response that holds nothing to reply to.", "warning"),
}


def _of_view(store: Store, view: View) -> Iterator[Finding]:
    made: set[str] = set()
    for exchange in view.exchanges:
        for block in exchange.blocks():
            place = str(block.origin or exchange.first or "")
            found = _of_block(block)
            if isinstance(block.content, ToolCallContent):
                if block.content.id in made:
                    found = ("duplicate_id", f"An earlier call has its id, {block.content.id[:60]!r}, too.", "fault")
                made.add(block.content.id)
            if found is not None:
                yield Finding(place=place, code=found[0], what=found[1], severity=found[2])
    yield from _misplaced(store, view)
    for omission in view.omissions:
        if omission.reason in _OF_REASON:
            handle = next(omission.handles())
            thought = omission.reason is Reason.EMPTY and _only_thought(store, handle)
            code, what, severity = _THOUGHT if thought else _OF_REASON[omission.reason]
            yield Finding(place=str(handle), code=code, what=what, severity=severity)


def _misplaced(store: Store, view: View) -> Iterator[Finding]:
    """Find results that do not stand right after their call in the log; the view puts them there."""
    order = {span: index for index, span in enumerate(held(store, view.dialog_id, view.at))}

    def place(handle: Handle) -> tuple[int, int]:
        return next(index for span, index in order.items() if handle in span), handle.seq

    said = [exchange for exchange in view.exchanges if not exchange.derived]
    for exchange, following in pairwise(said):
        if len(exchange.runs) == 1 or following.first is None:
            continue  # nothing stands between its entries
        for block in exchange.blocks():
            if not isinstance(block.content, ToolResultContent) or block.origin is None:
                continue
            if place(following.first) < place(block.origin):
                what = f"Something else was said between a call and this result of it; {_REFUSED}"
                yield Finding(place=str(block.origin), code="misplaced_result", what=what, severity="fault")


def _of_block(block: Block) -> tuple[str, str, str] | None:
    """Give code, words and severity of what is wrong with a block's place in its exchange."""
    if block.reason is Reason.UNPAIRED:
        return _ORPHAN
    return _OF_DERIVED.get(block.derived)


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


def _of_window(view: View) -> Iterator[Finding]:
    """Find a view that is larger than what its model takes in one request, where that is known."""
    info = model_info(view.model) if view.model else None
    if info is None or not info.known:
        return
    size = Meter(counter(info)).view(view).total
    if size > info.max_input:
        what = (
            f"Its view has about {size:,} tokens, and {view.model} takes {info.max_input:,} in one request: "
            "give a budget, or commit what a policy makes of it."
        )
        yield Finding(place=view.dialog_id[:12], code=OVER_WINDOW, what=what, severity="fault")


def _model(view: View, profile_name: str) -> str:
    family = {"openai-chat": "gpt", "openai-responses": "gpt", "anthropic": "claude", "gemini": "gemini"}[profile_name]
    return view.model if family in view.model else PROFILES[profile_name].model


def _valid(store: Store, dialog_id: DialogId, name: str) -> bool:
    view = fold(store, dialog_id)
    call = Call(model=_model(view, name), then="Go on.")
    try:
        request = compile(view, PROFILES[name], call, lambda digest: store.blob(BlobId(digest)))
    except PalaverError:
        return False
    return not validate(request.body, PROFILES[name], as_history=request.history)
