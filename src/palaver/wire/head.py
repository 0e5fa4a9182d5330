"""The head of a request: everything but the conversation, decided before a provider's module writes it.

Tools are declared in the provider's dialect. The structure of an answer goes into the provider's own field where it has one, otherwise into words.
Tools that the provider runs itself, such as web search and code execution, have one name for all providers. True asks for the provider's defaults; a mapping
has options in the provider's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.log.values import BY_CODE
from palaver.messages import canonical_json, thaw
from palaver.view import View
from palaver.wire.gather import instructions
from palaver.wire.pairing import Names, native
from palaver.wire.request import Call, Compiled
from palaver.wire.rules import no_sampling
from palaver.wire.schemas import in_dialect, narrowed, not_strict
from palaver.wire.script import NO_TOOL, NO_TOOL_DESCRIPTION, ChangeNotes, Declared, How, TextPart, answer_as
from palaver.wire.table import Body, Profile, Provided
from palaver.wire.updates import PlacedSettings


@dataclass(frozen=True, slots=True)
class Outline:
    """A request before it is written, without its conversation.

    Attributes:
        profile: The provider's rules.
        call: What is asked.
        system: The instructions.
        tools: The declared tools.
        provided: The provider's own tools.
        structure: The structure of the answer, or None.
        choice: `auto`, `none`, `required`, the name on the wire of the tool that must be called, or empty.
        notes: The changes so far.
        carried: The newest fields of an answer that the next request repeats, such as the container in which code waits.
        compact_at: From how many tokens the provider is asked to compact the conversation; 0 for never.
        more: The tools that are declared inside the conversation.
        withdrawn: The names on the wire of the tools that are declared and no longer offered.
    """

    profile: Profile
    call: Call
    system: Sequence[TextPart]
    tools: Sequence[Declared]
    provided: Provided
    structure: Structure | None
    choice: str
    notes: ChangeNotes
    carried: Mapping[str, Any]
    compact_at: int = 0
    more: Sequence[Declared] = ()
    withdrawn: frozenset[str] = frozenset()


def with_parameters(body: Body, call: Call) -> Body:
    """Add the call's own parameters. They win over what the call says in our words; objects are merged."""
    out = dict(body)
    for name, value in call.parameters.items():
        known = out.get(name)
        out[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
    return out


def without_cached(body: Body, profile: Profile, notes: ChangeNotes) -> Body:
    """Return a head without what the explicit cache has that it names, and note it.

    «CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config» (langchain-ai/langchain-google#978).
    """
    cache = profile.cache
    if not cache.named or body.get(cache.named) is None:
        return body
    for name in cache.moved:
        if name in body:
            notes.add(None, name, How.CHANGED, f"not sent: what is in the cache {body[cache.named]} counts")
    return {name: value for name, value in body.items() if name not in cache.moved}


def sampled(body: Body, fields: Sequence[str], profile: Profile, notes: ChangeNotes, effort: object = None) -> Body:
    """Return an object without these sampling parameters where the model takes none, or none with this effort."""
    why = no_sampling(profile, effort)
    refused = [name for name in fields if body.get(name) is not None] if why else ()
    for name in refused:
        notes.add(None, "parameter", How.DROPPED, f"{name}: {why}")
    return {name: value for name, value in body.items() if name not in refused}


def together(before: Mapping[str, Any], item: Mapping[str, Any], field: str) -> Body:
    """Put two neighbours of one role together: their role, and the lists of both."""
    return {**before, field: [*before[field], *item[field]]}


_CHOICES = frozenset({"auto", "none", "required"})


# --- tools ------------------------------------------------------------------------------------------------------------


def declared(
    given: Sequence[ToolSpec], profile: Profile, call: Call, names: Names, theirs: Provided, notes: ChangeNotes
) -> Iterator[Declared]:
    """Return the tools as they are declared: each once, in the provider's dialect, as many as it accepts."""
    tools = list({tool.name: tool for tool in reversed(given)}.values())[::-1]
    most = len(tools) if profile.tools.most is None else profile.tools.most
    for _ in range(len(given) - len(tools)):
        notes.add(None, "tool", How.DROPPED, "declared twice: the first declaration stands")
    for tool in tools[most:]:
        notes.add(None, "tool", How.DROPPED, f"{tool.name!r} is one more than the {most} that the provider takes")
    for tool in tools[:most]:
        schema, lost = in_dialect(tool.parameters, profile.dialect)
        for what in lost:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: without {what}")
        if not lost and schema != tool.parameters:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: said in the words of the provider, without loss")
        why = not_strict(schema) if call.strict_tools else ""
        if why:
            notes.add(None, "tool schema", How.CHANGED, f"{tool.name}: arguments are not held to it, because {why}")
        strict = call.strict_tools and not why
        yield _today(tool, Declared(names.wire(tool.name), tool.description, schema, strict), profile, theirs, notes)


def _today(tool: ToolSpec, declared: Declared, profile: Profile, theirs: Provided, notes: ChangeNotes) -> Declared:
    """Return a declaration with what the provider knows of its kind of tool; elsewhere the tool is a plain function."""
    rules, known = profile.tools, native(tool, profile.tools)
    deferred, coded = bool(tool.deferred), BY_CODE in (tool.callers or ())
    if deferred and rules.search not in theirs.names:
        notes.add(None, "tool", How.CHANGED, f"{tool.name}: declared at once, because this model cannot search for it")
    if coded and rules.code not in theirs.names:
        notes.add(None, "tool", How.CHANGED, f"{tool.name}: no code can call it here, so the model does")
    if (tool.format and not rules.text) or (tool.native and not known):
        notes.add(None, "tool", How.CHANGED, f"{tool.name}: declared as a function, because this API has no such tool")
    if tool.group and not rules.groups:
        notes.add(None, "tool", How.CHANGED, f"{tool.name}: declared without its group, because this model has none")
    return replace(
        declared,
        deferred=deferred and rules.search in theirs.names,
        callers=tool.callers or () if coded and rules.code in theirs.names else (),
        format=tool.format if rules.text else None,
        native=thaw({**profile.provided[known], **(tool.native or {})[known]}) if known else None,
        group=next(iter(tool.group.items())) if tool.group and rules.groups and not known else (),
    )


def outline(  # noqa: PLR0913, PLR0917 - what a head is written from
    known: PlacedSettings,
    view: View,
    profile: Profile,
    call: Call,
    names: Names,
    theirs: Provided,
    compiled: Sequence[Compiled],
    carried: Mapping[str, Any],
    notes: ChangeNotes,
) -> Outline:
    """Decide everything but the conversation."""
    system = instructions(known.head, profile, notes)
    tools = tuple(declared(known.head.tools, profile, call, names, theirs, notes))
    if profile.tools.needed and not tools and any(exchange.calls for exchange in compiled):
        notes.add(None, "tool", How.ADDED, "the history has calls, and the provider wants a tool declared for them")
        tools = (Declared(NO_TOOL, NO_TOOL_DESCRIPTION, {"type": "object", "properties": {}}),)
    last = next((exchange.script[-1].role for exchange in reversed(compiled) if exchange.script), "")
    prefill = profile.turns.assistant_last and last == "assistant" and not (call.then or "").strip()
    wanted, request = structure(call, profile, tools=bool(tools or theirs.tools), prefill=prefill, notes=notes)
    here, now = ({tool.name for tool in said} for said in (known.head.tools, view.tools))
    later = [tool for tool in known.offered if tool.name not in here]
    more = tuple(declared(later, profile, call, names, theirs, ChangeNotes()))
    withdrawn = frozenset(names.wire(tool.name) for tool in known.offered if tool.name not in now)
    choice = _choice(view, {tool.name for tool in (*tools, *more)}, call, names, notes)
    at = 0 if call.compact else _compact_at(view.compact_at, profile, notes)
    said = (*system, *request)
    return Outline(profile, call, said, tools, theirs, wanted, choice, notes, carried, at, more, withdrawn)


def _compact_at(wanted: int, profile: Profile, notes: ChangeNotes) -> int:
    """Return from how many tokens the provider is asked to compact the conversation."""
    if not wanted or not profile.compacts_from:
        if wanted:
            notes.add(
                None, "compaction", How.DROPPED, "the provider compacts no conversation of this model; palaver does"
            )
        return 0
    if wanted < profile.compacts_from:
        notes.add(
            None,
            "compaction",
            How.CHANGED,
            f"asked for at {profile.compacts_from:,} tokens, the fewest of the provider",
        )
    return max(wanted, profile.compacts_from)


def _choice(view: View, tools: AbstractSet[str], call: Call, names: Names, notes: ChangeNotes) -> str:
    """Return the choice between tools as it is sent: `none` where the tools of the history are no longer declared, nothing where there are none."""
    wanted = call.tool_choice
    if tools and not view.tools:
        return "none"
    if not wanted:
        return ""
    known = {tool.name for tool in view.tools}
    choice = wanted if wanted in _CHOICES and tools else names.wire(wanted) if wanted in known else ""
    if choice not in _CHOICES | tools:
        notes.add(None, "parameter", How.DROPPED, f"tool_choice {wanted!r}: no such tool is declared")
        return ""
    return choice


# --- tools of the provider's own --------------------------------------------------------------------------------------

_NAMES: Mapping[str, str] = {"code_interpreter": "code_execution", "url_context": "web_fetch"}
"""Other words for the same."""


def provided(
    call: Call, profile: Profile, tools: Sequence[ToolSpec], declared: frozenset[str], notes: ChangeNotes
) -> Provided:
    """Return the provider's own tools that a call asks for and that its tools need, as they are sent.

    Args:
        call: The call.
        profile: The provider's rules.
        tools: The tools of the view.
        declared: The names of the declared tools.
        notes: The changes so far.

    Raises:
        InvalidInput: A value is neither true, false, None nor a mapping of options.
    """
    listed: list[Mapping[str, Any]] = []
    fields: dict[str, Any] = {}
    names: set[str] = set()
    needed = {
        profile.tools.search: any(tool.deferred for tool in tools),
        profile.tools.code: any(BY_CODE in (tool.callers or ()) for tool in tools),
    }
    asked = {name: True for name, needs in needed.items() if name and needs}
    for name, value in {**asked, **call.provider_tools}.items():
        if value is None or value is False:
            continue
        if value is not True and not isinstance(value, Mapping):
            raise InvalidInput(f"The provider's tool {name!r} is {value!r}.", hint="Give true or a mapping of options.")
        options = {} if value is True else dict(value)
        known = profile.provided.get(_NAMES.get(name, name))
        why = _refused(known, name, profile, declared)
        if known is None or why:
            notes.add(None, "provider tool", How.DROPPED, f"{name}: {why}")
        else:
            sent = profile.api.provided(known, options)
            if sent.lost:
                notes.add(None, "provider tool", How.DROPPED, f"{name}: {sent.lost}")
            listed += sent.tools
            fields |= sent.fields
            names.add(_NAMES.get(name, name))
    return Provided(tuple(listed), fields, frozenset(names))


def _refused(known: Mapping[str, Any] | None, name: str, profile: Profile, declared: frozenset[str]) -> str:
    """Return why a tool cannot be sent, or an empty text."""
    if known is None:
        close = get_close_matches(name, {*profile.provided, *_NAMES}, 1)
        return f"{profile.name} has no such tool; it has {', '.join(close or profile.provided)}"
    if not profile.tools.served:
        return "this model has no such tool"
    if declared and not profile.tools.mixed:
        return "this model takes it only without tools of your own"
    return "a tool of your own has its name" if known.get("name") in declared else ""


# --- the structure of the answer --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Structure:
    """A format as it is sent.

    Attributes:
        name: The name, as the provider accepts it.
        description: What it is for; may be empty.
        schema: The schema, in the provider's dialect.
        strict: Whether the provider is to hold the model to it.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool


def structure(
    call: Call, profile: Profile, *, tools: bool, prefill: bool, notes: ChangeNotes
) -> tuple[Structure | None, tuple[TextPart, ...]]:
    """Return what goes into the provider's own field, and what the instructions ask: one of the two at most.

    Args:
        call: The call.
        profile: The provider's rules.
        tools: Whether any tools are declared.
        prefill: Whether the answer continues the assistant's words.
        notes: The changes so far.

    Raises:
        InvalidInput: A parameter of the call asks for another structure in the provider's words.
    """
    wanted = call.format
    if wanted is None:
        return None, ()
    _refuse_said_twice(call, profile)
    rules, narrow = profile.answers, narrowed(wanted.schema, profile.dialect)
    reasons = {
        "this model takes no schema": not rules.native,
        "this model takes none while tools are declared": tools and not rules.beside_tools,
        "an answer with a schema cannot go on from the assistant's words": prefill and not rules.after_words,
        narrow.obstacle: not rules.loose,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        notes.add(None, "answer schema", How.CHANGED, f"the instructions ask for it in words: {why}")
        return None, (TextPart(answer_as(canonical_json(wanted.schema).decode())),)
    if rules.loose and (narrow.obstacle or not wanted.strict):
        if wanted.strict:
            notes.add(None, "answer schema", How.CHANGED, f"answers are not held to it, because {narrow.obstacle}")
        return Structure(wanted.name, wanted.description, thaw(wanted.schema), strict=False), ()
    for place in narrow.told:
        notes.add(None, "answer schema", How.CHANGED, f"without {place}: the description says it")
    for place in narrow.required:
        notes.add(None, "answer schema", How.CHANGED, f"{place} is asked for, and could be left out")
    return Structure(wanted.name, wanted.description, narrow.schema, strict=True), ()


def _refuse_said_twice(call: Call, profile: Profile) -> None:
    for path in profile.answers.fields:
        value: Any = call.parameters
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            raise InvalidInput(
                f"The call has a format, and its parameter {path} asks for another.", hint="Give one of them."
            )
