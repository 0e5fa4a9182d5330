"""Instructions and tools that change while a conversation runs, and where each change is written.

Where the model takes it, a change is appended to the conversation, and the head of the request stays as it was when the conversation, or what is left of it,
began: what the provider cached stays usable, and thinking stays bound to what precedes it. Elsewhere the head has what is in force now
(platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages; developers.openai.com/api/docs/guides/keep-prefix-unchanged).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from palaver.log import Handle, ToolSpec
from palaver.messages import Role
from palaver.view import Block, Exchange, View
from palaver.wire.gather import instructions
from palaver.wire.pairing import Names
from palaver.wire.script import (
    NO_INSTRUCTIONS,
    REPLACED,
    ChangeNotes,
    Declared,
    How,
    Part,
    Speech,
    TextPart,
    ToolChangePart,
    amended,
)
from palaver.wire.table import Profile

_CUTS = frozenset({"record", "summary"})
"""The derived texts that stand for what was cut."""


class _Stage(NamedTuple):
    """What is in force from an entry on.

    Attributes:
        since: The entry; None for the beginning.
        at: How many exchanges come before it.
        system: The instructions.
        tools: The tools.
    """

    since: Handle | None
    at: int
    system: tuple[Block, ...]
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class PlacedSettings:
    """Where the instructions and tools of a view are written.

    Attributes:
        head: The view with what the head of the request says.
        stages: What is in force, in order: first what the head says.
        system: How many stages the head's instructions are ahead of the first.
        tools: The same for its tools.
        anew: What changes at the top of this request: the entry, what it is about, and how many exchanges come before it.
    """

    head: View
    stages: Sequence[_Stage]
    system: int = 0
    tools: int = 0
    anew: tuple[tuple[Handle, str, int], ...] = ()

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """All tools that the request has, those that are offered no longer included; the newest of each name."""
        tools = (tool for stage in self.stages[self.tools :] for tool in stage.tools)
        return tuple({tool.name: tool for tool in tools}.values())


def settings(view: View, exchanges: Sequence[Exchange], profile: Profile) -> PlacedSettings:
    """Return where the instructions and tools of a view are written.

    Args:
        view: The view.
        exchanges: Its exchanges as they are sent.
        profile: What the provider accepts.
    """
    stages = list(_stages(view, exchanges))
    last = len(stages) - 1
    system = 0 if profile.turns.updates else last
    tools = _top(stages, profile) if profile.tools.updates else last
    head = replace(view, system=stages[system].system, tools=stages[tools].tools) if last else view
    anew = tuple(
        (after.since, what, after.at)
        for what, top in (("instructions", system), ("tools", tools))
        for before, after in pairwise(stages[: top + 1])
        if after.since is not None and _differ(before, after, what, profile) and not _answered(exchanges[after.at :])
    )
    return PlacedSettings(head, stages, system, tools, anew)


def _stages(view: View, exchanges: Sequence[Exchange]) -> Iterator[_Stage]:
    """Yield what is in force, from the beginning on. A change before the first answer that is left is part of the beginning."""
    if not view.earlier:
        yield _Stage(None, 0, view.system, view.tools)
        return
    ranks = {span.dialog: rank for rank, span in enumerate(view.shared)}

    def rank(place: Handle) -> tuple[int, int]:
        return ranks.get(place.dialog, len(view.shared)), place.seq

    begun = list(accumulate((_BEFORE if each.first is None else rank(each.first) for each in exchanges), max))
    cut = max((at + 1 for at, each in enumerate(exchanges) if each.derived in _CUTS and each.first is None), default=0)
    cut = max(cut, next((at for at, each in enumerate(exchanges) if _answers(each)), len(exchanges)))
    since, at = None, 0
    for before in view.earlier:
        following = bisect_left(begun, rank(before.until))
        if following > cut:
            yield _Stage(since, at, before.system, before.tools)
            since, at = before.until, max(at, following)
    yield _Stage(since, at, view.system, view.tools)


_BEFORE = (-1, -1)
"""The rank of a derived text: it has no place of its own."""


def _top(stages: Sequence[_Stage], profile: Profile) -> int:
    """Return the stage whose tools the head declares: the first one after which the model takes all changes inside."""
    return next(
        (at for at in range(len(stages)) if stages[at].tools and _appends(stages[at:], profile)), len(stages) - 1
    )


def _appends(stages: Sequence[_Stage], profile: Profile) -> bool:
    """Return whether the model takes the changes of tools inside: of plain ones, and as many as it takes at all."""
    declared = {tool.name: _said(tool) for tool in stages[0].tools}
    for tool in (tool for stage in stages[1:] for tool in stage.tools):
        known = declared.get(tool.name)
        if known == _said(tool):
            continue
        if (
            tool.deferred
            or tool.callers
            or tool.native
            or tool.group
            or (known is not None and profile.tools.updates == "added")
        ):
            return False
        declared[tool.name] = _said(tool)
    return profile.tools.most is None or len(declared) <= profile.tools.most


def _said(tool: ToolSpec) -> object:
    return tool.description, tool.parameters, tool.deferred, tool.callers, tool.format, tool.native, tool.group


def _differ(before: _Stage, after: _Stage, what: str, profile: Profile) -> bool:
    if what == "instructions":
        return [block.content for block in before.system] != [block.content for block in after.system]
    old, new = (_read_first(stage.tools, profile) for stage in (before, after))
    return old != new


def _read_first(tools: Sequence[ToolSpec], profile: Profile) -> Mapping[str, object]:
    """Return what the model reads of tools before the conversation: of those that it searches only that there are any."""
    later = bool(profile.tools.search and profile.api.blocks.deferred)
    return {
        "" if later and tool.deferred else tool.name: True if later and tool.deferred else _said(tool) for tool in tools
    }


def _answered(exchanges: Iterable[Exchange]) -> bool:
    return any(map(_answers, exchanges))


def _answers(exchange: Exchange) -> bool:
    return exchange.role is Role.ASSISTANT and not exchange.derived


def inside(view: View, profile: Profile) -> tuple[View, tuple[TextPart, ...], tuple[ToolSpec, ...]]:
    """Return the view with what the head of its request says, and the texts and tools that are written between its exchanges."""
    known = settings(view, view.exchanges, profile)
    later = range(1, len(known.stages))
    texts = tuple(text for index in later for text in _texts(known, index, index, profile))
    return known.head, texts, tuple(tool for index in later for tool in _added(known, index, index, profile))


# --- written inside ------------------------------------------------------------------------------------------------------


def updates(
    known: PlacedSettings,
    roles: Sequence[tuple[str, str]],
    names: Names,
    declare: Callable[[Sequence[ToolSpec]], Iterable[Declared]],
    profile: Profile,
    notes: ChangeNotes,
) -> Mapping[int, Speech]:
    """Return the changes that are written inside the conversation, each by the number of exchanges before it.

    Args:
        known: The settings of the view.
        roles: Who begins and who ends each exchange as it is sent; empty texts where nothing of it is sent.
        names: The names of tools.
        declare: Declares tools in the provider's dialect.
        profile: What the provider accepts.
        notes: The changes so far.
    """
    made: dict[int, Speech] = {}
    numbered = [
        (index, _place(roles, stage.at) if profile.turns.alternate else stage.at)
        for index, stage in enumerate(known.stages)
        if index
    ]
    for place, group in groupby(numbered, key=lambda pair: pair[1]):
        numbers = [index for index, _ in group]
        first, last = numbers[0], numbers[-1]
        since = known.stages[last].since
        texts = _texts(known, first, last, profile)
        tools = tuple(_tools(known, first, last, profile, names, declare))
        for what, parts in (("instructions", texts), ("tools", tools)):
            if parts:
                notes.add(since, what, How.CHANGED, _WAITS if place is None else _INSIDE)
        if place is not None and (texts or tools):
            made[place] = Speech("system", (*texts, *tools))
    return made


_INSIDE = "written inside the conversation: what is cached before it, and the thinking, stay as they are"
_WAITS = "not sent yet: the model takes it after the next words of the user"


def _place(roles: Sequence[tuple[str, str]], at: int) -> int | None:
    """Return the first place from one on that is after words of the user or results, and before the assistant's words or at the end."""
    for place in range(at, len(roles) + 1):
        before = next((ends for _, ends in reversed(roles[:place]) if ends), "")
        after = next((begins for begins, _ in roles[place:] if begins), "assistant")
        if before in {"user", "tool"} and after == "assistant":
            return place
    return None


