"""A view that was written down, carried on: what a dialog shows when a compaction was committed and more was said since.

A session writes a view down as one entry, and its next view is that one and the entries after it (ADR 0018). The lab does the same without
a store: one fold of the recorded log serves every policy, and what a policy wrote down stands for the beginning of it. That the views are
those of a session that really commits is a law, and tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from palaver.log import Handle
from palaver.view import Block, Exchange, Omission, View

__all__ = ["Carried"]


class Carried:
    """What a policy wrote down of a dialog, and the views that follow from it.

    Attributes:
        commits: How often a view was written down.
    """

    def __init__(self) -> None:
        """Begin with nothing written down."""
        self.commits = 0
        self._shown: View | None = None
        self._log: View | None = None
        self._known: frozenset[Omission] = frozenset()
        self._place = 0
        self._settled: tuple[Exchange, ...] = ()
        self._open: tuple[Exchange, ...] = ()

    def view(self, log: View) -> View:
        """Give the view that a session would have.

        Args:
            log: The view of everything said so far; of the dialog that was written down, at the same place or later.
        """
        shown, then = self._shown, self._log
        if shown is None or then is None:
            return log
        settled = self._settled if log.state == then.state else tuple(self._again(self._settled, log, 0))
        edits: Mapping[Handle | None, Block] = {
            block.origin: block for block in shown.system if block.origin is not None and block.reason is not None
        }
        return replace(
            log,
            system=log.system if not edits else tuple(edits.get(block.origin, block) for block in log.system),
            exchanges=(*settled, *self._again(self._open, log, self._place), *log.exchanges[len(then.exchanges) :]),
            omissions=(*shown.omissions, *(gone for gone in log.omissions if gone not in self._known)),
            policies=shown.policies,
        )

    def commit(self, view: View, log: View) -> None:
        """Write a view down.

        Args:
            view: The view, made of what `view` gave for this log.
            log: The view of everything said so far.
        """
        self.commits += 1
        self._shown, self._log = view, log
        self._known = frozenset(log.omissions)
        last = len(log.exchanges)
        self._place = next(
            (index for index in range(last - 1, -1, -1) if log.exchanges[index].first == log.response), last
        )
        growing = {each.first for each in log.exchanges[self._place :]}
        first = next((index for index, each in enumerate(view.exchanges) if each.first in growing), len(view.exchanges))
        shown = tuple(each if each.stale else replace(each, stale=True) for each in view.exchanges)
        self._settled, self._open = shown[:first], shown[first:]

    def _again(self, written: tuple[Exchange, ...], log: View, start: int) -> Iterator[Exchange]:
        """Give what was written down as it is to be shown now: the newest response may have grown, anything may be pinned since.

        Args:
            written: What was written down.
            log: The view of everything.
            start: The first exchange of it that may have changed.
        """
        if not written or self._log is None:
            return
        before: dict[Handle | None, Exchange] = {each.first: each for each in self._log.exchanges[start:]}
        now: dict[Handle | None, Exchange] = {each.first: each for each in log.exchanges[start:]}
        for each in written:
            new = now.get(each.first)
            if each.first is None or new is None or new is before.get(each.first):
                yield each
            else:
                yield _as_written(each, before.get(each.first), new)


def _as_written(written: Exchange, before: Exchange | None, new: Exchange) -> Exchange:
    """Give an exchange that has changed since in the form in which it was written down."""
    edits: Mapping[Handle | None, Block] = {
        block.origin: block for block in written.blocks() if block.reason is not None and block.origin is not None
    }
    had = frozenset() if before is None else frozenset(block.origin for block in before.blocks())
    gone = had - {block.origin for block in written.blocks()}
    turns = (
        replace(turn, blocks=tuple(edits.get(block.origin, block) for block in turn.blocks if block.origin not in gone))
        for turn in new.turns
    )
    return replace(new, turns=tuple(turn for turn in turns if turn.blocks), stale=written.stale)
