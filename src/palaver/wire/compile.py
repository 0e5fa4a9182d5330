"""Compiling: a view in, the request of one provider out.

A straight row of passes, each in a file of its own: `gather` spells the view out, `pairing` sees that every call is answered, `reasoning`
that thinking goes back only to the model that thought it, `media` that images and sounds are taken, `arrange` that the right ones speak; then the
provider's file writes the body. Pure: the same view, profile, call and bytes give the same request, on any machine; and so does a compiler that
is gone on with (`Compiled`), which does with what is new only what a fresh one does with all (`rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.messages import FrozenDict, canonical_json, freeze
from palaver.messages.frozen import frozen_dict, frozen_list
from palaver.messages.normalize import Change as Cleaned
from palaver.view import View
from palaver.wire import anthropic, gemini, openai_chat, openai_responses
from palaver.wire.answers import Asked, asked
from palaver.wire.arrange import added, are_one, together
from palaver.wire.compiled import Compiled
from palaver.wire.draft import Body, Declared, Draft
from palaver.wire.gather import instructions
from palaver.wire.held import field_of
from palaver.wire.media import Load, with_media
from palaver.wire.pairing import Names
from palaver.wire.parts import TextPart
from palaver.wire.profiles import Profile
from palaver.wire.provided import Provided, provided
from palaver.wire.request import Call, How, Notes, Request
from palaver.wire.rounds import PASSES, Round, Rounds, Weight, Words, Write
from palaver.wire.schemas import in_dialect, not_strict
from palaver.wire.words import NO_TOOL, NO_TOOL_DESCRIPTION

__all__ = ["compile"]


class _Writer(NamedTuple):
    """How one provider's body is written: from a draft, each speech of it, and the fields of it that no parameter may replace."""

    body: Callable[[Draft], Body]
    speech: Write
    owned: frozenset[str]


_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {
        "openai-chat": _Writer(openai_chat.body, openai_chat.written, openai_chat.OWNED),
        "openai-responses": _Writer(openai_responses.body, openai_responses.written, openai_responses.OWNED),
        "anthropic": _Writer(anthropic.body, anthropic.written, anthropic.OWNED),
        "gemini": _Writer(gemini.body, gemini.written, gemini.OWNED),
    }
)

_CHOICES = frozenset({"auto", "none", "required"})
_ROOM_PER_PART = 512
"""Bytes that the fields around a part take at most: names, types, ids, a mark, or the text in the place of a medium."""


def compile(  # noqa: A001 - the word for it
    view: View, profile: Profile, call: Call, media: Load, compiled: Compiled | None = None
) -> Request:
    """Compile a view into a request.

    Neither the view nor the log changes. Everything the provider does not get as the view shows it is in the report.

    Args:
        view: What the model is to see.
        profile: What the provider accepts: `palaver.wire.profile(name, model)`.
        call: The model and what is asked of it.
        media: Gives the bytes of a payload by its digest; called only for payloads that are not in memory.
        compiled: What was compiled before, to be gone on with; it takes the place of what this request has. The request is the same with it.

    Raises:
        InvalidInput: A parameter of the call names what is compiled from the view.
    """
    writer = _WRITERS[profile.name]
    _refuse_owned(call, writer.owned)
    notes = Notes()
    names = Names(view.tools, profile, notes)
    theirs = provided(call, profile, frozenset(names.wire(tool.name) for tool in view.tools), notes)
    system = instructions(view, profile, notes)
    shelf = (compiled or Compiled()).shelf(profile, call.model, view.model, asked=bool(theirs.tools))
    rounds = Rounds(profile, call.model, bool(theirs.tools), names, writer.speech, shelf.rounds)
    made = shelf.rounds = rounds.of(view)
    shelf.made += rounds.made
    for number in range(PASSES):
        notes.extend(change for each in made.values() for change in each.changes[number])
    tools = tuple(_declared(view, profile, call, names, notes)) or _one_for_the_history(made.values(), profile, notes)
    answer, request = asked(call, profile, tools=bool(tools or theirs.tools), notes=notes)
    system = (*system, *request)
    room = partial(_room, system, tools, made.values(), (call, answer, theirs), profile)
    said = _said(_shown(made.values(), rounds, media, room, notes), rounds, call, notes)
    choice = _choice(view, tools, call, names, notes)
    notes.extend(change for one in said for change in one.changes)
    items = [item for one in said for item in one.items]
    draft = Draft(profile, call, system, tools, theirs, answer, choice, [one.speech for one in said], items, notes)
    body = _frozen(writer.body(draft), field_of(profile), notes, cleaned=any(one.cleaned for one in said))
    return Request(
        profile=profile,
        model=call.model,
        body=body,
        report=notes.report(),
        tool_names=MappingProxyType(names.both()),
        history=said[-1].speech.role == "assistant",
        view=view,
        call=call,
        written=_written(body[field_of(profile)], items, [data for one in said for data in one.data]),
        checked=shelf.checked,
    )


def _refuse_owned(call: Call, owned: frozenset[str]) -> None:
    taken = sorted(owned & set(call.parameters))
    if taken:
        raise InvalidInput(
            f"The parameter {taken[0]!r} is compiled from the view and cannot be given beside it.",
            hint=f"Change the view or the call; parameters may not be any of: {', '.join(sorted(owned))}.",
        )


# --- tools ---------------------------------------------------------------------------------------------------------------


