"""What goes into compiling and what comes out: the call, the request, and the memo of compiled exchanges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from palaver.errors import InvalidInput, InvalidRequest
from palaver.log import BoundTo, Handle
from palaver.messages import Message, canonical_json, clean_text, freeze, thaw
from palaver.messages.frozen import EMPTY
from palaver.notebook import MOST, html_table
from palaver.plurals import counted
from palaver.prompts import Format
from palaver.view import Exchange, Omission, Reason, View
from palaver.wire.binding import COMPACTION, ChainLink, bound_after, digest, thoughts, without
from palaver.wire.place import Breach
from palaver.wire.rules import validate
from palaver.wire.script import Change, Report, ResultPart, Speech, ThinkingPart
from palaver.wire.table import Profile

COMPILER = 10
"""The version of the compiler. It is raised whenever the same view and call compile to other bytes, so that a recorded call can say why it
is not reproduced."""


TimeToLive: TypeAlias = Literal["5m", "1h"]

_KINDS: Sequence[tuple[str, tuple[type, ...], str]] = (
    ("model", (str,), "the model's name, such as 'gpt-5'"),
    ("temperature", (int, float, type(None)), "a number, or None"),
    (
        "tool_choice",
        (str,),
        "`auto`, `none`, `required` or a tool's name; put the provider's own form into parameters=",
    ),
    ("provider_tools", (Mapping,), 'a mapping, such as {"web_search": True}'),
    ("parameters", (Mapping,), 'a mapping, such as {"top_p": 0.9}'),
)
"""What a call's fields must be, where another type would reach the provider or fail far from here."""

_READ = ("tools", "system", "messages")
"""The parts of a request in the order in which a provider reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The options of a request, besides the conversation.

    Attributes:
        model: The model, in the provider's spelling.
        max_tokens: The most tokens of the answer; None for the provider's own limit. Anthropic has none and gets
            `palaver.providers.anthropic.write.MAX_TOKENS`.
        temperature: The sampling temperature; None for the provider's own.
        stream: Whether the answer arrives in pieces.
        tool_choice: `auto`, `none`, `required`, or the name of the tool that must be called; empty for the provider's own.
        auto_choice: Whether a tool that would be forced is left to the model, with a note, where the model refuses to be forced.
        strict_tools: Whether to ask that arguments follow the tools' schemas, where provider and schema permit it.
        format: The structure of the answer, or None. It goes into the provider's own field, in its dialect; where a model accepts no schema,
            the instructions ask for it in words.
        provider_tools: Tools that the provider runs itself, by name, such as `web_search`: true, or their options in the provider's words.
            See :mod:`palaver.wire.head`.
        parameters: Further fields of the body, in the provider's words. They may not name what is compiled from the view.
        cache: Whether cache marks are placed, for providers that have them.
        cache_at: The blocks after which a prefix is cached, instead of the user's newest messages.
        cache_ttl: How long a marked prefix stays cached: one time, or one for `tools`, `system` and `messages` each (default: 5 minutes). A longer
            time also holds for what the provider reads before it.
        then: The user's next words: a text put after the view, or None.
        compact: Whether the provider is asked for a compaction of the conversation, which ends between two turns, in place of an answer.
        fallback: What another model, which refused, wants said with the same question to this one (its answer's `next_request`); empty where another
            model is asked if this one refuses; None where none is.
    """

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = False
    tool_choice: str = ""
    auto_choice: bool = False
    strict_tools: bool = False
    format: Format | None = None
    provider_tools: Mapping[str, Any] = EMPTY
    parameters: Mapping[str, Any] = EMPTY
    cache: bool = True
    cache_at: Sequence[Handle] | AbstractSet[Handle] = ()
    cache_ttl: TimeToLive | Mapping[str, TimeToLive] = "5m"
    then: str | None = None
    compact: bool = False
    fallback: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Clean the text, as every text that enters; sort the places.

        Raises:
            InvalidInput: A field has a value of another type, `max_tokens` is not above 0, or `cache_ttl` names another time or place.
        """
        for name, kinds, wanted in _KINDS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise InvalidInput(f"{name} is {value!r}.", hint=f"Pass {wanted}.")
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            raise InvalidInput(f"max_tokens is {self.max_tokens!r}.", hint="Pass a whole number above 0, or None.")
        times = self.cache_ttl if isinstance(self.cache_ttl, Mapping) else {"messages": self.cache_ttl}
        if any(place not in _READ or time not in get_args(TimeToLive) for place, time in times.items()):
            hint = f"Times: {', '.join(get_args(TimeToLive))}. Places: {', '.join(_READ)}."
            raise InvalidInput(f"cache_ttl is {self.cache_ttl!r}.", hint=hint)
        if self.then is not None:
            object.__setattr__(self, "then", clean_text(self.then, "then", []))
        object.__setattr__(self, "cache_at", tuple(sorted(self.cache_at, key=str)))

    def cached_for(self, place: str) -> TimeToLive:
        """Return how long a prefix that ends in `tools`, `system` or `messages` stays cached."""
        if not isinstance(self.cache_ttl, Mapping):
            return self.cache_ttl
        later = _READ[_READ.index(place) :]
        return "1h" if any(self.cache_ttl.get(each) == "1h" for each in later) else "5m"

    @property
    def thinks(self) -> bool:
        """Whether its parameters turn on Anthropic's thinking."""
        config = self.parameters.get("thinking")
        return isinstance(config, Mapping) and config.get("type") in {"enabled", "adaptive"}


