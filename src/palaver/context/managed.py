"""A plain context manager held to the laws: what it gives is compared with what went in, and becomes a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from palaver.context.compose import Planner
from palaver.context.ledger import Ledger
from palaver.context.manager import ContextManager, Policy, Viewed
from palaver.errors import InvalidInput
from palaver.messages import Content, TextContent, ToolCallContent, ToolResultContent
from palaver.tokens import Budget, Rates
from palaver.view import Drop, Exchange, Insert, Plan, Reason, Rewrite, View
from palaver.wire.words import called

__all__ = ["Managed", "Shown", "difference", "planner"]


class Shown:
    """A dialog that is nothing but its view: what a plain manager gets where there is no other."""

    def __init__(self, view: View) -> None:
        """Show a view."""
        self._view = view

    def view(self) -> View:
        """Give the view."""
        return self._view

    def derive(self, view: View) -> Shown:
        """Give a dialog whose view is this one."""
        return Shown(view)


class Managed:
    """A plain manager in the place of a policy.

    What it may not do is not done: the newest user message, what is pinned and what is open stay, and the order of the log is kept.

    Attributes:
        name: The manager's name.
        complete: False: if the manager leaves too much, `compose` goes on.
        literal: True: what it leaves out is left out without a word.
    """

    complete = False
    literal = True

    def __init__(self, manager: ContextManager, dialog: Viewed | None = None) -> None:
        """Take a manager, and the dialog it is to be called with; a bare view unless given."""
        self.name = manager.name
        self._manager = manager
        self._dialog = dialog

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - the manager knows its own
        """Say what the manager changed.

        Raises:
            InvalidInput: The manager gave something that is no dialog, such as None where the return was forgotten.
        """
        dialog: Any = self._dialog if self._dialog is not None else Shown(view)
        given: Any = self._manager(dialog)
        if given is dialog:
            return Plan(policy=self.name)
        if not callable(getattr(given, "view", None)):
            raise InvalidInput(
                f"The context manager {self.name!r} gave a {type(given).__name__}, not a dialog.",
                hint="Return the dialog it was called with, or one made from it; a function without return gives None.",
            )
        return difference(view, given.view(), self.name)


def planner(manager: ContextManager, dialog: Viewed | None = None) -> Planner:
    """Give what plans for a manager: itself when it is a policy."""
    return manager if isinstance(manager, Policy) else Managed(manager, dialog)


def difference(before: View, after: View, name: str) -> Plan:
    """Give the plan that leads from one view to another, as far as a plan can.

    Exchanges are the same when they show the same entries; else when they say the same; else when they make the same calls. What
    is new becomes a derived text, which does not speak with the user's authority.
    """
    pairs = dict(_paired(before.exchanges, after.exchanges))
    protected = before.protected()
    kept = {index for index in pairs.values() if index is not None}
    missing = [index for index in range(len(before.exchanges)) if index not in kept]
    stayed = [index for index in missing if index in protected]
    return Plan(
        policy=name,
        drops=tuple(Drop(index=index, reason=Reason.MANAGER) for index in missing if index not in protected),
        rewrites=tuple(
            rewrite
            for place, index in pairs.items()
            if index is not None
            for rewrite in _rewrites(before.exchanges[index], after.exchanges[place])
        ),
        inserts=tuple(_inserts(pairs, after.exchanges, len(before.exchanges))),
        notes=tuple(f"exchange {index} stays: every view must hold it" for index in stayed),
    )


def _paired(before: Sequence[Exchange], after: Sequence[Exchange]) -> Iterator[tuple[int, int | None]]:
    """Give for each exchange of `after` the one of `before` that it is, or None; each at most once, in the order of `before`."""
    next_free = 0
    for place, exchange in enumerate(after):
        found = _found(before, exchange, next_free)
        if found is not None:
            next_free = found + 1
        yield place, found


def _found(before: Sequence[Exchange], wanted: Exchange, start: int) -> int | None:
    for same in (_same_entries, _same_words, _same_calls):
        for index in range(start, len(before)):
            if same(before[index], wanted):
                return index
    return None


def _same_entries(one: Exchange, other: Exchange) -> bool:
    return one.first is not None and one.first == other.first


def _same_words(one: Exchange, other: Exchange) -> bool:
    return _said(one) == _said(other)


def _said(exchange: Exchange) -> list[tuple[str, list[Content]]]:
    return [(turn.role.value, [block.content for block in turn.blocks]) for turn in exchange.turns]


def _same_calls(one: Exchange, other: Exchange) -> bool:
    calls = _calls(one)
    return bool(calls) and calls == _calls(other)


def _calls(exchange: Exchange) -> list[tuple[str, str]]:
    return [(block.id, block.name) for block in _contents(exchange) if isinstance(block, ToolCallContent)]


def _contents(exchange: Exchange) -> Iterator[Content]:
    return (block.content for block in exchange.blocks())


def _rewrites(one: Exchange, other: Exchange) -> Iterator[Rewrite]:
    """Give the blocks that say something else now; by their handle, else by their place among those of their kind."""
    texts = [block for block in one.blocks() if _text(block.content) is not None]
    now = [block for block in other.blocks() if _text(block.content) is not None]
    by_handle = {block.origin: block for block in now if block.origin is not None}
    alike = len(texts) == len(now)
    for number, block in enumerate(texts):
        if block.origin is None:
            continue
        new = by_handle.get(block.origin) or (now[number] if alike else block)
        text = _text(new.content)
        if text is not None and text != _text(block.content):
            yield Rewrite(target=block.origin, text=text, reason=Reason.MANAGER, reversible=False)


def _text(content: Content) -> str | None:
    if isinstance(content, ToolResultContent):
        return content.text()
    return content.content if isinstance(content, TextContent) else None


def _inserts(pairs: dict[int, int | None], after: Sequence[Exchange], end: int) -> Iterator[Insert]:
    """Give what is new, each before the next exchange that is not."""
    place = end
    found: list[Insert] = []
    for number in sorted(pairs, reverse=True):
        index = pairs[number]
        if index is not None:
            place = index
            continue
        text = "\n".join(_words(_contents(after[number])))
        if text.strip():
            found.append(Insert(before=place, text=text, label="summary"))
    yield from reversed(found)


def _words(contents: Iterable[Content]) -> Iterator[str]:
    for content in contents:
        if isinstance(content, ToolCallContent):
            yield called(content.name, content.arguments)
        else:
            yield _text(content) or ""
