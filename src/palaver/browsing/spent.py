"""Spent: what the calls of a dialog used and cost, which of them broke the provider's cache and why, and what compactions saved.

What a dialog cost is computed once, and kept in a file of the user's cache until the dialog grows or something in it is erased.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from palaver.browsing.sessions import day
from palaver.errors import NotFound, NotReproducible, StoreDamaged
from palaver.files import write_whole
from palaver.folders import cache_folder
from palaver.ids import DialogId
from palaver.log import Handle, Invocation, Node, Span, entry_at
from palaver.log.headers import SAID
from palaver.session.calls import ModelCall
from palaver.session.costs import Paid, own_paid, paid_in
from palaver.session.differences import compare
from palaver.store import Capability, Store
from palaver.tokens.catalogue import source as prices
from palaver.tokens.pricing import cost_anew, long_writes, rates

CAUSES: Mapping[str, str] = {
    "model": "another model was asked, which has a cache of its own",
    "compaction": "the conversation was compacted",
    "instructions": "the instructions changed",
    "tools": "the declared tools changed",
    "edit": "something earlier was shown in another form",
    "pause": "the pause was longer than the cache lives",
    "unknown": "nothing that the log records: what the program sent beside it, or the provider",
}
"""What broke a cache, the first that applies, and what it means."""

_KINDS = {"compaction": "compaction", "instructions": "instructions", "toolset": "tools", "context_edit": "edit"}
"""Kinds of entries that change what the next request begins with, and the cause."""

SMALLEST = 1_024
"""Tokens that make a break: no provider caches a shorter prefix (platform.claude.com and platform.openai.com, prompt caching)."""

SHORT_LIFE, LONG_LIFE = 300, 3_600
"""The seconds that a cache lives unused, and that of Anthropic's one hour (the same pages). OpenAI's lives up to ten minutes."""

_VERSION = 1


class Break(NamedTuple):
    """A call that read less from the provider's cache than the call before had left there.

    Attributes:
        seq: The number of the entry that begins the answer.
        at: When.
        model: The model.
        cause: What broke it (`CAUSES`).
        place: The entry or block that did, where the log has it; else empty.
        kept: The tokens that were still read from the cache.
        tokens: The tokens that were read anew.
        dollars: What they cost more than read from the cache.
    """

    seq: int
    at: float
    model: str
    cause: str
    place: str
    kept: int
    tokens: int
    dollars: float


class Saving(NamedTuple):
    """A compaction, as the calls after it show.

    Attributes:
        seq: The number of the entry that begins the answer to the first of them.
        at: When.
        model: The model.
        tokens: By how many tokens that one read less than the call before the compaction.
        calls: The calls from there to the next compaction.
        saved: What those tokens would have cost at each of these calls, read from the cache where the call before used one.
    """

    seq: int
    at: float
    model: str
    tokens: int
    calls: int
    saved: float


Line: TypeAlias = tuple[str, str, Mapping[str, float] | Break | Saving]
"""A part of what a dialog cost, after its day and model: sums, a call that broke the cache, or a compaction."""

FIGURES = ("calls", "read", "cached", "stored", "written", "dollars", "estimated", "summaries")


@dataclass
class Spent:
    """What a dialog's own entries cost.

    Attributes:
        sums: By day and model: `calls`, tokens that were `read`, of these `cached` (read from the cache) and `stored` (written to it), tokens
            `written`, `dollars`, the part of them that is `estimated`, and what the `summaries` of compactions cost.
        breaks: The calls that broke the cache.
        compactions: The compactions.
    """

    sums: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    breaks: list[Break] = field(default_factory=list)
    compactions: list[Saving] = field(default_factory=list)

    def lines(self) -> Iterator[Line]:
        """Yield everything in it with its day and model."""
        yield from ((at, model, sums) for (at, model), sums in self.sums.items())
        yield from ((day(what.at), what.model, what) for what in self.breaks)
        yield from ((day(what.at), what.model, what) for what in self.compactions)


# --- one dialog -----------------------------------------------------------------------------------------------------------------------


class _Event(NamedTuple):
    """A call of a dialog (`paid`), or an entry that may change what the next one begins with or says what was sent."""

    place: Handle
    kind: str
    paid: Paid | None = None


def spent(store: Store, node: Node) -> Spent:
    """Compute what a dialog's own entries cost. Reads them all."""
    total, paid = Spent(), own_paid(store, node)
    for said in paid:
        cost, summed = said.cost(), total.sums.setdefault((day(said.at), said.model), dict.fromkeys(FIGURES, 0.0))
        figures = (
            1,
            cost.prompt_tokens,
            cost.cached_prompt_tokens,
            said.usage.cache_write_tokens,
            cost.completion_tokens,
        )
        summary = cost.cost if said.role == "summary" else 0.0
        for name, figure in zip(FIGURES, (*figures, cost.cost, cost.estimated, summary), strict=True):
            summed[name] += figure
    own = list(_events(store, Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1), paid))
    if any(event.paid for event in own):
        inherited = node.ranges[-1:] and _events(store, node.ranges[-1], paid_in(store, node.ranges[-1]))
        _follow(store, (*inherited, *own), node.dialog_id, total)
    return total