# --- compiled exchanges -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Compiled:
    """An exchange as one provider and model gets it.

    Attributes:
        exchange: The exchange.
        script: Its speeches before media are chosen.
        changes: What compiling it changed.
        items: Its messages, items or contents without media. Do not change them.
        data: The canonical bytes of each item.
        met: Ids that earlier exchanges already used.
        ids: Ids that it uses.
        media: Whether it has images or sounds.
        calls: Whether it has tool calls.
        asks: Whether it begins with a user's words.
        cleaned: Whether something in it had to be cleaned.
        opens: Whether nothing of the conversation comes before it in the view.
        links: The calls in it that the provider runs itself, and their results, in order: `call` or `result`, and the id.
        restarts: Whether the provider compacted what comes before it, and reads no further back.
        carried: Fields of the answer that the next request repeats.
        plain: The canonical bytes of each item as they are without thinking; empty, as the next two, where the API binds nothing.
        own: The digest of its thinking; empty where it has none.
        bound: What its answer is recorded as bound to, or None.
        bare: It without thinking; itself where it has none.
        less: It without some of its calls and results, by their ids, once it was compiled so.
        checked: Whether a request that contains it was found valid.
    """

    exchange: Exchange
    script: tuple[Speech, ...]
    changes: tuple[Change, ...]
    items: tuple[Mapping[str, Any], ...]
    data: tuple[bytes, ...]
    met: frozenset[str]
    ids: frozenset[str]
    media: bool
    calls: bool
    asks: bool
    cleaned: bool
    opens: bool
    links: tuple[tuple[str, str], ...]
    restarts: bool
    carried: Mapping[str, Any]
    plain: tuple[bytes, ...]
    own: str
    bound: BoundTo | None
    bare: Compiled = field(init=False, repr=False)
    less: tuple[frozenset[str], Compiled] | None = field(default=None, init=False, repr=False)
    checked: bool = False

    def __post_init__(self) -> None:
        """Begin as what it is without thinking."""
        self.bare = self

    @cached_property
    def link(self) -> ChainLink:
        """It in the chain of a request."""
        return ChainLink(digest(self.plain), self.own, self.bound, self.restarts)

    def fits(self, taken: AbstractSet[str], *, opens: bool) -> bool:
        """Return whether compiling it again would change nothing, after other exchanges used these ids."""
        return self.opens == opens and self.ids.isdisjoint(taken) and self.met <= taken


class Memo:
    """The exchanges of a conversation's last request, compiled for one provider and model.

    It never changes a request: compiling without it returns the same. Several threads may use one.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kept: tuple[object, Mapping[int, Compiled]] = (None, {})

    def known(self, label: object) -> Mapping[int, Compiled]:
        """Return the exchanges compiled under a label, by the id of the exchange; nothing for another label."""
        kept, compiled = self._kept
        return compiled if label == kept else {}

    def keep(self, label: object, compiled: list[Compiled]) -> None:
        """Replace the compiled exchanges."""
        self._kept = label, {id(each.exchange): each for each in compiled}


TRANSFORMED = "input_transformations"
"""The key of an answer's metadata with what its provider changed in the request: Anthropic's and OpenAI's own name."""

_UNREAD = ("model_", "organization_", "end_user_")
"""How the reasons begin for which a model may not read thinking, whatever comes before it."""

_PLACE = re.compile(r"messages\.(\d+)")


# --- the request ------------------------------------------------------------------------------------------------------


