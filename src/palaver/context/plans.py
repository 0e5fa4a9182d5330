"""The plan that an agent wrote down: by a tool for plans, or as a file such as `todo.md`; and its recital where the view is new anyway.

Source: Manus, "Context Engineering for AI Agents" (manus.im/blog): the agent rewrites todo.md again and again, so that what is to be done stands at
the end of the context and not in its lost middle. Ours is recited with every edit, right before what was the newest exchange then, and again where
the view has grown since without a word of the plan. The cache behind an edit is lost anyway, what is recited later comes with what is new, and all of
it stays where it is until the next edit: so requests go on from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.record.carried import sources_of
from palaver.context.work import Act
from palaver.messages import TextContent, Trust
from palaver.view import Insert, View

__all__ = ["LABEL", "PLANS", "Reciting", "Written", "newest_plan", "plan_acts"]

LABEL = "plan"
"""What the model is told that a recital is."""

PLANS = frozenset(
    {
        "todowrite",
        "todo_write",
        "todo",
        "write_todos",
        "update_plan",
        "set_plan",
        "plan",
        "task_tracker",
        "manage_todo_list",
    }
)
"""Tools, in lower case, by which agents write down what they are about to do."""

_FILES = re.compile(r"(?:^|[/\\])(?:todos?|plan|tasks?|task[_-]?plan|checklist)\.(?:md|txt)\Z", re.IGNORECASE)
"""Files in which they do."""

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n(.*?)^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_OLD, _NEW = ("old_str", "old_string"), ("new_str", "new_string")
_TEXTS = ("content", "step", "title", "task", "text", "description", "name")
_MARKS = {
    "completed": "x",
    "done": "x",
    "complete": "x",
    "finished": "x",
    "in_progress": "~",
    "doing": "~",
    "active": "~",
}

_MOST, _SHARE = 1_000, 8
"""Tokens that a recital has at most, and the share of what a cut leaves."""

_EVERY = 10
"""Exchanges after which a plan is recited again; one that was written down in the newer half of them is not."""

_TRIES = 6


@dataclass(frozen=True, slots=True)
class Written:
    """A plan as it stood at some point.

    Attributes:
        index: The exchange that wrote it down, or changed it last.
        text: What it says.
    """

    index: int
    text: str


def plan_acts(ground: Ground, upto: int) -> Iterator[Act]:
    """Give the acts that wrote a plan down or changed it, up to an exchange: the newest first, back to the one that wrote all of it."""
    for act in reversed(ground.acts.upto(upto)):
        if not act.failed and _plans(act):
            yield act
            if _whole(act) is not None:
                return


def newest_plan(ground: Ground, upto: int) -> Written | None:
    """Give the plan as it stood at an exchange: what was written last, with what was changed since; else what was recited last. None for none."""
    acts = list(plan_acts(ground, upto))
    recited = _recited(ground, acts[-1].index if acts else 0, upto)
    if not acts or (_whole(acts[-1]) is None and recited is None):
        return recited
    text = _whole(acts[-1])
    if text is None:
        assert recited is not None  # noqa: S101 - said above
        text = recited.text
    for act in reversed(acts):
        text = _changed(text, act.content.args) if _whole(act) is None else text
    return Written(acts[0].index, text) if text.strip() else None


def _recited(ground: Ground, first: int, upto: int) -> Written | None:
    """Give the newest recital that a commit wrote down."""
    for index in range(upto, first - 1, -1):
        block = ground.view.exchanges[index].turns[0].blocks[0]
        if block.derived == LABEL and isinstance(block.content, TextContent):
            return Written(index, block.content.content.removeprefix(_HEAD))
    return None


def _plans(act: Act) -> bool:
    """Tell whether an act wrote a plan down or changed it; a call that only looks at it does neither."""
    return any(map(_FILES.search, act.deed.wrote)) or (act.tool.casefold() in PLANS and _whole(act) is not None)


def _whole(act: Act) -> str | None:
    """Give all of the plan that an act wrote; None where it changed a part of it, or does not say."""
    if act.whole:
        return act.written
    if act.deed.run:
        found = _HEREDOC.search(str(next(filter(None, map(act.content.args.get, ("command", "cmd", "script"))), "")))
        return found[3] if found else None
    if act.tool.casefold() in PLANS:
        return "\n".join(_lines(act.content.args.values())) or None
    return None


def _lines(values: Iterable[Any]) -> Iterator[str]:
    """Give what a tool for plans was called with: the items of its lists, a line each; else its texts, but for single words such as `view`."""
    given = list(values)
    lists = [each for each in given if isinstance(each, list | tuple)]
    if lists:
        yield from (f"- {line}" for items in lists for each in items if (line := _item(each)))
    else:
        yield from (each for each in given if isinstance(each, str) and len(each.split()) > 1)


def _item(item: Any) -> str:  # noqa: ANN401 - whatever a model wrote
    if isinstance(item, Mapping):
        text = next((str(item[name]) for name in _TEXTS if item.get(name)), "")
        return f"[{_MARKS.get(str(item.get('status', '')).casefold(), ' ')}] {text}" if text else ""
    return item if isinstance(item, str) else ""


def _changed(text: str, args: Mapping[str, Any]) -> str:
    """Give a text as it is when a part of it was replaced."""
    old = next((args[name] for name in _OLD if isinstance(args.get(name), str)), "")
    new = next((args[name] for name in _NEW if isinstance(args.get(name), str)), "")
    return text.replace(old, new, 1) if old else text


# --- the recital ----------------------------------------------------------------------------------------------------------------------

_HEAD = "[The plan, as it was last written down:]\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reciting(Beside):
    """Stands for exchanges with what another stand-in says, and recites the newest plan in the tail.

    Attributes:
        known: The plans that were looked for, by exchange.
    """

    known: dict[int, tuple[View, Written | None]] = field(default_factory=dict, compare=False, repr=False)

    def own_room(self, ground: Ground) -> int:
        """Give what a recital has at most."""
        return max(min(_MOST, ground.room.low // _SHARE), 0)

    def room(self, ground: Ground, upto: int) -> int:
        """Give what both have at most; a recital only where there is a plan."""
        own = self.own_room(ground) if self._plan(ground, upto) is not None else 0
        return self.stand_in.room(ground, upto) + own

    def own(self, ground: Ground, layout: Layout) -> Iterator[Insert]:
        """Recite the plan, each time as it was known then."""
        for place, plan in self._recitals(ground, layout, len(ground.view.exchanges) - 1):
            text = self._fitting(ground, plan.text)
            if text:
                exchange = ground.view.exchanges[plan.index]
                yield Insert(
                    before=max(place, ground.gap(layout)),
                    text=text,
                    label=LABEL,
                    sources=sources_of([exchange]),
                    trust=min((block.trust for block in exchange.blocks()), default=Trust.OUTSIDE),
                    standing=True,
                )

    def crowded(self, ground: Ground, upto: int, layout: Layout) -> bool:
        """Tell whether a layout has outgrown the room, with the recitals that stand in it: where something was left out one of them has its room."""
        count = sum(1 for _ in self._recitals(ground, layout, upto))
        told = 1 if count and next(ground.missing(layout), None) is not None else 0
        return layout.size + (count - told) * self.own_room(ground) > ground.room.high

    def _recitals(self, ground: Ground, layout: Layout, upto: int) -> Iterator[tuple[int, Written]]:
        """Give the exchanges up to one before which the plan is recited, and the plan: the newest at the last edit, and every few behind it."""
        for place in range(max(layout.at, 0), upto + 1, _EVERY):
            plan = self._plan(ground, place)
            if plan is None or (self._shown(layout, plan.index) and place - plan.index < _EVERY // 2):
                continue
            yield place, plan

    def _plan(self, ground: Ground, upto: int) -> Written | None:
        found = self.known.get(upto)
        if found is None or found[0] is not ground.view:
            found = self.known[upto] = (ground.view, newest_plan(ground, upto))
        return found[1]

    def _shown(self, layout: Layout, index: int) -> bool:
        return index >= layout.cut or index in layout.kept

    def _fitting(self, ground: Ground, text: str) -> str:
        """Give the recital, of a long plan the beginning."""
        room, kept = self.own_room(ground), len(text)
        for _ in range(_TRIES):
            shown = _HEAD + (text if kept == len(text) else f"{text[:kept]}\n[...]")
            size = ground.inserted(shown, LABEL)
            if size <= room:
                return shown if kept else ""
            kept = min(kept * room // size, kept - 1)
            if kept <= 0:
                break
        return ""
