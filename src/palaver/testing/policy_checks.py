"""The laws of a policy for one view and one budget, and for the views of a growing log. They do not need hypothesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import ascii_lowercase as lower
from string import ascii_uppercase as upper
from unicodedata import category, east_asian_width

from palaver import providers, wire
from palaver.context import Composed, ContextManager, Policy, compose
from palaver.context.meter import Bytes, Meter, Pieces
from palaver.errors import InfeasibleBudget, NotFound
from palaver.log import Handle, Span, places
from palaver.messages import Role, Speaker, ToolCallContent, words_of
from palaver.testing.logs import Log, assert_closed
from palaver.tokens import FAMILIES, Budget, Counter
from palaver.view import Exchange, Fold, Reason, Remove, Rewrite, View, checkpoint, fold, held


def _no_media(digest: str) -> bytes:
    raise NotFound(digest, what="blob")


# --- one view, one budget ---------------------------------------------------------------------------------------------------


def check_policy(
    view: View,
    manager: ContextManager,
    budget: Budget,
    counter: Counter,
    *,
    media: Callable[[str], bytes] = _no_media,
) -> Composed | None:
    """Check a policy against all laws about one view and one budget.

    Returns:
        The composed view; None if the budget is infeasible, after its breakdown was checked.
    """
    try:
        composed = compose(view, manager, budget, Meter(counter))
    except InfeasibleBudget as error:
        _check_infeasible(error, view, manager, budget, counter)
        return None
    _check_size(composed, view, budget, counter)
    _check_omissions(composed.view, view)
    _check_requests(composed.view, media)
    if isinstance(manager, Policy):
        _check_present(composed.view, view)
        _check_humans(composed, view)
    again = compose(view, manager, budget, Meter(counter))
    assert again.view == composed.view, "the same view, policy and budget gave two views"
    twice = compose(composed.view, manager, budget, Meter(counter)).view
    assert twice is composed.view or not isinstance(manager, Policy), "composing a composed view changes it"
    return composed


def _check_infeasible(
    error: InfeasibleBudget, view: View, manager: ContextManager, budget: Budget, counter: Counter
) -> None:
    """Check that the breakdown exceeds the budget, and that a budget of exactly its sum is enough for a policy that may drop."""
    assert error.needed == sum(error.breakdown.values()) > error.budget
    if error.unit != Meter.unit:
        return
    assert error.budget == budget.limit
    if isinstance(manager, Policy):
        enough = compose(view, manager, Budget.of_input(error.needed), Meter(counter))
        assert enough.after.total <= error.needed


def _check_size(composed: Composed, view: View, budget: Budget, counter: Counter) -> None:
    """Check that the view is within the budget by a new count, and that it is the same object or smaller."""
    measured, before = Meter(counter).view(composed.view), Meter(counter).view(view)
    assert measured == composed.after
    assert measured.total <= budget.limit
    assert composed.view is view or measured.total < before.total or not composed.plan
    assert budget.max_bytes is None or Bytes().view(composed.view).total <= budget.max_bytes
    assert budget.max_media is None or Pieces().view(composed.view).total <= budget.max_media


def _check_present(after: View, before: View) -> None:
    """Check that the newest user message and pinned exchanges are unchanged, and that open exchanges keep their calls (law 10)."""
    shown = {exchange.first: exchange for exchange in after.exchanges if exchange.first is not None}
    newest = before.newest_user()
    for index in before.protected():
        exchange = before.exchanges[index]
        there = None if exchange.first is None else shown.get(exchange.first)
        assert there is not None, f"exchange {index} is missing, which every view must keep"
        if index == newest:
            assert _contents(there) == _contents(exchange)
        assert _calls(there) == _calls(exchange)
    assert after.newest_user() is None or newest is not None, "a text that the user did not write has the user's role"


def _check_humans(composed: Composed, before: View) -> None:
    """Check that every human message is in the view, quoted or listed in a record, or in the range of a note (law 10)."""
    shown = {exchange.first for exchange in composed.view.exchanges}
    texts = [insert.text for insert in composed.plan.inserts]
    covered = [Span(run.dialog, run.start, run.stop) for insert in composed.plan.inserts for run in insert.sources]
    for exchange in before.exchanges:
        place = exchange.first
        if exchange.speaker is not Speaker.HUMAN or exchange.role is not Role.USER or place is None or place in shown:
            continue
        if texts:  # a user's own policy may drop without a record: then the omission has the handle
            assert any(place in span for span in covered)
            assert any(f"({place})" in text or _names(text, place) for text in texts)


def _names(text: str, place: Handle) -> bool:
    """Return whether a text names a place: a record in its list of earlier messages, a note in its range."""
    lines = text.split("\n")
    listed = [line for line in lines if line.startswith("(earlier messages of the user: recall ")]
    for line in listed or (lines[:1] if text.startswith("[Earlier") else []):
        printed = line.partition("recall ")[2].rstrip(")]").replace(", ", "; ")
        if any(_is_in(place, printed_place) for printed_place in places(printed)):
            return True
    return False


def _is_in(place: Handle, named: Handle | Span) -> bool:
    if not place.dialog.startswith(named.dialog):
        return False
    return named.start <= place.seq < named.stop if isinstance(named, Span) else named.seq == place.seq


def _contents(exchange: Exchange) -> list[object]:
    return [block.content for block in exchange.blocks()]


def _calls(exchange: Exchange) -> list[object]:
    return [block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent)]


def shown_and_left_out(view: View) -> frozenset[Handle]:
    """Return every entry that a view at least partly shows, or lists as omitted."""
    shown = {place for exchange in view.exchanges for place in exchange.entries()}
    gone = {Handle(handle.dialog, handle.seq) for omission in view.omissions for handle in omission.handles()}
    return frozenset(shown | gone)


def _check_omissions(after: View, before: View) -> None:
    """Check that every entry is shown or listed as an omission, and that every block in another form has a handle (law 9)."""
    assert shown_and_left_out(after) >= shown_and_left_out(before), "an entry is missing without a handle"
    was = {block.origin: block.content for exchange in before.exchanges for block in exchange.blocks()}
    for exchange in after.exchanges:
        for block in exchange.blocks():
            assert block.reason is None or block.origin is not None, "a block in another form has no handle"
            assert block.reason is not None or block.origin is None or block.content == was[block.origin]
            assert not exchange.derived or block.speaker is not Speaker.HUMAN, "a derived text has the human as speaker"
    places = [exchange.first for exchange in after.exchanges if exchange.first is not None]
    assert len(places) == len(set(places)), "an entry is shown twice"


def _check_requests(view: View, media: Callable[[str], bytes]) -> None:
    """Check that calls stay with their results, and that the strict validator of every profile accepts the request (law 1)."""
    assert_closed(view)
    for name, api in providers.APIS.items():
        profile = api.profile()
        request = wire.compile(view, profile, wire.Call(model=profile.model), media)
        faults = wire.validate(request.body, profile, as_history=request.history)
        assert not faults, f"{name}: {faults[0]}"


# --- a conversation that grows ----------------------------------------------------------------------------------------------


def check_stable(views: Iterator[View], manager: ContextManager, budget: Budget, counter: Counter) -> tuple[int, int]:
    """Check that the views of a growing log are prefixes of each other, except where the policy omits more (law 7).

    Args:
        views: The views at model calls, the shortest first.
        manager: The policy.
        budget: The budget of each view.
        counter: Counts tokens.

    Returns:
        The number of views, and the number of steps.
    """
    meter = Meter(counter)
    last: tuple[object, list[object]] | None = None
    asked = steps = 0
    for view in views:
        try:
            composed = compose(view, manager, budget, meter)
        except InfeasibleBudget:
            last = None
            continue
        asked += 1
        state, shown = _state(composed, view), _shown(composed.view)
        if last is not None:
            if last[0] == state:
                assert shown[: len(last[1])] == last[1], (
                    "the view does not continue the previous one, although there was no step"
                )
            else:
                steps += 1
        last = (state, shown)
    return asked, steps


def _state(composed: Composed, view: View) -> object:
    """Return the omissions, the changed blocks and the inserted texts. A different state is a step of the cut."""
    changed = frozenset(
        (block.origin, block.reason, words_of(block.content))
        for exchange in composed.view.exchanges
        for block in exchange.blocks()
        if block.reason is not None
    )
    gone = frozenset(
        handle for omission in composed.view.omissions if omission.messages for handle in omission.handles()
    )
    derived = tuple(exchange.derived for exchange in composed.view.exchanges if exchange.derived)
    return gone, changed, derived, composed.plan.notes, view.system, view.tools


def _shown(view: View) -> list[object]:
    return [
        (turn.role, block.content) for exchange in view.exchanges for turn in exchange.turns for block in turn.blocks
    ]


# --- a conversation whose plans are committed -----------------------------------------------------------------------------------


def check_commits(log: Log, steps: Iterator[object], manager: Policy, budget: Budget, counter: Counter) -> int:
    """Check a policy whose plans are committed as a conversation grows, as an agent commits them (laws 7 and 8).

    Each commit makes the view smaller, and leaves nothing to do. Between two commits the view only grows at its end. A fold that starts from a checkpoint leaves what
    one of the whole log leaves: at most one exchange more.

    Args:
        log: The log. The compactions are appended to it.
        steps: Makes the log longer, step by step.
        manager: The policy.
        budget: The budget of each view.
        counter: Counts tokens.

    Returns:
        The number of commits.
    """
    meter, views = Meter(counter), Fold(log.store, log.store.node(log.dialog))
    before: list[object] = []
    commits = 0
    for _ in steps:
        view = views.view(log.store.last(log.dialog))
        if not view.exchanges or any(exchange.open for exchange in view.exchanges):
            before = []
            continue
        assert _shown(view)[: len(before)] == before, "without a commit, the view does not continue the previous one"
        try:
            composed = compose(view, manager, budget, meter, committed=True)
        except InfeasibleBudget:
            before = _shown(view)
            continue
        if composed.view is not view and composed.after.total < composed.before.total:
            commit(log, composed)
            commits += 1
            view = views.view(log.store.last(log.dialog))
            assert meter.view(view).total == composed.after.total <= budget.limit, "the commit shows something else"
            assert compose(view, manager, budget, meter, committed=True).view is view, "a commit leaves something to do"
            if any(dropped.reason in _FOLDS for dropped in composed.plan.drops):
                whole = fold(log.store, log.dialog, whole=True)
                once = compose(whole, manager, budget, meter, committed=True).after.total
                more = max(map(meter.exchange, whole.exchanges))
                assert composed.after.total <= once + more, (
                    "a fold from a checkpoint leaves more than one of the whole log"
                )
        before = _shown(view)
    return commits


_FOLDS = frozenset({Reason.FOLDED, Reason.OVER_BUDGET})


def commit(log: Log, made: Composed) -> None:
    """Append a composed view as a compaction entry, as a dialog does."""
    spans = held(log.store, log.dialog, made.view.at)
    log.put(
        checkpoint(made.view, spans, policy=made.by, tokens_before=made.before.total, tokens_after=made.after.total)
    )


# --- two views that differ in their words alone ---------------------------------------------------------------------------------


def check_same_plan(view: View, other: View, manager: ContextManager, percent: int) -> None:
    """Check that a view and the same with other letters (`other_letters`) lead to one plan, within so much of their size (law 13)."""
    assert _planned(view, manager, percent) == _planned(other, manager, percent), "the plan depends on words"


def _planned(view: View, manager: ContextManager, percent: int) -> object:
    meter = Meter(_Characters())
    budget = Budget.of_input(max(meter.view(view).total * percent // 100, 1))
    try:
        plan = compose(view, manager, budget, meter).plan
    except InfeasibleBudget as error:
        return error.breakdown
    edits: list[Rewrite | Remove] = [*plan.rewrites, *plan.removes]
    changed = [(edit.target.seq, edit.target.block, edit.reason) for edit in edits]
    return plan.drops, changed, [(insert.before, len(insert.text)) for insert in plan.inserts]


class _Characters:
    """Counts characters: the size of a text does not depend on its letters."""

    family = FAMILIES["openai"]

    def text(self, text: str, /) -> int:
        return len(text)


def other_letters(text: str) -> str:
    """Return a text with every letter replaced by another of its script, case and width, where its neighbour in Unicode is one.

    The name of the mark around words that the user did not say stays: inside that mark it is escaped, which takes room.
    """
    parts = _MARK.split(text)
    return "".join(part if _MARK.fullmatch(part) else "".join(map(_other, part)) for part in parts)


_MARK = re.compile("(from-harness)", re.IGNORECASE)


def _other(letter: str) -> str:
    if letter.isascii():
        return letter.translate(_OTHER)
    near = chr(ord(letter) ^ 1)
    traits = [
        (category(character), east_asian_width(character), len(character.encode(errors="replace")))
        for character in (letter, near)
    ]
    return near if letter.isalpha() and traits[0] == traits[1] else letter


_OTHER = str.maketrans(lower + upper, lower[7:] + lower[:7] + upper[7:] + upper[:7])
