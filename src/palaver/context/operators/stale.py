"""What later work has made pointless: the same output twice, a file read again, a write written over, a failure since fixed.

Costs no model call. (OpenCode's DCP plugin has three of them: deduplication, superseded writes, purged errors;
tarquinen/opencode-dynamic-context-pruning, lib/strategies.) It blanks the arguments of calls; ours leaves calls whole, because a model
repeats what it reads of its own calls: an exchange whose calls are of no more use goes as a whole, with a line in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited, free, touched, with_holes
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.operators.shorten import shown_as
from palaver.context.texts import asked_again, done_over, failed_once, read_again, said_again
from palaver.context.work import Act, Acts, error_line
from palaver.log import Handle
from palaver.messages import Role, TextContent, ToolCallContent
from palaver.view import Reason, Rewrite

__all__ = ["ASKED_AGAIN", "DEDUPE", "DROP_SUPERSEDED", "OF_NO_MORE_USE", "OUTDATED_READS", "PURGE_FAILED", "Pointless"]

_WORDS = 400
"""Characters of its own words that a response may have and still be of no more use when its calls are."""

_Words: TypeAlias = "Callable[[Handle, Act], str]"
_Places: TypeAlias = "Callable[[Acts], Mapping[int, int]]"
_RESPECTS = frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT})


class Pointless(NamedTuple):
    """Why results are of no more use.

    Attributes:
        name: The operator's name.
        places: Gives such results by their place, each with the exchange from which on it is so.
        words: What stands for one.
    """

    name: str
    places: _Places
    words: _Words

    def line(self, act: Act) -> Rewrite:
        """Show the result of an act as a line."""
        handle = act.answer.origin
        assert handle is not None  # noqa: S101 - an act's result is recorded
        return shown_as(act.answer, self.words(handle, act), Reason.OFFLOADED)


def _results(ground: Ground, upto: int, layout: Layout, *, rule: Pointless) -> Layout:
    """Show the results that are of no more use at `upto` as lines."""
    changes: dict[int, list[Rewrite]] = {}
    may = frozenset(free(ground, upto, layout))
    for place, since in rule.places(ground.acts).items():
        act = ground.acts.all[place]
        if since <= upto and act.index in may and not touched(layout, act.index, act.answer):
            changes.setdefault(act.index, []).append(rule.line(act))
    return edited(ground, layout, changes, rule.name)


def _on_results(rule: Pointless) -> Operator:
    return Operator(rule.name, Loss.REVERSIBLE, partial(_results, rule=rule), _RESPECTS)


def _failure(handle: Handle, act: Act) -> str:
    return failed_once(handle, error_line(act.result))


_REPEATED = Pointless("dedupe", lambda acts: acts.repeated, lambda handle, _: said_again(handle))
_OUTDATED = Pointless("outdated_reads", lambda acts: acts.outdated, lambda handle, _: read_again(handle))
_FIXED = Pointless("purge_failed", lambda acts: acts.fixed, _failure)

OF_NO_MORE_USE = (_REPEATED, _OUTDATED, _FIXED)
"""Why a result is of no more use whatever the task is: a better one says it later."""

DEDUPE = _on_results(_REPEATED)
"""Of outputs that say the same, the newest is shown."""

OUTDATED_READS = _on_results(_OUTDATED)
"""Of what was looked at twice in the same way, the newest is shown."""

ASKED_AGAIN = _on_results(
    Pointless("asked_again", lambda acts: acts.asked_again, lambda handle, _: asked_again(handle))
)
"""Of calls of the same tool with the same arguments, the newest output is shown, also where the outputs differ."""

PURGE_FAILED = _on_results(_FIXED)
"""Of a failure that was fixed since, the line that names the error is shown."""


def _superseded(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Leave out the exchanges that did nothing but write what was written over since, or fail at what succeeded since."""
    acts = ground.acts
    useless: dict[int, list[Act]] = {}
    for place in range(acts.count(upto)):
        act = acts.all[place]
        since = min(acts.overwritten.get(place, upto + 1), acts.fixed.get(place, upto + 1))
        if since <= upto:
            useless.setdefault(act.index, []).append(act)
    may = frozenset(free(ground, upto, layout)) - ground.held(upto)
    lines = {
        index: done_over(found[0].call.origin, [act.deed.of for act in found])
        for index, found in useless.items()
        if index in may and found[0].call.origin is not None and _nothing_else(ground, index, len(found))
    }
    return with_holes(ground, upto, layout, lines, "drop_superseded")


def _nothing_else(ground: Ground, index: int, acts: int) -> bool:
    """Tell whether an exchange holds so many calls and hardly any words."""
    turns = ground.view.exchanges[index].turns
    blocks = turns[0].blocks if turns[0].role is Role.ASSISTANT else ()
    words = sum(len(block.content.content) for block in blocks if isinstance(block.content, TextContent))
    return words <= _WORDS and sum(isinstance(block.content, ToolCallContent) for block in blocks) == acts


DROP_SUPERSEDED = Operator(
    "drop_superseded", Loss.LOSSY, _superseded, frozenset({Property.ONE_FORM, Property.HELD, Property.TOOL_LOOP})
)
"""Exchanges that did nothing but what was done over since leave the view."""