def _events(store: Store, span: Span, paid: Iterable[Paid]) -> list[_Event]:
    marks = store.latest_of_kind(span.dialog, {*_KINDS, "invocation"}, span.start, span.stop)
    events = [_Event(Handle(span.dialog, mark.seq), mark.kind) for mark in marks]
    events += [_Event(Handle(span.dialog, said.seq), "", said) for said in paid if said.role in SAID]
    return sorted(events, key=lambda event: event.place.seq)


def _follow(store: Store, events: Iterable[_Event], dialog_id: DialogId, total: Spent) -> None:
    """Follow the calls in order: each reads from the cache what the one before read from it or wrote to it.

    A call that is older than the one before it in the log, as on a branch that a rewritten file made, did not follow it.
    """
    before: Paid | None = None
    since, sent, life = list[_Event](), list[_Event](), SHORT_LIFE
    for event in events:
        said = event.paid
        if said is None:
            since.append(event)
            continue
        if before is not None and before.at <= said.at and event.place.dialog == dialog_id:
            left = min(before.usage.cache_read_tokens + before.usage.cache_write_tokens, said.usage.input_tokens)
            anew = left - said.usage.cache_read_tokens
            if anew >= SMALLEST:
                cause, place = _cause(store, before, said, since, sent, life)
                dollars = cost_anew(said.usage, said.model, said.at, anew)
                total.breaks.append(
                    Break(said.seq, said.at, said.model, cause, place, said.usage.cache_read_tokens, anew, dollars)
                )
            _save(total, before, said, compacted=any(mark.kind == "compaction" for mark in since))
        if written := said.usage.cache_write_tokens:
            life = LONG_LIFE if long_writes(said.usage) * 2 > written else SHORT_LIFE
        before, sent, since = said, [mark for mark in since if mark.kind == "invocation"] or sent, []


def _cause(
    store: Store, before: Paid, said: Paid, since: list[_Event], sent: list[_Event], life: float
) -> tuple[str, str]:
    """Return what broke the cache between two calls, and the entry or block that did."""
    if before.model != said.model:
        return "model", ""
    marks = {cause: str(mark.place) for mark in since if (cause := _KINDS.get(mark.kind))}
    resent = [mark for mark in since if mark.kind == "invocation"]
    if sent and resent and (compared := _compared(store, sent[-1], resent[-1], marks)) is not None:
        marks = compared
    for cause in CAUSES:
        if cause in marks:
            return cause, marks[cause]
    return ("pause" if said.at - before.at > life else "unknown"), ""