def _declared(view: View, profile: Profile, call: Call, names: Names, notes: Notes) -> Iterator[Declared]:
    """Give the tools as they are declared: each once, in the provider's dialect, as many as it takes."""
    tools = list({tool.name: tool for tool in reversed(view.tools)}.values())[::-1]
    most = len(tools) if profile.tools.most is None else profile.tools.most
    for _ in range(len(view.tools) - len(tools)):
        notes.add(None, "tool", How.DROPPED, "declared twice: the first declaration stands")
    for tool in tools[most:]:
        notes.add(None, "tool", How.DROPPED, f"{tool.name!r} is one more than the {most} that the provider takes")
    for tool in tools[:most]:
        schema, lost = in_dialect(tool.parameters, profile.tools.schema)
        for what in lost:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: without {what}")
        if not lost and schema != tool.parameters:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: said in the words of the provider, without loss")
        why = not_strict(schema) if call.strict_tools else ""
        if why:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: arguments are not held to it, because {why}")
        yield Declared(names.wire(tool.name), tool.description, schema, strict=call.strict_tools and not why)


def _one_for_the_history(rounds: Iterable[Round], profile: Profile, notes: Notes) -> tuple[Declared, ...]:
    """Give a tool that stands for those of the history, where a provider wants one and the view declares none."""
    if not (profile.tools.needed and any(each.names for each in rounds)):
        return ()
    notes.add(None, "tool", How.ADDED, "the history has calls, and the provider wants a tool declared for them")
    return (Declared(NO_TOOL, NO_TOOL_DESCRIPTION, {"type": "object", "properties": {}}),)


def _choice(view: View, tools: Sequence[Declared], call: Call, names: Names, notes: Notes) -> str:
    """Give the choice between tools as it is sent: none where the tools of the history are gone, and nothing where there are none."""
    wanted = call.tool_choice
    if tools and not view.tools:
        return "none"
    if not wanted:
        return ""
    known = {tool.name for tool in view.tools}
    choice = wanted if wanted in _CHOICES and tools else names.wire(wanted) if wanted in known else ""
    if choice not in _CHOICES | {tool.name for tool in tools}:
        notes.add(None, "parameter", How.DROPPED, f"tool_choice {wanted!r}: no such tool is declared")
        return ""
    return choice


# --- what is said --------------------------------------------------------------------------------------------------------


def _shown(
    made: Collection[Round], rounds: Rounds, load: Load, room: Callable[[], int], notes: Notes
) -> Iterator[Sequence[Words]]:
    """Give what is said in each round, with the media that the whole request can have."""
    having = [each.script for each in made if each.media]
    shown = iter(with_media(having, rounds.profile, load, room(), notes) if having else ())
    return (rounds.written(next(shown)) if each.media else each.said for each in made)


def _said(shown: Iterable[Sequence[Words]], rounds: Rounds, call: Call, notes: Notes) -> list[Words]:
    """Put the rounds together, with what must stand before and behind them; neighbours that are one speech are written as one."""
    profile = rounds.profile
    said: list[Words] = []
    for each in shown:
        _follow(said, each, rounds)
    before, behind = added([one.speech for one in said[:1]], profile, call, notes)
    opening = list(rounds.written(before))
    _follow(opening, said, rounds)
    _follow(opening, rounds.written(behind), rounds)
    return opening


def _follow(said: list[Words], then: Sequence[Words], rounds: Rounds) -> None:
    """Put words behind others."""
    if said and then and are_one(said[-1].speech, then[0].speech, rounds.profile):
        said[-1:] = rounds.written([together(said[-1].speech, then[0].speech)])
        then = then[1:]
    said.extend(then)


# --- bytes ---------------------------------------------------------------------------------------------------------------


def _room(
    system: Sequence[TextPart],
    tools: Sequence[Declared],
    rounds: Iterable[Round],
    beside: tuple[Call, Asked | None, Provided],
    profile: Profile,
) -> int:
    """Give the bytes that the media of a request may take: what the rest of it, rounded up, leaves."""
    call, answer, theirs = beside
    declared = [(tool.name, tool.description, tool.schema) for tool in tools]
    wanted = [] if answer is None else [answer.name, answer.description, answer.schema]
    head = canonical_json([declared, dict(call.parameters), call.then or "", wanted, theirs.tools, theirs.fields])
    weights = [Weight.of(system), *(each.weight for each in rounds)]
    texts, others = sum(each.texts for each in weights), sum(each.others for each in weights)
    parts = sum(each.parts for each in weights)
    said = sum(each.text_bytes + each.other_bytes for each in weights)
    brackets = len("[],[],") + max(texts - 1, 0) + max(others - 1, 0)
    around = _ROOM_PER_PART * (parts + len(tools) + 2)
    return max(profile.request_bytes - (len(head) + said + brackets + around), 0)


def _written(said: Sequence[object], items: Sequence[object], data: Sequence[bytes]) -> tuple[bytes, ...]:
    """Give the canonical bytes of what is said; of what stands before it, and of what was marked since, they are made."""
    before = len(said) - len(items)
    known = zip(said[before:], items, data, strict=True)
    return (
        *map(canonical_json, said[:before]),
        *(written if one is item else canonical_json(one) for one, item, written in known),
    )


def _frozen(body: Body, field: str, notes: Notes, *, cleaned: bool) -> Mapping[str, Any]:
    """Give a body as a read-only value. What came past the edge (a parameter, a name) is made fit to be sent here."""
    found: list[Cleaned] = []
    head = freeze({**body, field: []}, "body", found)
    items = [item if type(item) is FrozenDict else freeze({"": [item]}, "body", found)[""][0] for item in body[field]]
    if found or cleaned:
        notes.add(None, "text", How.CHANGED, "it had what no request can carry, such as a lone surrogate")
    return frozen_dict({**head, field: frozen_list(items)})
