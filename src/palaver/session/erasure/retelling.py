"""Telling anew: what was known of a conversation goes on when one entry of many is erased.

A compaction puts all that is known into one text: the goal, the constraints, what failed. An erasure takes that text whole, for nobody can take words out of
it. What the entries say that stand is then gathered again, by code and from the log alone, behind the erasure and in its transaction: what was erased cannot be
read there any more, so it cannot come back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from palaver.context.ground import GONE
from palaver.context.record.carried import begun, united
from palaver.context.record.constraints import Constraints
from palaver.context.record.facts import Facts, Said
from palaver.context.record.recorder import Recorder
from palaver.context.record.telling import tells, told
from palaver.context.texts import left, notice
from palaver.errors import Erased, InvalidInput, NotFound, StoreDamaged
from palaver.ids import DialogId
from palaver.log import ERASED, BranchSummary, Compaction, Derived, Entry, Handle, MessageEntry, Run, Span
from palaver.messages import Role
from palaver.session.erasure.words import tells_one, words_in
from palaver.store.protocol import Store
from palaver.view import CARRIED, Exchange, Omission, Reason, View, fold
from palaver.view.edits import omission

__all__ = ["Anew", "Retelling", "lost_a_text"]

_ROOM = 1_200
"""Characters that are told at least: the 300 tokens of constraints that have a place whatever the room (`context.placing`)."""

_MOST = 16_000
"""Characters that are told where an earlier erasure left no text to be as long as: the 4,000 tokens of a record."""

_OURS = frozenset({"record", "notice", CARRIED})
_SUMMARIES = frozenset({Role.BRANCH_SUMMARY, Role.COMPACTION_SUMMARY})


class Anew(NamedTuple):
    """What became of texts that were erased.

    Attributes:
        summaries: The entries that lost one, in order.
        entries: Those of them that tell anew what they knew.
    """

    summaries: tuple[Handle, ...]
    entries: Mapping[Handle, Compaction]


class Retelling:
    """Tells anew what compactions knew; for one erasure, when all that it erases is overwritten."""

    def __init__(self, store: Store, quotes: Callable[[str], bool], words: Iterable[str]) -> None:
        """Read nothing yet.

        Args:
            store: The store, without what was erased.
            quotes: Tells whether a text has a line of it.
            words: The words of it (`words_in`).
        """
        self._store = store
        self._quotes = quotes
        self._words = frozenset(words)
        self._telling = frozenset(filter(tells_one, self._words))
        self._judged: dict[str, bool] = {}
        self._seen: View | None = None
        self._taken: tuple[object, tuple[tuple[Span, ...], ...], Recorder] | None = None

    def anew(self, was: Mapping[Handle, Entry], blank: Mapping[Handle, Entry]) -> Anew:
        """Tell anew what the compactions knew whose texts were erased.

        Args:
            was: The entries that lost a text, as they were.
            blank: All that say less now, as they are.
        """
        made: dict[Handle, Compaction] = {}
        for place, before in sorted(was.items()):
            rest = blank[place]
            if isinstance(before, Compaction) and isinstance(rest, Compaction):
                told_anew = self._of(place.dialog, before, rest)
                if told_anew != rest:
                    made[place] = told_anew
        return Anew(tuple(sorted(was)), made)

    def _of(self, dialog: DialogId, was: Compaction, blank: Compaction) -> Compaction:
        """Give a compaction with what its texts knew told anew, as far as entries stand that say it."""
        try:
            pieces = tuple(
                self._piece(dialog, was, one, now) if isinstance(now, Derived) and isinstance(one, Derived) else now
                for one, now in zip(was.pieces, blank.pieces, strict=True)
            )
        except (
            Erased,
            NotFound,
            StoreDamaged,
            InvalidInput,
            ValueError,
        ):  # what cannot be read does not hold up an erasure
            return blank
        return blank.model_copy(update={"pieces": pieces})

    def _piece(self, dialog: DialogId, was: Compaction, one: Derived, blank: Derived) -> Derived:
        known = _known(one) if blank.text == ERASED and blank.facts is None and one.sources else None
        if known is None:
            return blank
        view = self._view(dialog)
        sources = _Sources(one.sources)
        taken = [index for index, exchange in enumerate(view.exchanges) if any(map(sources.meet, exchange.runs))]
        begins = begun(view, taken) or (bool(one.facts) and known.goal is None)
        facts = self._facts(dialog, [view.exchanges[index] for index in taken], begins=begins)
        off = Constraints.of(view).removed
        facts = replace(facts, rules=tuple(rule for rule in facts.rules if rule.text not in off))
        if facts == Facts():
            return blank
        text, label = "", CARRIED
        if one.label != CARRIED:
            label = "notice" if one.label == "notice" else "record"
            gone = _gone(was, one) or _gone_of(one, view, taken)
            text = _text(facts, label, gone, view, _MOST if one.text == ERASED else len(one.text))
        return blank.model_copy(update={"text": text, "label": label, "facts": facts.to_json()})

    def _view(self, dialog: DialogId) -> View:
        """Give all that a dialog holds, nothing left out; what a provider refused is set aside in it."""
        if self._seen is None or self._seen.dialog_id != dialog:
            self._seen = fold(self._store, dialog, whole=True)
        return self._seen

    def _facts(self, dialog: DialogId, exchanges: Sequence[Exchange], *, begins: bool) -> Facts:
        """Give what exchanges say; of what the compaction before had, too, that is gone on with."""
        runs = tuple(exchange.runs for exchange in exchanges)
        key = (dialog, begins)
        recorder, done = Recorder(begun=begins), 0
        if self._taken is not None and self._taken[0] == key and self._taken[1] == runs[: len(self._taken[1])]:
            recorder, done = self._taken[2], len(self._taken[1])
        recorder.take(exchanges[done:])
        self._taken = key, runs, recorder
        return self._unquoting(recorder.known()).bounded()

    def _unquoting(self, facts: Facts) -> Facts:
        """Give facts without those that repeat what was erased, though an entry stands that says so: they can be recalled there.

        What the user wants and what he said must or must not be is kept: where it stands, it holds.
        """

        def said(those: tuple[Said, ...]) -> tuple[Said, ...]:
            return tuple(one for one in those if not self._repeats(one.text))

        user = (*facts.rules, *said(facts.asks), *(() if facts.goal is None else (facts.goal,)))
        others = self._words - words_in(one.text for one in user)

        def retells(one: Said) -> bool:
            return self._repeats(one.text) or not others.isdisjoint(words_in([one.text]))

        return replace(
            facts,
            asks=said(facts.asks),
            files=tuple(one for one in facts.files if not self._repeats(one.path)),
            commands=tuple(one for one in facts.commands if not self._repeats(one.run)),
            troubles=tuple(one for one in facts.troubles if not self._repeats(f"{one.of}\n{one.what}")),
            unanswered=said(facts.unanswered),
            summaries=tuple(one for one in facts.summaries if not retells(one)),
            last=None if facts.last is None or retells(facts.last) else facts.last,
        )

    def _repeats(self, text: str) -> bool:
        judged = self._judged.get(text)
        if judged is None:
            judged = self._judged[text] = self._quotes(text) or not self._telling.isdisjoint(words_in([text]))
        return judged


def _known(piece: Derived) -> Facts | None:
    """Give what a text knew; None where that was nothing, or a model's summary, which no code can make again."""
    if piece.facts is None:
        return Facts() if piece.text == ERASED and piece.label in _OURS else None
    try:
        facts = replace(Facts.from_json(piece.facts), running=None)
    except InvalidInput:
        return None
    return None if facts == Facts() else facts


