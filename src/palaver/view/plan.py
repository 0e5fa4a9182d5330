"""Plans: the changes that a policy wants in a view. Applying one makes a smaller view, with an omission for everything that left."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import Handle, Run, Span, gaps
from palaver.messages import Role, Speaker, Trust
from palaver.messages.frozen import cleaned
from palaver.view.blocks import DECIDED, BlockChange, Reason, change_of
from palaver.view.exchange import Exchange
from palaver.view.view import Omission, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leave out whole exchanges.

    Attributes:
        index: The index of the first one in the view that the plan was made for.
        stop: The index after the last one; None for one exchange.
        reason: Why.
    """

    index: int
    stop: int | None = None
    reason: Reason = Reason.OVER_BUDGET

    @property
    def indexes(self) -> range:
        """The indexes left out."""
        return range(self.index, self.index + 1 if self.stop is None else self.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Show another text in place of a block that is not a tool call.

    Attributes:
        target: The block.
        text: What the model sees instead; it names the handle.
        reason: Why.
        reversible: Whether the handle returns all that was taken out.
        sources: The entries other than the block that the text was made from.
        trust: The lowest trust among them; None for that of the block.
    """

    target: Handle
    text: str
    reason: Reason
    reversible: bool = True
    sources: tuple[Run, ...] = ()
    trust: Trust | None = None

    def __post_init__(self) -> None:
        """Replace what cannot be stored or sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Leave out a single block that is neither a call nor a result, where its turn has others.

    Attributes:
        target: The block.
        reason: Why.
    """

    target: Handle
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Add a derived text as an exchange of its own. It never speaks with the user's authority.

    Attributes:
        before: The index, in the view that the plan was made for, of the exchange that follows it; the number of exchanges adds it at the end.
        text: What the model sees.
        label: `record`, `summary` or `notice`.
        sources: The entries it was made from.
        trust: The lowest trust among the sources.
    """

    before: int
    text: str
    label: str = "record"
    sources: tuple[Run, ...] = ()
    trust: Trust = Trust.OUTSIDE

    def __post_init__(self) -> None:
        """Replace what cannot be stored or sent."""
        object.__setattr__(self, "text", cleaned(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The changes that a policy wants. An empty plan leaves the view as it is.

    Attributes:
        policy: The policy's name.
        drops: Exchanges to leave out.
        rewrites: Blocks to show in another form.
        removes: Single blocks to leave out.
        inserts: Derived texts to add.
        notes: What the policy records about its decision, a sentence each.
    """

    policy: str
    drops: tuple[Drop, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    removes: tuple[Remove, ...] = ()
    inserts: tuple[Insert, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the plan changes anything."""
        return bool(self.drops or self.rewrites or self.removes or self.inserts)


def apply(view: View, plan: Plan) -> View:
    """Return the view with a plan's changes: valid by construction, with an omission for everything left out.

    Reads no body: exchanges that change are read when they are shown.

    Raises:
        InvalidInput: The plan drops what every view must show, or names an exchange or block that is not in the view or cannot be changed so.
    """
    if not plan:
        return view
    dropped = _dropped(view, plan)
    changed = {
        index: _changed(view.exchanges[index], changes, plan)
        for index, changes in _changes(view, plan, dropped).items()
    }
    kept = [index for index, reason in enumerate(dropped) if reason is None]
    exchanges = [changed.get(index, view.exchanges[index]) for index in kept]
    omissions = _left_out(view, plan, dropped, kept) if len(kept) < len(dropped) else view.omissions
    removed = (Omission(reason=change.reason, handle=change.target, by=plan.policy) for change in plan.removes)
    for insert in sorted(plan.inserts, key=lambda each: each.before)[::-1]:
        exchanges.insert(bisect_left(kept, insert.before), _inserted(insert))
    return replace(
        view,
        exchanges=tuple(exchanges),
        omissions=(*omissions, *removed),
        policies=view.policies if plan.policy in view.policies else (*view.policies, plan.policy),
    )


def _dropped(view: View, plan: Plan) -> Sequence[Reason | None]:
    """Return why the plan drops each exchange; None for those that stay."""
    dropped: list[Reason | None] = [None] * len(view.exchanges)
    for drop in plan.drops:
        indexes = drop.indexes
        if not 0 <= indexes.start <= indexes.stop <= len(view.exchanges):
            message = f"The plan of {plan.policy} drops exchanges {indexes.start} to {indexes.stop}; the view has {len(view.exchanges)}."
            raise InvalidInput(message)
        dropped[indexes.start : indexes.stop] = [drop.reason] * len(indexes)
    forbidden = sorted(index for index in view.protected() if dropped[index] is not None)
    if forbidden:
        message = (
            f"The plan of {plan.policy} drops exchange {forbidden[0]}, which every view must show: "
            "the newest user message, pinned exchanges and open calls stay."
        )
        raise InvalidInput(message)
    return dropped


def _changes(view: View, plan: Plan, dropped: Sequence[Reason | None]) -> Mapping[int, dict[Handle, BlockChange]]:
    """Return the plan's changes by the exchange that shows the block."""
    changes: dict[int, dict[Handle, BlockChange]] = {}
    wanted: tuple[Rewrite | Remove, ...] = (*plan.rewrites, *plan.removes)
    for change in wanted:
        index = view.find(change.target)
        if index is None or dropped[index] is not None:
            raise InvalidInput(
                f"The plan of {plan.policy} changes block {change.target}, which no exchange of the view shows."
            )
        changes.setdefault(index, {})[change.target] = _form(change)
    return changes


def _form(change: Rewrite | Remove) -> BlockChange:
    if isinstance(change, Remove):
        return BlockChange(change.reason)
    return BlockChange(change.reason, change.text, change.reversible, change.sources, change.trust)


def _changed(exchange: Exchange, changes: Mapping[Handle, BlockChange], plan: Plan) -> Exchange:
    """Return an exchange with more changes. A block that was removed, or that a provider refused, stays as it is."""
    merged = dict(exchange.changes)
    for target, change in changes.items():
        before = change_of(merged, target) if merged else None
        if before is None or (before.text is not None and before.reason is not Reason.QUARANTINED):
            merged[target] = change.after(before)
    responds = exchange.role is Role.ASSISTANT
    for handle, letter in exchange.shape():
        wanted = changes.get(handle)
        if wanted is not None and (letter == "c" or (letter == "r" and responds and wanted.text is None)):
            message = (
                f"The plan of {plan.policy} changes block {handle}: a call stays whole, and its result stays with it."
            )
            raise InvalidInput(message)
    made = replace(exchange, changes=merged)
    removes = any(change.text is None for change in changes.values())
    if removes and all(letter == "r" and responds for _, letter in made.shown()):
        message = (
            f"The plan of {plan.policy} removes every block of a {exchange.role.value} turn: drop the exchange instead."
        )
        raise InvalidInput(message)
    return made


def _inserted(insert: Insert) -> Exchange:
    trust = min(insert.trust, Trust.MODEL)
    return Exchange.stated(insert.text, insert.label, insert.sources, Speaker.SUMMARY, trust)


_Entries: TypeAlias = AbstractSet[tuple[DialogId, int]]


@dataclass(slots=True)
class _Leaving:
    """A run of entries that leaves; its neighbours are added to it."""

    dialog: DialogId
    start: int
    stop: int
    reason: Reason
    by: str
    messages: int
    size: int

    def omission(self) -> Omission:
        """Return the run as an omission."""
        span = Span(self.dialog, self.start, self.stop)
        return Omission(reason=self.reason, span=span, by=self.by, messages=self.messages, size=self.size)


def _left_out(view: View, plan: Plan, dropped: Sequence[Reason | None], kept: Sequence[int]) -> tuple[Omission, ...]:
    """Return the omissions of a view without some exchanges.

    Neighbouring entries with one reason make one omission. Entries that views never show do not part neighbours. Entries that the view shows or depends
    on do, and so does what the dialog does not share of an ancestor. An empty message between neighbours leaves with them.
    """
    standing = set(_entries((span.dialog, span.start, span.stop) for span in view.state))
    for index in kept:
        standing.update(_entries(view.exchanges[index].source.runs))
    ranks = {span.dialog: rank for rank, span in enumerate(view.shared)}
    holes = gaps(view.shared)
    runs: list[_Leaving] = []
    others: list[Omission] = []
    for gone in view.omissions:
        if gone.span is not None and gone.reason in DECIDED:
            dialog, start, stop = gone.span.dialog, gone.span.start, gone.span.stop
            runs.append(_Leaving(dialog, start, stop, gone.reason, gone.by, gone.messages, gone.size))
        else:
            others.append(gone)
    parted = {*standing, *((run.dialog, run.start) for run in runs), *((hole.dialog, hole.start) for hole in holes)}
    pieces = _pieces(view, kept, parted, single=len({drop.reason for drop in plan.drops}) > 1)
    leaving, blocks = _leaving(view, dropped, pieces, plan.policy, standing)
    joined = _joined([*leaving, *runs], ranks, standing, holes)
    return (*_outside(others, joined, ranks), *(run.omission() for run in joined), *blocks)


def _entries(runs: Iterable[tuple[DialogId, int, int]]) -> Iterator[tuple[DialogId, int]]:
    for dialog, start, stop in runs:
        for seq in range(start, stop):
            yield dialog, seq


def _leaving(
    view: View, dropped: Sequence[Reason | None], pieces: Iterable[tuple[int, int]], policy: str, standing: _Entries
) -> tuple[list[_Leaving], list[Omission]]:
    """Return the entries that leave, and the blocks that leave of entries that stay: a message with a result and words is part of two exchanges."""
    columns = view.columns
    runs: list[_Leaving] = []
    blocks: list[Omission] = []
    for first, stop in pieces:
        exchange, reason = view.exchanges[first], dropped[first]
        if reason is None:
            continue
        own = exchange.source.runs
        if stop - first > 1:
            own = ((own[0][0], own[0][1], view.exchanges[stop - 1].source.runs[-1][2]),)
            messages = columns.messages[stop] - columns.messages[first]
            size = columns.sizes[stop] - columns.sizes[first]
        else:
            messages, size = exchange.messages, exchange.size
            if not standing.isdisjoint(_entries(own)):
                own = tuple((dialog, seq, seq + 1) for dialog, seq in _entries(own) if (dialog, seq) not in standing)
                blocks += _blocks(exchange, standing, reason, policy, counted=bool(own))
        for dialog, start, end in own:
            runs.append(_Leaving(dialog, start, end, reason, policy, messages, size))
            messages = size = 0  # counted with its first run
    return runs, blocks


def _pieces(view: View, kept: Sequence[int], parted: _Entries, *, single: bool) -> Iterator[tuple[int, int]]:
    """Iterate over dropped exchanges, as first index and the one after the last: unbroken runs in the order of the log, or single ones."""
    exchanges, breaks = view.exchanges, view.columns.breaks
    places: dict[DialogId, list[int]] = {}
    for dialog, seq in sorted(parted):
        places.setdefault(dialog, []).append(seq)
    edges = pairwise((-1, *kept, len(exchanges)))
    for begin, end in ((before + 1, after) for before, after in edges if after > before + 1):
        inside = breaks[bisect_left(breaks, begin + 1) : bisect_left(breaks, end)]
        todo = list(pairwise((begin, *inside, end)))[::-1]
        while todo:
            start, stop = todo.pop()
            if stop - start > 1 and (single or _crossed(exchanges[start], exchanges[stop - 1], places)):
                middle = (start + stop) // 2
                todo += [(middle, stop), (start, middle)]
            else:
                yield start, stop


def _crossed(first: Exchange, last: Exchange, places: Mapping[DialogId, Sequence[int]]) -> bool:
    """Return whether one of the places lies from an exchange to another one."""
    dialog, start, _ = first.source.runs[0]
    numbers = places.get(dialog, ())
    return bisect_left(numbers, start) < bisect_left(numbers, last.source.runs[-1][2])


def _blocks(
    exchange: Exchange, standing: _Entries, reason: Reason, policy: str, *, counted: bool
) -> Iterator[Omission]:
    for handle, _ in exchange.shown():
        if (handle.dialog, handle.seq) in standing:
            messages, size = (0, 0) if counted else (exchange.messages, exchange.size)
            yield Omission(reason=reason, handle=handle, by=policy, messages=messages, size=size)
            counted = True


def _joined(
    runs: list[_Leaving], ranks: Mapping[DialogId, int], standing: _Entries, holes: tuple[Span, ...]
) -> list[_Leaving]:
    """Return runs in the order of the log, neighbours joined."""
    # the dialog's own entries come after those that it shares
    runs.sort(key=lambda run: (ranks.get(run.dialog, len(ranks)), run.start))
    joined: list[_Leaving] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last is None or not _neighbours(last, run, standing, holes):
            joined.append(run)
            continue
        last.stop = max(last.stop, run.stop)
        last.messages += run.messages
        last.size += run.size
    return joined


def _neighbours(last: _Leaving, run: _Leaving, standing: _Entries, holes: tuple[Span, ...]) -> bool:
    if last.dialog != run.dialog or last.reason is not run.reason or last.by != run.by:
        return False
    if last.stop == run.start:
        return True
    if any(hole.dialog == run.dialog and hole.start < run.start and hole.stop > last.stop for hole in holes):
        return False
    return all((run.dialog, seq) not in standing for seq in range(last.stop, run.start))


def _outside(gone: Iterable[Omission], joined: list[_Leaving], ranks: Mapping[DialogId, int]) -> Iterator[Omission]:
    """Return omissions without the empty messages that lie within runs that leave."""
    starts = [(ranks.get(run.dialog, len(ranks)), run.start) for run in joined]
    for omission in gone:
        if omission.reason is Reason.EMPTY and omission.span is not None:
            span = omission.span
            place = bisect_right(starts, (ranks.get(span.dialog, len(ranks)), span.start)) - 1
            if place >= 0 and joined[place].dialog == span.dialog and span.start < joined[place].stop:
                continue
        yield omission
