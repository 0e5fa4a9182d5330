"""Compiling: a view in, the request of one provider out.

A straight row of passes, each in a file of its own: `gather` spells the view out, `pairing` sees that every call is answered, `reasoning`
that thinking goes back only to the model that thought it, `media` that images and sounds are taken, `arrange` that the right ones speak; then the
provider's file writes the body. Pure: the same view, profile, call and bytes give the same request, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.messages import canonical_json, freeze
from palaver.messages.normalize import Change as Cleaned
from palaver.view import View
from palaver.wire import anthropic, gemini, openai_chat, openai_responses
from palaver.wire.answers import Asked, asked
from palaver.wire.arrange import arranged
from palaver.wire.draft import Body, Declared, Draft
from palaver.wire.gather import gather, instructions
from palaver.wire.media import Load, with_media
from palaver.wire.pairing import Names, paired
from palaver.wire.parts import CallPart, ResultPart, ServedPart, Speech, TextPart, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.provided import Provided, provided
from palaver.wire.reasoning import with_reasoning
from palaver.wire.request import Call, How, Notes, Request
from palaver.wire.schemas import in_dialect, not_strict
from palaver.wire.served import with_served
from palaver.wire.words import NO_TOOL, NO_TOOL_DESCRIPTION

__all__ = ["compile"]


class _Writer(NamedTuple):
    """How one provider's body is written, and the fields of it that no parameter may replace."""

    body: Callable[[Draft], Body]
    owned: frozenset[str]


_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {
        "openai-chat": _Writer(openai_chat.body, openai_chat.OWNED),
        "openai-responses": _Writer(openai_responses.body, openai_responses.OWNED),
        "anthropic": _Writer(anthropic.body, anthropic.OWNED),
        "gemini": _Writer(gemini.body, gemini.OWNED),
    }
)

_CHOICES = frozenset({"auto", "none", "required"})
_ROOM_PER_PART = 512
"""Bytes that the fields around a part take at most: names, types, ids, a mark, or the text in the place of a medium."""


def compile(view: View, profile: Profile, call: Call, media: Load) -> Request:  # noqa: A001 - the word for it
    """Compile a view into a request.

    Neither the view nor the log changes. Everything the provider does not get as the view shows it is in the report.

    Args:
        view: What the model is to see.
        profile: What the provider accepts: `palaver.wire.profile(name, model)`.
        call: The model and what is asked of it.
        media: Gives the bytes of a payload by its digest; called only for payloads that are not in memory.

    Raises:
        InvalidInput: A parameter of the call names what is compiled from the view.
    """
    writer = _WRITERS[profile.name]
    _refuse_owned(call, writer.owned)
    notes = Notes()
    names = Names(view.tools, profile, notes)
    theirs = provided(call, profile, frozenset(names.wire(tool.name) for tool in view.tools), notes)
    system = instructions(view, profile, notes)
    script = paired(gather(view, profile, notes), profile, names, notes)
    script = with_served(script, profile, asked=bool(theirs.tools), notes=notes)
    script = with_reasoning(script, profile, call.model, notes)
    tools = tuple(_declared(view, profile, call, names, notes)) or _one_for_the_history(script, profile, notes)
    answer, words = asked(call, profile, tools=bool(tools or theirs.tools), notes=notes)
    system = (*system, *words)
    room = max(profile.request_bytes - _size(system, tools, script, call, answer, theirs), 0)
    script = arranged(with_media(script, profile, media, room, notes), profile, call, notes)
    choice = _choice(view, tools, call, names, notes)
    draft = Draft(profile, call, system, tools, theirs, answer, choice, script, notes)
    return Request(
        profile=profile,
        model=call.model,
        body=_frozen(writer.body(draft), notes),
        report=notes.report(),
        tool_names=MappingProxyType(names.both()),
        history=script[-1].role == "assistant",
        view=view,
        call=call,
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


def _one_for_the_history(script: Sequence[Speech], profile: Profile, notes: Notes) -> tuple[Declared, ...]:
    """Give a tool that stands for those of the history, where a provider wants one and the view declares none."""
    if not (profile.tools.needed and any(isinstance(part, CallPart) for speech in script for part in speech.parts)):
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


# --- bytes ---------------------------------------------------------------------------------------------------------------


def _size(
    system: Sequence[TextPart],
    tools: Sequence[Declared],
    script: Sequence[Speech],
    call: Call,
    answer: Asked | None,
    theirs: Provided,
) -> int:
    """Give the bytes of a request without its media, rounded up."""
    parts = [part for speech in script for part in speech.parts]
    inner = [piece for part in parts if isinstance(part, ResultPart) for piece in part.body]
    texts = [piece.text for piece in (*system, *parts, *inner) if isinstance(piece, TextPart)]
    rest = [
        part.content if isinstance(part, ThinkingPart) else (part.raw, part.artefact)
        for part in parts
        if isinstance(part, ThinkingPart | CallPart)
    ]
    rest += [(part.kind, part.fields) for part in parts if isinstance(part, ServedPart)]
    declared = [(tool.name, tool.description, tool.schema) for tool in tools]
    wanted = [] if answer is None else [answer.name, answer.description, answer.schema]
    said = len(
        canonical_json(
            [texts, rest, declared, dict(call.parameters), call.then or "", wanted, theirs.tools, theirs.fields]
        )
    )
    return said + _ROOM_PER_PART * (len(parts) + len(inner) + len(system) + len(tools) + 2)


def _frozen(body: Body, notes: Notes) -> Mapping[str, Any]:
    """Give a body as a read-only value. What came past the edge (a parameter, a name) is made fit to be sent here."""
    found: list[Cleaned] = []
    frozen: Mapping[str, Any] = freeze(body, "body", found)
    if found:
        notes.add(None, "text", How.CHANGED, "it had what no request can carry, such as a lone surrogate")
    return frozen
