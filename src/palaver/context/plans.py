"""The plan that an agent wrote down: by a tool for plans, or as a file such as `todo.md`; and its recital where the view is new anyway.

Source: Manus, "Context Engineering for AI Agents" (manus.im/blog): the agent rewrites todo.md again and again, so that what is to be done stands at
the end of the context and not in its lost middle. Ours is recited with every edit, right before what was the newest exchange then, and again where
the view has grown since without a word of the plan. The cache behind an edit is lost anyway, what is recited later comes with what is new, and all of
it stays where it is until the next edit: so requests go on from each other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.context.beside import Beside
from palaver.context.ground import Ground, Layout
from palaver.context.record.carried import sources_of
from palaver.context.work import Act
from palaver.messages import TextContent, Trust
from palaver.view import Insert, View

__all__ = ["LABEL", "PLANS", "Plans", "Reciting", "Written", "plan_acts"]

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
        of: All exchanges that it was made of.
    """

    index: int
    text: str
    of: tuple[int, ...]


def plan_acts(ground: Ground, upto: int) -> Iterator[Act]:
    """Give the acts that wrote a plan down or changed it, up to an exchange: the newest first, back to the one that wrote all of it."""
    return _back_to_whole(act for act in reversed(ground.acts.upto(upto)) if _plans(act))


def _back_to_whole(newest_first: Iterable[Act]) -> Iterator[Act]:
    for act in newest_first:
        yield act
        if _whole(act) is not None:
            return


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a view, looked for once.

    Attributes:
        view: The view.
        acts: The acts that wrote a plan down or changed it, the oldest first.
        recited: The recitals that commits wrote down, the oldest first.
    """

    view: View
    acts: tuple[Act, ...]
    recited: tuple[Written, ...]

    @classmethod
    def of(cls, ground: Ground) -> Plans:
        """Look for them."""
        recited = []
        for index, exchange in enumerate(ground.view.exchanges):
            block = exchange.turns[0].blocks[0]
            if block.derived == LABEL and isinstance(block.content, TextContent):
                recited.append(Written(index, block.content.content.removeprefix(_HEAD), (index,)))
        return cls(ground.view, tuple(filter(_plans, ground.acts.all)), tuple(recited))

    def newest(self, upto: int) -> Written | None:
        """Give the plan as it stood at an exchange: what was written last, with what was changed since; else what was recited last. None for none."""
        count = bisect_right(self.acts, upto, key=lambda act: act.index)
        acts = list(_back_to_whole(reversed(self.acts[:count])))
        place = bisect_right(self.recited, upto, key=lambda each: each.index)
        recited = (
            self.recited[place - 1] if place and (not acts or self.recited[place - 1].index >= acts[-1].index) else None
        )
        text = _whole(acts[-1]) if acts else None
        if text is None and recited is None:
            return None
        if not acts or (recited is not None and recited.index > acts[0].index):
            return recited  # it was made of all that was written before
        text = text if text is not None else recited.text if recited is not None else ""
        for act in reversed(acts):
            text = _changed(text, act.content.args) if _whole(act) is None else text
        before = recited.of if recited is not None and _whole(acts[-1]) is None else ()
        of = (*before, *dict.fromkeys(act.index for act in reversed(acts)))
        return Written(acts[0].index, text, of) if text.strip() else None


def _plans(act: Act) -> bool:
    """Tell whether an act wrote a plan down or changed it; a call that only looks at it, or failed, does neither."""
    return not act.failed and (
        any(map(_FILES.search, act.deed.wrote)) or (act.tool.casefold() in PLANS and _whole(act) is not None)
    )


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
        plans: The plans of the view that was looked at last.
        known: What the plan was at exchanges of that view.
    """

    plans: list[Plans] = field(default_factory=list, compare=False, repr=False)
    known: dict[int, Written | None] = field(default_factory=dict, compare=False, repr=False)

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
                exchanges = [ground.view.exchanges[index] for index in plan.of]
                yield Insert(
                    before=max(place, ground.gap(layout)),
                    text=text,
                    label=LABEL,
                    sources=sources_of(exchanges),
                    trust=min((block.trust for each in exchanges for block in each.blocks()), default=Trust.OUTSIDE),
                    standing=True,
                )

    def crowded(self, ground: Ground, upto: int, layout: Layout) -> bool:
        """Tell whether a layout has outgrown the room, with the recitals that stand in it: where something was left out one of them has its room."""
        count = sum(1 for _ in self._recitals(ground, layout, upto))
        told = 1 if count and next(ground.missing(layout), None) is not None else 0
        return layout.size + (count - told) * self.own_room(ground) > ground.room.high

    def _recitals(self, ground: Ground, layout: Layout, upto: int) -> Iterator[tuple[int, Written]]:
        """Give the exchanges up to one before which the plan is recited, and the plan: the newest at the last edit, and every few behind it.

        What a commit or a composed view settled has its recitals already.
        """
        for place in range(max(layout.at, ground.view.settled, 0), upto + 1, _EVERY):
            plan = self._plan(ground, place)
            if plan is None or (self._shown(layout, plan.index) and place - plan.index < _EVERY // 2):
                continue
            yield place, plan

    def _plan(self, ground: Ground, upto: int) -> Written | None:
        if not self.plans or self.plans[0].view is not ground.view:
            self.plans[:] = [Plans.of(ground)]
            self.known.clear()
        if upto not in self.known:
            self.known[upto] = self.plans[0].newest(upto)
        return self.known[upto]

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