class Extent(NamedTuple):
    """The place of a compiled exchange in the conversation of a body: items from `start` up to `stop`; neighbours may share one."""

    compiled: Compiled
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Request(Mapping[str, Any]):
    """A request, ready to be sent. As a mapping it has the arguments of the provider's SDK: `client.chat.completions.create(**request)`.

    Attributes:
        profile: The profile it was compiled for.
        model: The model it is for. (Gemini's body does not name it: it is part of the address.)
        fields: The fields of the body. Do not change them; `body` has them read-only.
        report: The differences from the view.
        tool_names: The names of tools on the wire, and our names for them.
        history: Whether it ends on the assistant's words. It is then valid as a history, and becomes a request with words after it.
        view: The view it was compiled from; None where it was not compiled here.
        call: The call it was compiled for; None likewise.
        pieces: The places of the view's exchanges; empty likewise.
        written: The canonical bytes of each item of the conversation; empty likewise.
        bound: What the thinking of its answer will be bound to; None likewise.
        anew: The digest with which the chain begins again where the provider compacted all before; empty likewise.
        sent: The bytes that were sent, where another program wrote them; else empty.
    """

    profile: Profile
    model: str
    fields: Mapping[str, Any]
    report: Report
    tool_names: Mapping[str, str]
    history: bool = False
    view: View | None = field(default=None, repr=False, compare=False)
    call: Call | None = field(default=None, repr=False, compare=False)
    pieces: tuple[Extent, ...] = field(default=(), repr=False, compare=False)
    written: tuple[bytes, ...] = field(default=(), repr=False, compare=False)
    bound: BoundTo | None = field(default=None, repr=False, compare=False)
    anew: str = field(default="", repr=False, compare=False)
    sent: bytes = field(default=b"", repr=False, compare=False)

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The body, a read-only JSON object."""
        body: Mapping[str, Any] = freeze(self.fields)  # made when it is asked for: only a reader needs the copy
        return body

    @cached_property
    def _arguments(self) -> dict[str, Any]:
        body: dict[str, Any] = thaw(self.fields)
        of_sdk = self.profile.api.arguments
        named = body if of_sdk is None else of_sdk(body, self.model)
        return named | ({"extra_headers": dict(self.headers)} if self.headers else {})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a JSON value
        return self._arguments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arguments)

    def __len__(self) -> int:
        return len(self._arguments)

    def __repr__(self) -> str:
        items = counted(len(self.fields[self.profile.conversation]), "item")
        changes = f", {counted(len(self.report), 'change')}" if len(self.report) else ""
        return f"<Request to {self.profile.name}, {self.model}: {items}, {len(self.data):,} bytes{changes}>"

    def _repr_html_(self) -> str:
        """Return the newest items of the conversation, for a notebook."""
        items = self.fields[self.profile.conversation]
        first = max(0, len(items) - MOST)
        rows = [
            (number, item.get("role") or item.get("type") or "", canonical_json(item).decode())
            for number, item in enumerate(items[first:], first)
        ]
        return html_table(repr(self)[1:-1], ("", "role", "item"), rows, earlier=first)

    def bound_for(self, answer: Message) -> BoundTo | None:
        """Return what the thinking of an answer is bound to: `bound`, without the thinking that the provider says did not fit.

        Thinking that the model may not read counts as there: it goes back to a model that reads it.
        """
        field = self.profile.api.blocks.compaction
        if self.bound is not None and any(
            block.type == COMPACTION and (block.model_extra or {}).get(field) for block in answer.contents
        ):
            return bound_after((), self.anew)
        gone = [index for index, why in self._transformed(answer) if not why.startswith(_UNREAD)]
        if self.bound is None or not gone:
            return self.bound
        having = [piece for piece in self.pieces if piece.start > max(gone) and piece.compiled.own]
        return bound_after([piece.compiled.own for piece in having], self.bound.prefix)

    def left_out(self, answer: Message) -> tuple[Omission, ...]:
        """Return what the provider says it left out of the request."""
        dropped = (
            (part.origin, why)
            for index, why in self._transformed(answer)
            for piece in self.pieces
            if piece.start <= index < piece.stop
            for part in thoughts(piece.compiled.script)
        )
        gone = (*dropped, *self._cleared(answer))
        return tuple(
            Omission(reason=Reason.PROVIDER, handle=place, by=f"{self.profile.name}: {why}") for place, why in gone
        )

    def _cleared(self, answer: Message) -> Iterator[tuple[Handle | None, str]]:
        """Yield the blocks that an edit of Anthropic's context cleared, oldest first, and which edit.

        An edit reports how many it cleared, and begins with the oldest (platform.claude.com/docs/en/build-with-claude/context-editing).
        """
        managed = answer.metadata.get("context_management")
        applied = managed.get("applied_edits") if isinstance(managed, Mapping) else None
        asked = self.fields.get("context_management", EMPTY).get("edits") or ()
        for edit in applied if isinstance(applied, list) else ():
            kind = str(edit.get("type", ""))
            kept = {name for known in asked if known.get("type") == kind for name in known.get("exclude_tools") or ()}
            parts = [
                (index, part)
                for index, piece in enumerate(self.pieces)
                for speech in piece.compiled.script
                for part in speech.parts
            ]
            results = [part.origin for _, part in parts if isinstance(part, ResultPart) and part.name not in kept]
            yield from ((place, kind) for place in results[: _count(edit.get("cleared_tool_uses"))])
            thinking = [(index, part.origin) for index, part in parts if isinstance(part, ThinkingPart)]
            turns = sorted({index for index, _ in thinking})[: _count(edit.get("cleared_thinking_turns"))]
            yield from ((place, kind) for index, place in thinking if index in turns)

    def _transformed(self, answer: Message) -> Iterator[tuple[int, str]]:
        """Yield the index of each item that the provider changed by itself, and why (Anthropic names its place, OpenAI its id)."""
        listed = answer.metadata.get(TRANSFORMED)
        for change in listed if isinstance(listed, list) else ():
            place = _PLACE.match(str(change.get("path", "")))
            named = (
                at
                for at, item in enumerate(self.fields[self.profile.conversation])
                if item.get("id") == change.get("id")
            )
            index = int(place[1]) if place else next(named, None) if change.get("id") else None
            if index is not None and change.get("type") != "thinking_mismatch_allowed":
                yield index, str(change.get("reason", ""))

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers that it needs besides those of every request, such as Anthropic's betas. The mapping has them as `extra_headers`."""
        needed = self.profile.api.headers
        return MappingProxyType({} if needed is None else needed(self.fields, self.call))

    def explicit_cache(self, ttl: str = "3600s") -> dict[str, Any]:
        """Return the arguments with which the SDK makes an explicit cache of the tools and instructions: `client.caches.create(**…)`.

        A later call names the cache in a parameter (`cachedContent`), and its request has neither.

        Args:
            ttl: How long the cache stays, in the provider's words.

        Raises:
            InvalidInput: The API makes no such caches, or the request has neither tools nor instructions.
        """
        cache = self.profile.cache
        kept = {name: thaw(self.fields[name]) for name in cache.moved if name in self.fields} if cache.made else {}
        if not kept:
            raise InvalidInput(
                f"A request to {self.profile.name} has nothing that an explicit cache can have.",
                hint="Gemini's generateContent makes caches of tools and instructions.",
            )
        return {"model": self.model, "config": {**kept, "ttl": ttl}}

    @cached_property
    def data(self) -> bytes:
        """The body's canonical bytes; those that were sent, where another program wrote them."""
        if self.sent:
            return self.sent
        if not self.written:
            return canonical_json(self.fields)
        said = self.profile.conversation
        fields = (
            canonical_json(name)
            + b":"
            + (b"[" + b",".join(self.written) + b"]" if name == said else canonical_json(value))
            for name, value in sorted(self.fields.items())
        )
        return b"{" + b",".join(fields) + b"}"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of `data`, 64 hexadecimal digits."""
        return sha256(self.data).hexdigest()

    def check(self, *, as_history: bool = False) -> None:
        """Check the request against its provider's rules.

        Exchanges that an earlier request of the conversation was checked with are not checked again; only new ones and their neighbours are.
        A parameter that palaver does not know passes: compatible servers have fields of their own.

        Args:
            as_history: Whether it may end on the assistant's words where the model takes no such request: it becomes one with words after it.

        Raises:
            InvalidRequest: It breaks a rule; the error lists the violations. The conversation ends on the assistant's words, which this model does not
                continue; or the call asks for what the model does not take; or this is a defect of palaver, and the error asks to report it.
        """
        relaxed = as_history and self.history and not self.profile.turns.assistant_last
        excerpt = self._excerpt()
        violations = () if excerpt is None else validate(excerpt, self.profile, as_history=relaxed)
        if excerpt is None or violations:
            known = self.data if self.written else None  # what was not compiled may be no JSON
            violations = validate(self.fields, self.profile, as_history=relaxed, data=known)
        if not violations:
            for piece in self.pieces:
                piece.compiled.checked = True
            return
        own = () if self.call is None else tuple(self.call.parameters)
        named = sorted(
            {name for name in own for violation in violations if re.match(rf"{re.escape(name)}\b", violation.path)}
        )
        rules = {violation.rule for violation in violations}
        hint = _OWN.format(", ".join(named)) if named else _ASKED if rules <= _CHOSEN else ""
        raise InvalidRequest(self.profile.name, violations, hint=_ENDS if rules == {Breach.ROLE_LAST} else hint)

    def _excerpt(self) -> Mapping[str, Any] | None:
        """Return the body with only those items that are not yet checked, their neighbours and the beginning of their turn.

        Return None where an excerpt is not enough: nothing was checked before, new items are not at the end, or the body may be too large. An excerpt may
        break a
        rule that the whole keeps, never the other way round: compiling counts ids, images and cache marks over the whole conversation.
        """
        pieces, items = self.pieces, self.fields[self.profile.conversation]
        new = next((index for index, piece in enumerate(pieces) if not piece.compiled.checked), len(pieces))
        if (
            new == 0
            or any(piece.compiled.checked for piece in pieces[new:])
            or len(self.data) > self.profile.request_bytes
        ):
            return None
        asked = next((index for index in range(len(pieces) - 1, -1, -1) if pieces[index].compiled.asks), 0)
        opening, first = self._beginning(asked), self._beginning(new - 1)
        shown = [*items[: pieces[0].stop]] if opening and not pieces[opening].compiled.asks else []
        if asked + 2 > first:
            shown += items[pieces[min(opening, first)].start if opening else 0 :]
        else:
            stop = pieces[asked + 1].stop
            shown += items[pieces[opening].start if opening else 0 : stop]
            shown += items[max(stop, pieces[first].start) :]
        return None if 2 * len(shown) > len(items) else {**self.fields, self.profile.conversation: shown}

    def _beginning(self, index: int) -> int:
        """Return the last piece up to an index that shares no item with the one before it."""
        while index and self.pieces[index].start < self.pieces[index - 1].stop:
            index -= 1
        return index


def passed_on(sent: bytes, fields: Mapping[str, Any], profile: Profile, call: Call, view: View) -> Request:
    """Return a request that another program wrote.

    Args:
        sent: Its bytes.
        fields: The fields of its body.
        profile: What its provider accepts.
        call: Its model, and whether its answer is streamed.
        view: The view of the dialog in which it is recorded.
    """
    return Request(
        profile=profile,
        model=call.model,
        fields=fields,
        report=Report(),
        tool_names=EMPTY,
        view=view,
        call=call,
        sent=sent,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


_ENDS = "Add the next user message, or pass its words as `then`."

_OWN = "Parameters given with the call are not as the provider wants them: {}."

_ASKED = "The call asks for what this model does not take: change the call, or ask another model."

_CHOSEN = frozenset({Breach.PARAMETER_REFUSED, Breach.PARAMETER_CONFLICT})
"""Rules that only the options of a call break: which model, tools, format and choice."""


# --- prefixes: how much of a request a provider's cache finds again in the next one -----------------------------------


def units(request: Request) -> tuple[bytes, ...]:
    """Return the canonical bytes of each unit of a request, in the order in which the provider reads them."""
    mark, body, profile = request.profile.cache.field, request.fields, request.profile
    head = {field: body[field] for field in profile.api.owned - {profile.conversation, "model"} if field in body}
    return tuple(canonical_json(without(unit, mark)) for unit in (head, *_said(request)))


def broken_at(before: Request, after: Request) -> int | None:
    """Return the index of the first unit of `before` that `after` has not in its place; None when `before` is a prefix of `after`."""
    earlier, later = units(before), units(after)
    for index, unit in enumerate(earlier):
        if index >= len(later) or later[index] != unit:
            return index
    return None


def _said(request: Request) -> Iterator[object]:
    inner = request.profile.pieces
    for item in _listed(request.fields[request.profile.conversation]):
        parts = _listed(item.get(inner)) if inner and isinstance(item, Mapping) else None
        yield from [item] if parts is None else ({"role": item.get("role"), inner: part} for part in parts)


def _listed(value: object) -> Sequence[Any]:
    """Return a list; a value that another program writes in place of a list of one as that list."""
    return value if isinstance(value, list | tuple) else [value]
