"""Composition: what fills the window at each call, estimated from headers; and where the calls, compactions and errors of a dialog are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from palaver.browsing.calls import ModelCallRow
from palaver.log import Handle, Header, MessageEntry, decode_entry, every_header
from palaver.messages import ToolResultContent
from palaver.session import Dialog
from palaver.session.waiting import undelivered
from palaver.tokens.families import BYTES_PER_TOKEN
from palaver.view import View, fold, held

PARTS = ("system", "tools", "summary", "record", "human", "assistant", "results", "unrecorded")
"""What fills a window; `unrecorded` is what the provider counted and the log lacks, such as instructions and tools of imported sessions."""

_CHANGES = frozenset({"compaction", "context_edit"})
"""Kinds of entries that change what is shown of earlier ones."""

_ERROR = b'"is_error":true'
"""A part of the canonical bytes of every error; in a text with the same words the quotes are escaped."""


class WindowRow(TypedDict):
    """The window of a call, in tokens by part, and what the call used.

    `compacted` says whether something was compacted since the call before, `failed` whether an error ended the call.

    The shares are estimated from recorded bytes; their sum is what the provider reported, or where it reported nothing an estimate.
    """

    call: int
    at: float | None
    tokens: dict[str, int]
    read: int
    cached: int
    written: int
    dollars: float | None
    estimated: bool
    compacted: bool
    failed: bool


class MarksRow(TypedDict):
    """Where to jump to in the entries of a dialog.

    Attributes:
        prompts: The human's prompts.
        errors: Errors of tools, and responses that failed.
        compactions: Compactions.
        branches: Where branches leave.
        waiting: Messages that are not part of the conversation yet.
    """

    prompts: list[int]
    errors: list[int]
    compactions: list[int]
    branches: list[int]
    waiting: list[int]


def headers_of(dialog: Dialog) -> Iterator[tuple[Handle, Header]]:
    """Yield all headers of a dialog, its ancestors' first."""
    for span in held(dialog.store, dialog.dialog_id, None):
        for header in every_header(dialog.store, span):
            yield Handle(span.dialog, header.seq), header


def windows(dialog: Dialog, rows: Sequence[ModelCallRow]) -> Iterator[WindowRow]:
    """Yield the window of each call of `rows` (`calls`). Reads headers, and folds the view anew after each compaction."""
    starts = {row["entry"]: row for row in rows}
    sizes: Counter[str] = Counter()
    stated, compacted = 0, False
    for place, header in headers_of(dialog):
        if row := starts.get(str(place)):
            yield _window(row, sizes, compacted=compacted)
            compacted = False
        if header.kind in _CHANGES:
            compacted = compacted or header.kind == "compaction"
            sizes = Counter(tools=sizes["tools"]) + _sizes(fold(dialog.store, place.dialog, place.seq))
        elif header.kind == "instructions":
            sizes["system"] += header.size - stated
            stated = header.size  # new instructions replace the earlier ones
        elif header.kind == "toolset":
            sizes["tools"] = header.size
        elif header.kind == "message" and header.blocks not in {"", "!"}:  # a failed response fills no window
            sizes[_part(header.role, header.speaker)] += header.size


def _part(role: str, speaker: str) -> str:
    if speaker == "summary":
        return "summary"
    return {"assistant": "assistant", "tool_call": "assistant", "tool": "results", "system": "system"}.get(
        role, "human"
    )


def _sizes(view: View) -> Counter[str]:
    sizes: Counter[str] = Counter()
    stated = {block.origin._replace(block=None) for block in view.system if block.origin is not None}
    if view.reader is not None:
        sizes["system"] = sum(view.reader.header(place.dialog, place.seq).size for place in stated)
    for exchange in view.exchanges:
        if exchange.derived:  # no entry has these words, so that no header has their size
            sizes["record" if exchange.derived == "record" else "summary"] += sum(
                len(str(getattr(block.content, "content", "")).encode(errors="replace")) for block in exchange.blocks()
            )
            continue
        results = sum(result.size for result in exchange.results)
        sizes["results"] += results
        sizes[_part(exchange.role.value, exchange.speaker.value)] += exchange.size - results
    return sizes


def _window(row: ModelCallRow, sizes: Mapping[str, int], *, compacted: bool) -> WindowRow:
    tokens = {part: round(sizes.get(part, 0) / BYTES_PER_TOKEN) for part in PARTS}
    total, read = sum(tokens.values()), row["read"]  # bytes only give proportions; the provider counted
    if total < read:
        tokens["unrecorded"] = read - total
    elif read:
        tokens = {part: round(size * read / total) for part, size in tokens.items()}
    return {
        "call": row["call"],
        "at": row["at"],
        "tokens": tokens,
        "read": row["read"],
        "cached": row["cached"],
        "written": row["written"],
        "dollars": row["dollars"],
        "estimated": row["estimated"],
        "compacted": compacted,
        "failed": bool(row.get("failed")),
    }


def marks(dialog: Dialog) -> MarksRow:
    """Return where to jump to. Reads headers, and looks for errors in the bodies of tool results."""
    places: MarksRow = {"prompts": [], "errors": [], "compactions": [], "branches": [], "waiting": []}
    forks = _forks(dialog)
    waiting = {Handle(dialog.dialog_id, seq) for seq, _ in undelivered(dialog.store, dialog.dialog_id)}
    index = 0
    for span in held(dialog.store, dialog.dialog_id, None):
        for header, (_, body) in zip(
            every_header(dialog.store, span), dialog.store.bodies(span.dialog, span.start, span.stop), strict=False
        ):
            if header.kind == "message" and header.role == "user" and header.speaker in {"", "human"} and header.blocks:
                places["prompts"].append(index)
            # the bytes rule out nearly every result before it is decoded
            failed = header.blocks == "!" or ("r" in header.blocks and _ERROR in body and _failed(body))
            if header.kind == "message" and failed:
                places["errors"].append(index)
            if header.kind == "compaction":
                places["compactions"].append(index)
            if Handle(span.dialog, header.seq) in forks:
                places["branches"].append(index)
            if Handle(span.dialog, header.seq) in waiting:
                places["waiting"].append(index)
            index += 1
    return places


def _forks(dialog: Dialog) -> frozenset[Handle]:
    """Return the entries after which dialogs of the session go their own way: branches of this one, and this one itself."""
    nodes = dialog.store.nodes(dialog.session_id)
    return frozenset(
        Handle(span.dialog, span.stop - 1) for node in nodes if node.relation != "subagent" for span in node.ranges[-1:]
    )


def _failed(body: bytes) -> bool:
    entry = decode_entry(body)
    return isinstance(entry, MessageEntry) and any(
        isinstance(block, ToolResultContent) and block.is_error for block in entry.message.contents
    )
