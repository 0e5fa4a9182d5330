"""The doctor: what is wrong with a transcript or a session, and what each provider would refuse."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.context import Meter
from palaver.context.meter import Pieces
from palaver.errors import InvalidInput, NotFound, PalaverError, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle, MessageEntry, Node, Span, clip, decode_entry, entry_at
from palaver.messages import Message, ToolCallContent, ToolResultContent, media_of
from palaver.providers import APIS, profile
from palaver.session.recall import blocks_of
from palaver.session.waiting import UNDECIDED, what_for
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.store.records import payloads_of
from palaver.store.titles import title
from palaver.tokens import counter, model_info
from palaver.transcripts.findings import Diagnosis, Finding
from palaver.transcripts.sources import kept
from palaver.transfer.places import Places
from palaver.view import Block, Reason, View, fold, held
from palaver.wire import Call, How, Request, compile, validate  # noqa: A004 - the word for it

if TYPE_CHECKING:
    from palaver.formats import Loss

OVER_WINDOW = "over_window"
"""The code of a view that is larger than its model's window: valid in form, and a budget is the way out."""

DAMAGED_STORE = "damaged_store"
"""The code of a session that the store cannot read as a whole."""


# --- a file -----------------------------------------------------------------------------------------------------------------------


def examine_file(path: str | Path) -> Iterator[Diagnosis]:
    """Examine a file of another agent, or a bundle, in memory: one diagnosis for each conversation in it.

    Raises:
        MissingFile: There is no such file.
        UnsupportedTranscript: The file is in no known format, or is a damaged bundle.
    """
    from palaver.transcripts.importing import Importer  # noqa: PLC0415 - examining a session reads no files

    store = MemoryStore()
    for imported in Importer(store, keep_source=False).import_path(path):
        diagnosis = examine(store, imported.session_id)
        reported = [_of_loss(loss) for loss in imported.losses]
        bundle = imported.format == "palaver-bundle"  # its handles stay what they are
        seen = diagnosis.findings if bundle else [_in_file(store, finding) for finding in diagnosis.findings]
        listed = tuple(_once(reported, seen))
        yield replace(diagnosis, name=f"{path}: {diagnosis.name}", session_id=None, findings=listed)


def _once(reported: Sequence[Finding], seen: Sequence[Finding]) -> Iterator[Finding]:
    """Return what the reader reported and what is wrong with what it read; of a code that both list, only the longer list.

    They list the same faults with different places: lines of the file, and records.
    """
    of_reader, of_view = (Counter(finding.code for finding in findings) for findings in (reported, seen))
    yield from (finding for finding in reported if of_reader[finding.code] > of_view[finding.code])
    yield from (finding for finding in seen if of_view[finding.code] >= of_reader[finding.code])


def _in_file(store: Store, finding: Finding) -> Finding:
    """Name the record of the file where the finding has a handle, which leads nowhere: nothing was imported."""
    try:
        handle = Handle.parse(finding.place)
    except InvalidInput:
        return replace(finding, place="whole file") if finding.code == OVER_WINDOW else finding
    source = decode_entry(store.body(store.resolve(handle.dialog), handle.seq)).source
    return finding if source is None else replace(finding, place=f"record {source.ordinal + 1}")