def _texts(known: PlacedSettings, first: int, last: int, profile: Profile) -> tuple[TextPart, ...]:
    """Return what has changed in the instructions, from the stage before `first` to the stage `last`."""
    if last <= known.system:
        return ()
    stages = known.stages[max(first - 1, known.system)], known.stages[last]
    old, new = (instructions(replace(known.head, system=stage.system), profile, ChangeNotes()) for stage in stages)
    before, after = [part.text for part in old], [part.text for part in new]
    if before == after:
        return ()
    if not new:
        return (TextPart(NO_INSTRUCTIONS),)
    same = _alike(before, after)
    ends = _alike(before[same:][::-1], after[same:][::-1])
    gone, come = before[same : len(old) - ends], new[same : len(new) - ends]
    if not gone:
        return come
    named = amended(gone, before, replaced=bool(come)) if len(gone) < len(old) else ""
    return (TextPart(named), *come) if named else (TextPart(REPLACED), *new)


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return with how many equal texts two lists begin."""
    return next(
        (at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )


def _tools(
    known: PlacedSettings,
    first: int,
    last: int,
    profile: Profile,
    names: Names,
    declare: Callable[[Sequence[ToolSpec]], Iterable[Declared]],
) -> Iterator[Part]:
    """Yield the tools that are withdrawn, and those that are added or declared anew."""
    if last > known.tools and profile.tools.updates == "any":
        new = {tool.name for tool in known.stages[last].tools}
        old = known.stages[max(first - 1, known.tools)].tools
        yield from (ToolChangePart(names.wire(tool.name)) for tool in old if tool.name not in new)
    for each in declare(_added(known, first, last, profile)):
        yield ToolChangePart(each.name, each)


def _added(known: PlacedSettings, first: int, last: int, profile: Profile) -> list[ToolSpec]:
    """Return the tools that are added or declared anew. Where the choice of tools leaves out what is withdrawn, what was added once stays."""
    if last <= known.tools:
        return []
    first = max(first, known.tools + 1)
    start = first - 1 if profile.tools.updates == "any" else known.tools
    seen = {tool.name: _said(tool) for stage in known.stages[start:first] for tool in stage.tools}
    return [tool for tool in known.stages[last].tools if seen.get(tool.name) != _said(tool)]
