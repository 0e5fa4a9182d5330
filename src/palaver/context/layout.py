"""The layout: the working state of one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TypeAlias

from palaver.context.meter import LOAD, Measure
from palaver.ids import DialogId
from palaver.log import Span, gaps
from palaver.tokens import Budget
from palaver.view import (
    DECIDED,
    Columns,
    Drop,
    Exchange,
    Insert,
    Omission,
    Plan,
    Reason,
    Remove,
    Rewrite,
    View,
    apply,
    omitted,
    said_by_human,
)

_PAST = 512
"""The newest exchanges left out by earlier compactions that are read for a record; far fewer fit into it."""

STAND_INS = frozenset({"record", "notice"})
"""Labels of the texts that replace what was left out."""

_SUMMARY_SHARE = 4
"""A running summary of at most a quarter of the limit stays in every view; the record quotes a part of a larger one."""

_LEAST_SHARE = 4
"""Where instructions and tools leave little room, a cut still leaves a quarter of that room for the conversation."""


@dataclass(frozen=True, slots=True)
class Form:
    """How one exchange is shown when it is not shown as recorded.

    Attributes:
        size: Its size in this form, in the unit of the layout's meter.
        rewrites: Its blocks that are shown in another form.
        removes: Its blocks that are left out.
    """

    size: int
    rewrites: tuple[Rewrite, ...] = ()
    removes: tuple[Remove, ...] = ()

    @classmethod
    def of(cls, size: int, changes: Iterable[Rewrite | Remove]) -> Form:
        """Return the form with some changes."""
        every = tuple(changes)
        return cls(
            size,
            tuple(change for change in every if isinstance(change, Rewrite)),
            tuple(change for change in every if isinstance(change, Remove)),
        )


class Facts:
    """What every layout of one view shares. Made from headers, except sizes, which read the bodies they measure.

    *Whole* indexes count what an earlier compaction left out, too: `past` exchanges come before the view's own.
    """

    def __init__(self, view: View, meter: Measure) -> None:
        """Look at nothing yet."""
        self.view = view
        self.meter = meter
        self._loaded = len(view.exchanges)
        self._protected: dict[int, frozenset[int]] = {}

    @cached_property
    def fixed(self) -> int:
        """The size of instructions and tools."""
        return self.meter.fixed(self.view).fixed

    def protected(self, limit: int) -> frozenset[int]:
        """The exchanges that stay: those of the view, the newest exchange, and the running summary unless it has more than a quarter of the limit."""
        if limit not in self._protected:
            exchanges = self.view.exchanges
            newest = next((i for i in range(len(exchanges) - 1, -1, -1) if not exchanges[i].derived), None)
            running = (i for i in reversed(self.view.columns.summaries) if exchanges[i].derived == "summary")
            small = [i for i in islice(running, 1) if self.meter.exchange(exchanges[i]) <= limit // _SUMMARY_SHARE]
            self._protected[limit] = self.view.protected().union(small, () if newest is None else (newest,))
        return self._protected[limit]

    @cached_property
    def past(self) -> int:
        """How many exchanges that earlier compactions left out are read: the newest `_PAST`."""
        return len(self._folded)

    @cached_property
    def _folded(self) -> tuple[Exchange, ...]:
        """The newest of what left the view before, read once for each compaction."""
        if not self._left or not self.view.exchanges:
            return ()
        key = ("omitted", tuple(omission.span for omission in self._left))
        made: Callable[[], tuple[Exchange, ...]] = lambda: tuple(islice(omitted(self.view), _PAST))[::-1]  # noqa: E731
        return self.meter.remember(self.view.exchanges[0], key, made)

    @cached_property
    def _left(self) -> Sequence[Omission]:
        return tuple(
            omission for omission in self.view.omissions if omission.span is not None and omission.reason in DECIDED
        )

    @cached_property
    def older(self) -> tuple[Span, ...]:
        """The entries that left the view before what is read, in the order of the log."""
        if len(self._folded) < _PAST or (first := self._folded[0].first) is None:
            return ()
        spans = [omission.span for omission in self._left if omission.span is not None]
        spans.sort(key=lambda span: (self._rank(span.dialog), span.start))
        index = next((number for number, span in enumerate(spans) if first in span), len(spans))
        cut = [Span(first.dialog, spans[index].start, first.seq)] if index < len(spans) else []
        return tuple(span for span in (*spans[:index], *cut) if len(span))

    def place(self, exchange: Exchange) -> tuple[int, int]:
        """Return the place of an exchange in the log, by which two can be compared."""
        first = exchange.first
        return (-1, 0) if first is None else (self._rank(first.dialog), first.seq)

    def _rank(self, dialog: DialogId) -> int:
        return next(
            (rank for rank, span in enumerate(self.view.shared) if span.dialog == dialog), len(self.view.shared)
        )

    @cached_property
    def opening(self) -> Sequence[Exchange]:
        """The human's first message, if it is one of those that are not read."""
        if not self.older or self.view.reader is None:
            return ()
        reader, key = self.view.reader, ("opening", self.older)
        made: Callable[[], Sequence[Exchange]] = lambda: tuple(islice(said_by_human(reader, self.older), 1))  # noqa: E731
        return self.meter.remember(self.view.exchanges[0], key, made)

    @cached_property
    def beginning(self) -> int:
        """How many of the first exchanges are the beginning of the log: nothing older was left out by an earlier compaction."""
        exchanges = self.view.exchanges
        left = min(
            (
                (self._rank(omission.span.dialog), omission.span.start)
                for omission in self._left
                if omission.span is not None
            ),
            default=None,
        )
        if left is None:
            return len(exchanges)
        return next(
            (at for at, exchange in enumerate(exchanges) if exchange.first is None or self.place(exchange) > left),
            len(exchanges),
        )

    @cached_property
    def older_messages(self) -> int:
        """How many messages those are."""
        read = sum(exchange.messages for exchange in self._folded)
        return max(0, sum(omission.messages for omission in self._left) - read) if self.older else 0

    @cached_property
    def whole(self) -> Sequence[Exchange]:
        """What an earlier compaction left out, and the view's exchanges."""
        return self._folded + self.view.exchanges

    @cached_property
    def columns(self) -> Columns:
        """The columns of `whole`."""
        return Columns(gaps(self.view.shared)).grow(self.whole) if self._folded else self.view.columns

    def load(self, index: int) -> None:
        """Read a run of the view's exchanges that ends with one, unless they were read before."""
        if index >= self._loaded or self.view.exchanges[index].source.loaded:
            return
        start = max(0, index - LOAD + 1)
        near = index >= self._loaded - LOAD
        self.view.load(range(start, self._loaded if near else index + 1))
        self._loaded = start if near else self._loaded


