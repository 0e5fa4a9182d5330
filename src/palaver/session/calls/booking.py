"""The books of a dialog: when its model was called, what the last call was sent and what its provider said of it, and who else reads its prefix.

All of it is read from the log, each entry once while a process lives; the time of the next call is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from palaver.context import Anchor, Called, Calls, Ledger, Meter
from palaver.context.schedule.calls import Made, Sharing
from palaver.errors import NotReproducible, UnknownHandle, UnknownModel
from palaver.ids import DialogId
from palaver.log import Handle, Header, Invocation, MessageEntry, Node, Span, entry_at
from palaver.messages import Message, Usage
from palaver.session.calls.invocations import ModelCall
from palaver.store.protocol import Store
from palaver.tokens import Rates, counter, rates
from palaver.view import Exchange, View, fold
from palaver.view.lines import material

__all__ = ["Books", "rates_of"]

_NEAR = 64
"""How many dialogs of a session are looked at for living branches, the newest: a session may have thousands."""

_HELD = 50_000
"""Exchanges that a measure remembers before it is begun anew: some of them are in no view any more."""

_ANSWERED = 64
"""How many entries after a call are looked at for its answer."""


@dataclass(slots=True)
class Books:
    """What one dialog's log says for whoever schedules; it goes on from what it has read.

    Threads may ask at once: what is kept is replaced as a whole, and each asks with what it took.

    Attributes:
        store: Where the log lies.
        dialog_id: The dialog.
    """

    store: Store
    dialog_id: DialogId
    _known: tuple[Made, int] | None = None
    _sent: tuple[Handle, View | None] | None = None
    _usage: tuple[Handle, Usage | None] | None = None
    _measured: tuple[str, Ledger] | None = None
    _compacted: tuple[tuple[int, str], tuple[int, bool]] | None = None
    _nodes: list[Node] | None = None
    _asked: int = 0

    def ledger(self, ledger: Ledger, spans: Sequence[Span], model: str, now: float | None) -> Ledger:
        """Fill in what the log says.

        Args:
            ledger: The books so far.
            spans: What the dialog holds.
            model: The model that will be asked.
            now: When, in seconds since 1970-01-01 UTC; None where nobody will be: then no cache is taken for cold.
        """
        made = self._read(spans)
        sent = self._last_sent(made)
        answered = None if made or now is None else answered_at(self.store, spans)
        calls = Calls(made, now, model, sent, answered=answered)
        known = replace(ledger, anchor=self._anchor(made, sent), calls=calls, branches=self._sharing(spans, now))
        return self.measuring(known, model)

    def measuring(self, ledger: Ledger, model: str) -> Ledger:
        """Give books with the measures that are kept: what was measured for an earlier call is not measured again."""
        kept = self.measured(model)
        return replace(ledger, meter=kept.meter, bytes=kept.bytes, pieces=kept.pieces, applied=kept.applied)

    def measured(self, model: str) -> Ledger:
        """Give the books whose measures are kept for a model; begun anew for another one, and where they remember too much."""
        known = self._measured
        if known is None or known[0] != model or known[1].meter.held > _HELD:
            known = self._measured = (model, Ledger(meter=Meter(counter(model))))
        return known[1]

    def since(self, node: Node, last: Header, model: str) -> tuple[int, bool]:
        """Give the size of the view that the newest compaction, or the undoing of one, left, and whether it was an undoing.

        A compaction tells its size. An undoing is measured: who undid it may count otherwise than the model that goes on.

        Args:
            node: The dialog.
            last: Its newest own entry that counts.
            model: The model that counts.

        Returns:
            The size in tokens, 0 where there was none.
        """
        asked = (last.view_base, model)  # what is inherited never changes
        if self._compacted is None or self._compacted[0] != asked:
            self._compacted = (asked, self._since(node, last, model))
        return self._compacted[1]

    def _since(self, node: Node, last: Header, model: str) -> tuple[int, bool]:
        found = material(self.store, node, last, whole=False)
        entry, place = found.checkpoint, found.place
        if entry is None or place is None:
            return 0, False
        if entry.undone is None:
            return entry.tokens_after, False
        view = fold(self.store, place.dialog, place.seq)
        return self.measured(model).meter.view(view).total, True

    # --- calls ------------------------------------------------------------------------------------------------------------------

    def _read(self, spans: Sequence[Span]) -> Made:
        """Give the calls, those since the view's checkpoint and the last one before it: those that are known, and what came since."""
        last = self.store.last(self.dialog_id)
        if self._known is not None:
            calls, upto = self._known
            made = calls.then(*_calls_in(self.store, (Span(self.dialog_id, upto + 1, last.seq + 1),)))
        elif last.view_base >= 0:
            before = _newest_before(self.store, self.dialog_id, last.view_base)
            since = _calls_in(self.store, (Span(self.dialog_id, last.view_base, last.seq + 1),))
            made = Made((*before, *since))
        else:
            made = Made(_calls_in(self.store, spans))
        self._known = (made, last.seq)
        return made

    def _last_sent(self, made: Made) -> View | None:
        """Give what the last call was sent, read from the log once by a process that did not make it."""
        if not made:
            return None
        place, sent = made[-1].place, self._sent
        if sent is None or sent[0] != place:
            sent = self._sent = (place, self._view(place))
        return sent[1]

    def _anchor(self, made: Made, sent: View | None) -> Anchor | None:
        """Give what the provider said of the last call."""
        if sent is None:
            return None
        place, known = made[-1].place, self._usage
        if known is None or known[0] != place:
            answer = _answer(self.store, place)
            if answer is None:
                return None  # it may still come
            known = self._usage = (place, answer.usage)
        return None if known[1] is None else Anchor.of(sent, known[1])

    def took(self, place: Handle, view: View) -> None:
        """Take note of what a call is sent."""
        self._sent = (place, view)

    def _view(self, place: Handle) -> View | None:
        """Give what a call was sent, from the log; None where another program recorded it, or it was erased."""
        entry = entry_at(self.store, place)
        if not isinstance(entry, Invocation):
            return None
        try:
            return ModelCall(store=self.store, number=0, handle=place, entry=entry).view()
        except (NotReproducible, UnknownHandle):
            return None

    # --- branches ---------------------------------------------------------------------------------------------------------------

    def _sharing(self, spans: Sequence[Span], now: float | None) -> Sharing:
        """Tell how many living dialogs of the session hold an exchange; nothing is read before somebody asks."""
        living: list[tuple[tuple[Span, ...], float]] | None = None

        def readers(exchange: Exchange, lifetime: float) -> int:
            nonlocal living
            if living is None:
                shares = [(node.dialog_id, _common(node, spans)) for node in self._others()[-_NEAR:]]
                living = [(held, self.store.last(dialog).at) for dialog, held in shares if held]
            first = exchange.first
            return 1 + sum(
                1
                for held, at in living
                if first is not None and (now is None or now - at <= lifetime) and any(first in span for span in held)
            )

        return readers

    def _others(self) -> Sequence[Node]:
        """Give the other dialogs of the session; read anew ever more seldom the more there are, so that a turn costs the same."""
        self._asked += 1
        others = self._nodes
        if others is None or self._asked > len(others) // _NEAR:
            nodes = self.store.nodes(self.store.node(self.dialog_id).session_id)
            others = self._nodes = [node for node in nodes if node.dialog_id != self.dialog_id]
            self._asked = 0
        return others