class _Sources:
    """Entries that a text was made from, to be asked for often: a dialog of thousands of exchanges is gone through for each of its compactions."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._starts: dict[DialogId, list[int]] = {}
        self._stops: dict[DialogId, list[int]] = {}
        for run in united(runs):  # in order, and none has what another has
            self._starts.setdefault(run.dialog, []).append(run.start)
            self._stops.setdefault(run.dialog, []).append(run.stop)

    def meet(self, run: Span | Run) -> bool:
        """Tell whether some of them are in a run."""
        last = bisect_left(self._starts.get(run.dialog, ()), run.stop) - 1
        return last >= 0 and run.start < self._stops[run.dialog][last]


def _gone(was: Compaction, piece: Derived) -> list[Omission]:
    """Give what a compaction left out that a text in it stands for."""
    reasons, sources = {reason.value for reason in GONE}, _Sources(piece.sources)
    return [
        omission(one) for one in was.omitted if one.run is not None and one.reason in reasons and sources.meet(one.run)
    ]


def _gone_of(piece: Derived, view: View, taken: Sequence[int]) -> list[Omission]:
    """Give what a text was made from, where nobody wrote down what was left out."""
    spans = [Span(run.dialog, run.start, run.stop) for run in piece.sources]
    count = sum(view.exchanges[index].messages for index in taken)
    return [Omission(reason=Reason.FOLDED, span=span, messages=0 if n else count) for n, span in enumerate(spans)]


def _text(facts: Facts, label: str, gone: Sequence[Omission], view: View, room: int) -> str:
    """Tell facts in about as many characters as they were told in: all constraints before anything else."""
    head = notice(gone, view.shared) if label == "notice" else left(gone, view.shared)
    only = Facts(rules=facts.rules, more={name: n for name, n in facts.more.items() if name == "rules"})
    shown = [replace(only, goal=facts.goal), only] if label == "notice" else [facts, only]
    texts = [told(each, head, max(room, len(head) + _ROOM), len) for each in shown]
    return next((text for text in texts if all(tells(text, rule) for rule in facts.rules)), texts[0])


def lost_a_text(was: Entry, now: Entry) -> bool:
    """Tell whether an erasure took a summary, or what else stood for entries, out of an entry."""
    if isinstance(was, Compaction):
        return isinstance(now, Compaction) and [one for one in was.pieces if isinstance(one, Derived)] != [
            one for one in now.pieces if isinstance(one, Derived)
        ]
    if isinstance(was, BranchSummary):
        return isinstance(now, BranchSummary) and was.summary != now.summary
    return isinstance(was, MessageEntry) and was.message.role in _SUMMARIES and was != now