Rule: TypeAlias = Callable[["Layout", int], Form | None]
"""Returns the form of an exchange, which does not depend on its place; None where the rule leaves it alone. The newest rule that returns a form wins."""


@dataclass(frozen=True)
class Layout:
    """What a plan shows of a view, in which form, and how large that is. Immutable: operators return another layout.

    Attributes:
        view: The view that is planned for.
        meter: Measures exchanges and texts.
        limit: The layout must not be larger than this; instructions and tools count.
        target: Down to how many tokens a cut goes.
        committed: Whether the plan is committed, so that the next one starts from its result; otherwise the next one starts from the log again.
        rules: Forms that exchanges have at any place.
        forms: Forms of single exchanges, by index; they win over rules.
        dropped: Ranges of exchanges that are left out, ascending and disjoint, each with its reason.
        inserts: Derived texts to put in.
        added: The size of the derived texts.
        notes: What was done, one sentence each.
    """

    view: View
    meter: Measure
    limit: int
    target: int
    facts: Facts = field(repr=False, compare=False)
    committed: bool = False
    rules: tuple[Rule, ...] = ()
    forms: Mapping[int, Form] = field(default_factory=dict)
    dropped: tuple[tuple[range, Reason], ...] = ()
    inserts: tuple[Insert, ...] = ()
    added: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: View, budget: Budget, meter: Measure, *, committed: bool = False) -> Layout:
        """Lay out a view as it is, within a budget in tokens."""
        facts = Facts(view, meter)
        return cls(view, meter, 0, 0, facts, committed).within(budget.limit, budget.target)

    def within(self, limit: int, target: int) -> Layout:
        """Return the layout with another limit and target, both for the whole request.

        A cut leaves the conversation at least a quarter of the room beside instructions and tools: where they nearly reach the target, it is raised.
        """
        room = max(limit - self.facts.fixed, 0)
        return replace(self, limit=limit, target=max(target, self.facts.fixed + min(room // _LEAST_SHARE, target)))

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The number of exchanges in the view."""
        return len(self.view.exchanges)

    @property
    def fixed(self) -> int:
        """The size of instructions and tools."""
        return self.facts.fixed

    @property
    def protected(self) -> frozenset[int]:
        """Indexes of the exchanges that stay: the newest user message, the pinned, the open, the newest exchange, the running summary."""
        return self.facts.protected(self.limit)

    @property
    def beginning(self) -> int:
        """How many of the first exchanges are the beginning of the log. A preset that keeps first messages keeps only these."""
        return self.facts.beginning

    def position(self, index: int) -> int:
        """Return the size before an exchange boundary, by which cuts are ruled: without derived texts, estimated from recorded bytes.

        Never measured: where a growing log passed from one to the other, a cut would move back.
        """
        return int(self.view.columns.sizes[index] / self.meter.recorded_per_unit)

    @property
    def humans(self) -> Sequence[int]:
        """Indexes of the human's messages in the view."""
        return self.view.columns.humans

    def form(self, index: int) -> Form | None:
        """Return the form of an exchange; None where it is shown as recorded."""
        form = self.forms.get(index)
        if form is not None:
            return form
        if not self.rules:
            return None
        exchange = self.view.exchanges[index]
        for rule in reversed(self.rules):
            made = self.meter.remember(exchange, rule, lambda: rule(replace(self, rules=(), forms={}), index))  # noqa: B023 - called now
            if made is not None:
                return made
        return None

    def recorded(self, index: int) -> int:
        """Return the size of an exchange as recorded. Reads its bodies, and its neighbours' with it."""
        self.facts.load(index)
        return self.meter.exchange(self.view.exchanges[index])

    def size(self, index: int) -> int:
        """Return the size of an exchange in its form."""
        form = self.form(index)
        return self.recorded(index) if form is None else form.size

    # --- how large it is ----------------------------------------------------------------------------------------------

    def shown(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Iterate over the indexes of the exchanges that are shown, newest first."""
        upto = self.end if stop is None else stop
        for gone, _ in reversed(self.dropped):
            if gone.start < upto:
                yield from range(upto - 1, max(gone.stop, start) - 1, -1)
                upto = min(upto, gone.start)
        yield from range(upto - 1, start - 1, -1)

    def total(self, most: int | None = None, stop: int | None = None) -> int:
        """Return the size of the layout, newest exchanges first; once it exceeds `most`, stop and return that.

        Args:
            most: Where to stop adding up.
            stop: Count only exchanges before this index.
        """
        total = self.fixed + self.added
        for index in self.shown(0, stop):
            if most is not None and total > most:
                break
            total += self.size(index)
        return total

    def fits(self) -> bool:
        """Return whether the layout is at or under its limit. Reads no more than that needs."""
        return self.total(self.limit) <= self.limit

    # --- places -------------------------------------------------------------------------------------------------------

    def newest(self, size: int) -> int:
        """Return the first index of the newest exchanges that have at most `size` tokens together."""
        index = self.end
        while index > 0 and (size := size - self.size(index - 1)) >= 0:
            index -= 1
        return index

    def newest_messages(self, count: int) -> int:
        """Return the first index of the newest exchanges with `count` messages, or a few more: no exchange is cut."""
        index = self.end
        while index > 0 and count > 0:
            index -= 1
            count -= self.view.exchanges[index].messages
        return index

    def newest_turns(self, count: int) -> int:
        """Return the index of the human's n-th newest message; 0 where there are fewer."""
        if count <= 0:
            return self.end
        return self.humans[-count] if count <= len(self.humans) else 0

    # --- changes ------------------------------------------------------------------------------------------------------

    def with_rule(self, rule: Rule) -> Layout:
        """Show every exchange in the form that a rule returns for it."""
        return replace(self, rules=(*self.rules, rule))

    def with_forms(self, forms: Mapping[int, Form]) -> Layout:
        """Show some exchanges in other forms."""
        return replace(self, forms={**self.forms, **forms})

    def without(self, start: int, stop: int, reason: Reason, *, keep: frozenset[int] | None = None) -> Layout:
        """Leave out the exchanges from `start` to before `stop`, except those to keep (by default, the protected) and those left out already."""
        stays = self.protected if keep is None else keep
        holes = [range(index, index + 1) for index in stays if start <= index < stop]
        gone, place = [], start
        for hole in sorted([*holes, *(indexes for indexes, _ in self.dropped)], key=lambda indexes: indexes.start):
            if place < min(hole.start, stop):
                gone.append((range(place, min(hole.start, stop)), reason))
            place = max(place, hole.stop)
        gone += [(range(place, stop), reason)] if place < stop else []
        return replace(self, dropped=tuple(sorted((*self.dropped, *gone), key=lambda pair: pair[0].start)))

    def with_insert(self, insert: Insert) -> Layout:
        """Put in a derived text."""
        added = self.added + self.meter.derived(insert.text, insert.label)
        return replace(self, inserts=(*self.inserts, insert), added=added)

    def noted(self, *notes: str) -> Layout:
        """Add sentences about what was done."""
        return replace(self, notes=(*self.notes, *notes))

    def with_plan(self, plan: Plan) -> Layout:
        """Return the layout that a plan leads to.

        Raises:
            InvalidInput: The plan does not fit the view.
        """
        layout = self
        for drop in plan.drops:
            layout = layout.without(drop.indexes.start, drop.indexes.stop, drop.reason)
        changes: dict[int, list[Rewrite | Remove]] = {}
        every: tuple[Rewrite | Remove, ...] = (*plan.rewrites, *plan.removes)
        for change in every:
            index = self.view.find(change.target)
            if index is not None:
                changes.setdefault(index, []).append(change)
        after = apply(self.view, replace(plan, drops=(), inserts=()))
        forms = {index: Form.of(self.meter.exchange(after.exchanges[index]), own) for index, own in changes.items()}
        layout = layout.with_forms(forms).noted(*plan.notes)
        for insert in plan.inserts:
            layout = layout.with_insert(insert)
        return layout

    def without_stand_ins(self) -> Layout:
        """Return the layout without records and notes, so that they can be written again."""
        bare = replace(self, inserts=(), added=0)
        for insert in self.inserts:
            bare = bare if insert.label in STAND_INS else bare.with_insert(insert)
        return bare

    def plan(self, policy: str) -> Plan:
        """Return the plan that leads to this layout."""
        shown = reversed(list(self.shown())) if self.rules or self.forms else ()
        forms = [form for index in shown if (form := self.form(index)) is not None]
        return Plan(
            policy=policy,
            drops=tuple(Drop(index=gone.start, stop=gone.stop, reason=reason) for gone, reason in self.dropped),
            rewrites=tuple(rewrite for form in forms for rewrite in form.rewrites),
            removes=tuple(remove for form in forms for remove in form.removes),
            inserts=self.inserts,
            notes=self.notes,
        )