_SEVERITY = {"loss": "fault", "warning": "warning", "note": "note"}
_FAULTS = frozenset({"surrogate", "nul", "orphan_result", "duplicate_id", "malformed_arguments"})


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
        NotFound: There is no such session, or it has no such dialog.
    """
    record = store.session(session_id)
    nodes = store.nodes(session_id)
    chosen = [node for node in nodes if dialog_id in {None, node.dialog_id}]
    if not chosen and dialog_id is not None:
        raise NotFound(dialog_id, what="dialog")
    known = {node.dialog_id for node in nodes}
    needed = known if dialog_id is None else {dialog_id, *(span.dialog for node in chosen for span in node.ranges)}
    broken = {name: store.verify(name) for name in needed}
    rootless = [node for node in chosen if node.parent_id is not None and node.parent_id not in known]
    sound = [node for node in chosen if node not in rootless and not _touched(store, node, broken)]
    findings = [_damaged(span) for spans in broken.values() for span in spans]
    findings.extend(
        _fault(node.dialog_id[:12], "dangling_parent", "The dialog it was forked from is not in the session.")
        for node in rootless
    )
    findings.extend(_of_sources(store, session_id))
    valid = dict.fromkeys(APIS, len(sound) == len(chosen))
    for node in sound:
        view = fold(store, node.dialog_id)
        requests = {
            name: request for name in APIS if (request := _next_request(store, session_id, view, name)) is not None
        }
        findings.extend(_of_dialog(store, node, requests))
        findings.extend(_of_window(view, requests))
        valid = {name: fine and name in requests and _passes(requests[name]) for name, fine in valid.items()}
    total = sum(store.last(node.dialog_id).seq + 1 for node in chosen)
    return Diagnosis(
        name=title(store, record),
        session_id=session_id,
        dialogs=len(chosen),
        total=total,
        reachable=total - sum(len(span) for node in chosen for span in broken[node.dialog_id]),
        findings=tuple(dict.fromkeys(findings)),  # forks share entries: a fault shows in every dialog that has it
        valid=valid,
    )


def unreadable(store: Store, session_id: SessionId, error: StoreDamaged) -> Diagnosis:
    """Return the diagnosis of a session that the store cannot read as a whole: its file is damaged, not an entry."""
    fault = _fault(session_id[:12], DAMAGED_STORE, error.why or error.message)
    name = title(store, store.session(session_id))
    valid = dict.fromkeys(APIS, False)
    return Diagnosis(name=name, session_id=session_id, dialogs=0, total=0, reachable=0, findings=(fault,), valid=valid)


def _fault(place: str, code: str, what: str) -> Finding:
    return Finding(place=place, code=code, what=what, severity="fault")


def _damaged(span: Span) -> Finding:
    return _fault(str(Handle(span.dialog, span.start)), "damaged_entry", "The store does not return what was written.")


def _touched(store: Store, node: Node, broken: Mapping[DialogId, Sequence[Span]]) -> bool:
    """Return whether a dialog or one of its ancestors has a damaged entry: then it cannot be read."""
    return any(any(clip([span], broken[span.dialog])) for span in held(store, node.dialog_id, None))


def _of_sources(store: Store, session_id: SessionId) -> Iterator[Finding]:
    """Find kept files, and maps of imports, that cannot be read back."""
    for source in store.sources(session_id):
        try:
            if source.index is not None:
                Places.decode(store.blob(session_id, source.index))
            if source.raw is not None:
                deque(kept(store, session_id, source.raw), maxlen=0)
        except (StoreDamaged, NotFound) as error:
            yield _fault(source.identity, "damaged_source", f"The kept file cannot be read back: {error}")


def _of_dialog(store: Store, node: Node, requests: Mapping[str, Request]) -> Iterator[Finding]:
    view = fold(store, node.dialog_id, whole=True)
    view.load()
    findings = [*_of_entries(store, node), *_of_view(store, view)]
    yield from findings
    known = {finding.place for finding in findings if finding.severity == "fault"}
    yield from (finding for finding in _of_wire(requests) if finding.place not in known)


# --- entries ------------------------------------------------------------------------------------------------------------------

_SUSPICIOUS = re.compile(rb'"changes"|"error"|"digest"')


def _of_entries(store: Store, node: Node) -> Iterator[Finding]:
    """Find what single messages have: text that was replaced, unreadable arguments, missing payloads."""
    for seq, body in store.bodies(node.dialog_id):
        if _SUSPICIOUS.search(body):  # most entries have nothing that could be wrong, and need not be decoded
            entry = decode_entry(body)
            if isinstance(entry, MessageEntry):
                yield from _of_message(store, node, seq, entry.message)


def _of_message(store: Store, node: Node, seq: int, message: Message) -> Iterator[Finding]:
    place = f"{node.dialog_id[:12]}:{seq}"
    for kind in dict.fromkeys(change.kind for change in message.normalized):
        what = f"Its text had what cannot be sent ({kind}); it was replaced, and the original can be restored."
        yield _fault(place, kind, what)
    for index, block in enumerate(message.contents):
        if isinstance(block, ToolCallContent) and block.error:
            what = f"The arguments of a call cannot be read: {block.error}"
            yield _fault(f"{place}:{index}", "malformed_arguments", what)
        for media in media_of(message.model_copy(update={"contents": (block,)})):
            if media.url is None and (why := _payload_fault(store, node.session_id, media.digest)):
                yield _fault(f"{place}:{index}", "missing_blob", f"Its {media.media_type} payload {why}.")


def _payload_fault(store: Store, session_id: SessionId, digest: str) -> str:
    try:
        return "" if sha256(store.blob(session_id, BlobId(digest))).hexdigest() == digest else "is not what was written"
    except NotFound:
        return "is not in the store"


# --- views --------------------------------------------------------------------------------------------------------------------

_REFUSED = "a request that repeats it as recorded is refused."
_OF_REASON = {
    Reason.DUPLICATE_RESULT: ("duplicate_result", "A call has a second result; the first one counts.", "fault"),
    Reason.EMPTY: ("empty_message", "It says nothing; providers refuse it.", "warning"),
    Reason.FAILED_RESPONSE: ("failed_response", "A failed response with nothing to reply to.", "warning"),
}


def _of_view(store: Store, view: View) -> Iterator[Finding]:
    """Find what is not in its place, and what the view leaves out because every provider refuses it."""
    made: set[str] = set()
    apart = {_call_of(store, gone.handle) for gone in view.omissions if gone.reason is Reason.PARTED}
    for exchange in view.exchanges:
        for block in exchange.blocks():
            if (finding := _of_block(store, view, block, made, apart)) is not None:
                yield _at(block.origin or exchange.first or "", finding)
    yield from _misplaced(store, view)
    for omission in view.omissions:
        for handle in omission.handles() if omission.reason in _OF_REASON else ():
            yield _at(handle, _OF_REASON[omission.reason])


def _at(place: Handle | str, found: tuple[str, str, str]) -> Finding:
    return Finding(place=str(place), code=found[0], what=found[1], severity=found[2])


def _call_of(store: Store, place: Handle | None) -> str:
    """Return the id of the call that a block makes or answers; empty where it does neither."""
    if place is None or place.block is None:
        return ""
    blocks = blocks_of(entry_at(store, place))
    return str(getattr(blocks[place.block], "id", "")) if place.block < len(blocks) else ""


def _of_block(
    store: Store, view: View, block: Block, made: set[str], apart: Collection[str]
) -> tuple[str, str, str] | None:
    """Return code, words and severity of what is wrong with a block's place in its exchange.

    Args:
        store: The store.
        view: The view.
        block: The block.
        made: The ids of the calls before it; its own is added.
        apart: The ids of the calls of which the dialog shares only the call or only its result.
    """
    if isinstance(block.content, ToolCallContent):
        name = block.content.id
        if name in made:
            return "duplicate_id", f"An earlier call has its id, {name[:60]!r}, too.", "fault"
        made.add(name)
        return None
    if block.reason is Reason.UNPAIRED or block.derived == "interrupted":
        return _unpaired(store, block, apart)
    if block.derived == "waiting" and isinstance(block.content, ToolResultContent):
        why = what_for(store, view.dialog_id, block.content.id)
        return "undecided_call" if why == UNDECIDED else "open_call", why, "note"
    return None


def _unpaired(store: Store, block: Block, apart: Collection[str]) -> tuple[str, str, str]:
    """Return code, words and severity of a result without its call, or of the derived result of a call without one."""
    if isinstance(block.content, ToolResultContent):
        if block.content.id in apart:
            return "parted_call", "The result of a call is on another branch.", "note"
        return "unanswered_call", f"A tool call has no result; {_REFUSED}", "fault"
    if _call_of(store, block.origin) in apart:
        return "parted_call", "The call of this result is on another branch.", "note"
    return "orphan_result", f"A tool result has no call before it; {_REFUSED}", "fault"


def _misplaced(store: Store, view: View) -> Iterator[Finding]:
    """Find results that do not come right after their call in the log; the view moves them there."""
    order = {span: index for index, span in enumerate(held(store, view.dialog_id, view.at))}

    def place(handle: Handle) -> tuple[int, int]:
        return next(index for span, index in order.items() if handle in span), handle.seq

    said = [exchange for exchange in view.exchanges if not exchange.derived]
    for exchange, following in pairwise(said):
        if len(exchange.runs) == 1 or following.first is None:
            continue  # nothing comes between its entries
        for block in exchange.blocks():
            result = block.origin if isinstance(block.content, ToolResultContent) else None
            if result is not None and place(following.first) < place(result):
                what = f"Something else comes between a call and this result of it; {_REFUSED}"
                yield _fault(str(result), "misplaced_result", what)


_MEDIA = frozenset({"image", "audio"})


def _of_wire(requests: Mapping[str, Request]) -> Iterator[Finding]:
    """Find what one provider or another does not receive as it was recorded."""
    places: dict[tuple[str, str, str, How], list[str]] = {}
    for name, request in requests.items():
        for change in request.report:
            if change.handle is not None:
                places.setdefault((str(change.handle), change.what, change.why, change.how), []).append(name)
    for (place, what, why, how), names in places.items():
        gone = how in {How.DROPPED, How.REPLACED}
        spoilt = what in _MEDIA and len(names) == len(APIS)
        severity = "fault" if spoilt else "warning" if gone and what != "thinking" else "note"
        code = f"{'refused' if gone else how.value}_{what.replace(' ', '_')}"
        yield Finding(place=place, code=code, what=f"{what}: {why}", severity=severity, providers=tuple(names))


def _of_window(view: View, requests: Mapping[str, Request]) -> Iterator[Finding]:
    """Find a view that is larger than its model's window, if that is known."""
    info = model_info(view.model) if view.model else None
    if info is None or not info.known:
        return
    sizes = [len(request.data) for request in requests.values()]
    # a token of text has at least one byte: a random base64 text has 1.5 for each
    if sizes and max(sizes) <= info.max_input and not Pieces().view(view).total:
        return
    size = Meter(counter(info)).view(view).total
    if size > info.max_input:
        what = f"Its view has about {size:,} tokens, and {view.model} takes {info.max_input:,} in one request."
        yield _fault(view.dialog_id[:12], OVER_WINDOW, what)


def _next_request(store: Store, session_id: SessionId, view: View, name: str) -> Request | None:
    """Return the next request for a provider; None where there can be none."""
    standard = profile(name).model
    model = view.model if standard.partition("-")[0] in view.model else standard
    call = Call(model=model, then="Go on.")
    try:
        return compile(view, profile(name), call, payloads_of(store, session_id))
    except PalaverError:
        return None


def _passes(request: Request) -> bool:
    return not validate(request.fields, request.profile, as_history=request.history)