_ANSWERS = frozenset({"assistant", "tool_call", "tool"})


def answered_at(store: Store, spans: Sequence[Span]) -> float | None:
    """Give the time of the model's newest words, or of a tool's; None where there are none. Since then its provider's cache has been going cold."""
    for span in reversed(spans):
        for header in store.headers(span.dialog, span.start, span.stop, reverse=True):
            if header.kind == "message" and header.role in _ANSWERS:
                return header.at
    return None


def _calls_in(store: Store, spans: Iterable[Span]) -> Iterator[Called]:
    for span in spans:
        for header in reversed(list(store.of_kind(span.dialog, "invocation", span.start, span.stop))):
            yield _called(store, span.dialog, header)


def _newest_before(store: Store, dialog_id: DialogId, seq: int) -> list[Called]:
    return [_called(store, dialog_id, header) for header in islice(store.of_kind(dialog_id, "invocation", 0, seq), 1)]


def _called(store: Store, dialog_id: DialogId, header: Header) -> Called:
    entry = entry_at(store, Handle(dialog_id, header.seq))
    model = entry.model if isinstance(entry, Invocation) else ""
    return Called(Handle(dialog_id, header.seq), entry.at, model)


def _answer(store: Store, place: Handle) -> Message | None:
    """Give the first answer of the model behind a call."""
    for header in store.headers(place.dialog, place.seq + 1, place.seq + 1 + _ANSWERED):
        if header.kind == "invocation":
            return None
        if header.kind == "message" and header.role in {"assistant", "tool_call"}:
            entry = entry_at(store, Handle(place.dialog, header.seq))
            return entry.message if isinstance(entry, MessageEntry) else None
    return None


def _common(node: Node, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Give what another dialog holds of the same entries: of what it inherited, and of its own."""
    own = Span(node.dialog_id, 0, 2**62)
    return tuple(span for span in (*node.ranges, own) if any(_overlap(span, each) for each in spans))


def _overlap(one: Span, other: Span) -> bool:
    return one.dialog == other.dialog and one.start < other.stop and other.start < one.stop


def rates_of(model: str, at: float) -> Rates | None:
    """Give what a token costs at a time; None where nobody lists the model, or its price is not known."""
    try:
        return rates(model, at=at) if model else None
    except UnknownModel:
        return None