def _compared(store: Store, sent: _Event, resent: _Event, marks: Mapping[str, str]) -> dict[str, str] | None:
    """Return which part of a recorded request the next one does not repeat, and the block; None where a request cannot be reproduced."""
    entries = [entry_at(store, event.place) for event in (sent, resent)]
    first, second = (
        ModelCall(store=store, number=0, handle=event.place, entry=entry)
        for event, entry in zip((sent, resent), entries, strict=True)
        if isinstance(entry, Invocation)
    )
    try:
        difference = compare(first, second)
    except (NotReproducible, StoreDamaged):
        return None
    if difference.broken is None:
        return {}
    if difference.kept == 0:  # the head: tools and instructions
        cause = "tools" if difference.tools else "instructions"
    else:
        cause = "compaction" if "compaction" in marks else "edit"
    blocks = (str(block.place) for block in (*difference.changed, *difference.left) if block.place)
    return {cause: marks.get(cause) or next(blocks, "")}


def _save(total: Spent, before: Paid, said: Paid, *, compacted: bool) -> None:
    """Count what compactions save at a call."""
    if compacted:
        less = max(0, before.usage.input_tokens - said.usage.input_tokens)
        total.compactions.append(Saving(said.seq, said.at, said.model, less, 0, 0.0))
    if total.compactions:
        last = total.compactions[-1]
        saved = 0.0
        if last.tokens:
            with suppress(NotFound):
                rate = rates(said.model, input_tokens=said.usage.input_tokens, at=said.at)
                cached = said.usage.cache_read_tokens + said.usage.cache_write_tokens > 0
                saved = last.tokens * (rate.cache_read if cached else rate.input)
        total.compactions[-1] = last._replace(calls=last.calls + 1, saved=last.saved + saved)


# --- what was computed before ---------------------------------------------------------------------------------------------------------


class Costs:
    """What the dialogs of a store cost: computed once, and again when one grows or something in it is erased.

    It is kept in a file without any words of a session. Where the file cannot be read or written, everything is computed each time.

    Attributes:
        store: The store.
    """

    def __init__(self, store: Store, folder: Path | None = None) -> None:
        """Read what was computed before.

        Args:
            store: The store.
            folder: Where the file is; None for the user's cache.
        """
        self.store, self._known = store, dict[str, Any]()
        self._path: Path | None = None
        self._seen, self._changed = set[str](), False
        if Capability.DURABLE in store.capabilities:
            name = f"costs-{sha256(store.url.encode()).hexdigest()[:16]}.json"
            self._path = (cache_folder() if folder is None else folder) / name
            with suppress(OSError, ValueError, LookupError, TypeError):
                kept = json.loads(self._path.read_bytes())
                self._known = dict(kept["dialogs"]) if kept["made"] == _made() else {}

    def of(self, node: Node) -> Spent:
        """Return what a dialog cost."""
        last = self.store.last(node.dialog_id)
        state = [last.seq, last.total, last.digest.hex()]
        self._seen.add(node.dialog_id)
        with suppress(LookupError, TypeError, ValueError):
            known = self._known[node.dialog_id]
            if known["state"] == state:
                return Spent(
                    {(at, model): dict(zip(FIGURES, figures, strict=True)) for at, model, *figures in known["sums"]},
                    [Break(*fields) for fields in known["breaks"]],
                    [Saving(*fields) for fields in known["compactions"]],
                )
        made = spent(self.store, node)
        sums = [[*key, *figures.values()] for key, figures in made.sums.items()]
        row = {"state": state, "sums": sums, "breaks": made.breaks, "compactions": made.compactions}
        self._known[node.dialog_id], self._changed = row, True
        return made

    def save(self, *, whole: bool = False) -> None:
        """Keep what was computed; with `whole`, only that of dialogs that were asked for since the start."""
        if whole and len(self._seen) < len(self._known):
            self._known, self._changed = {name: row for name, row in self._known.items() if name in self._seen}, True
        if self._path is None or not self._changed:
            return
        with suppress(OSError):  # a cache folder that cannot be written only costs time
            write_whole(self._path, [json.dumps({"made": _made(), "dialogs": self._known}).encode()])
            self._changed = False


def _made() -> list[object]:
    return [_VERSION, prices()]
