"""Compiling: a view in, the request of one provider out.

Every exchange is compiled alone, in a row of passes: `gather` spells it out, `pairing` has every call answered, `served` keeps what only the
provider reads, `reasoning` sends thinking back only to the model that thought it, and the provider's module writes it. Then the exchanges are put
together: `served` leaves out what the provider compacted and orders what waits for its tools, neighbours of one role are joined, and `media` chooses the images and sounds that the whole request can have, and `binding` the thinking that is bound to what it has. The same view, profile, call and bytes make the same request on any machine, with
and without the memo of an earlier request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import ceil
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import BoundTo, Handle
from palaver.messages import canonical_json, freeze
from palaver.messages.frozen import Replaced
from palaver.plurals import counted
from palaver.tokens.families import BYTES_PER_TOKEN
from palaver.view import Exchange, View
from palaver.wire.binding import (
    ChainLink,
    bare,
    bound_after,
    deferred,
    digest,
    head_digest,
    kept,
    own_digest,
    prefixes,
    restarts,
    shown,
    thoughts,
)
from palaver.wire.gather import DEPTH, gather, levels
from palaver.wire.head import Outline, declared, outline, provided, without_cached
from palaver.wire.media import Load, with_media, without_media
from palaver.wire.pairing import Names, answered, opened, paired
from palaver.wire.reasoning import with_reasoning
from palaver.wire.request import Call, Compiled, Extent, Memo, Request
from palaver.wire.script import (
    NOT_BEGUN,
    CallPart,
    ChangeNotes,
    How,
    MediaPart,
    ProviderPart,
    Report,
    ResultPart,
    Speech,
    Taken,
    TextPart,
    ThinkingPart,
    from_harness,
    media_parts,
)
from palaver.wire.served import carried, links, repeated, settled, with_own_blocks, without
from palaver.wire.table import Body, Profile, Provided
from palaver.wire.updates import PlacedSettings, settings, updates

_BESIDE = 1024
"""Bytes kept free besides a request's media: brackets, marks, and the reasons of media that are left out after all."""


def compile(  # noqa: A001 - the word for it
    view: View, profile: Profile, call: Call, media: Load, memo: Memo | None = None
) -> Request:
    """Compile a view into a request.

    Neither the view nor the log changes. The report lists everything that the provider does not get as the view shows it.

    Args:
        view: What the model is to see.
        profile: What the provider accepts: `palaver.providers.profile(name, model)`.
        call: The model, and the options of the call.
        media: Returns the bytes of a payload by its digest; called only for payloads that are not in memory.
        memo: The exchanges of an earlier request of the conversation; those of this one replace them.

    Raises:
        InvalidInput: A parameter of the call names what is compiled from the view.
    """
    api = profile.api
    _refuse_owned(call, api.owned)
    if call.compact and not profile.compacts_from:
        hint = "palaver's own compactions need no provider: dialog.compaction.preview(...).approve()."
        raise InvalidInput(f"{profile.name} compacts no conversation of {call.model}.", hint=hint)
    notes = ChangeNotes()
    known = settings(view, view.exchanges, profile)
    names = Names(known.offered, profile, notes)
    theirs = provided(call, profile, known.offered, frozenset(names.ours), notes)
    exchanges = _Exchanges(profile, call.model, names, _tools(names, theirs, call), call.thinks)
    label = (profile, call.model, tuple(names.ours.items()), exchanges.tools, exchanges.thinks)
    compiled = exchanges.compiled(view, memo.known(label) if memo else {})
    if memo:
        memo.keep(label, compiled)
    compiled = settled(compiled, api.blocks, notes, exchanges.less, then=bool((call.then or "").strip()))
    compiled, again = repeated(compiled, profile, notes)
    known = settings(view, [piece.exchange for piece in compiled], profile)
    plan = outline(known, view, profile, call, names, theirs, compiled, again, notes)
    for exchange in compiled:
        notes.extend(exchange.changes)
    head = without_cached(api.head(plan), profile, notes)
    sent = list(_sent(compiled, exchanges, head, media, notes))
    for since, what, at in known.anew:
        notes.add(since, what, How.CHANGED, _anew(head, sent[:at], profile))
    before, after = _around(sent, plan, exchanges)
    sent, after = _updated(sent, after, known, exchanges, plan)
    sent, bound, anew = _bound(sent, (before, after), head, exchanges, notes)
    said = _Growing(api.neighbours, placed=bool(call.cache_at) and api.finished is not None)
    said.follow(before)
    sent = _answered([*sent, after], exchanges, notes)
    ends = [said.follow(piece) for piece in sent]
    if api.finished is not None:
        head, changed = api.finished(said.items, head, plan, said.origins)
        for index, item in changed.items():
            said.items[index], said.data[index] = item, canonical_json(item)
    elif call.cache and (call.cache_at or call.cache_ttl != "5m"):
        notes.add(
            None,
            "cache",
            How.DROPPED,
            "cache_at, cache_ttl: this API takes no marks; it caches by itself what requests begin with alike",
        )
    return Request(
        profile=profile,
        model=call.model,
        fields=_fields(head, profile.conversation, said, notes),
        report=Report(tuple(notes)),
        tool_names=MappingProxyType(names.ours),
        history=said.last == "assistant",
        view=view,
        call=call,
        pieces=tuple(Extent(made, *where) for (made, *_), where in zip(sent, ends, strict=True) if made),
        written=tuple(said.data),
        bound=bound,
        anew=anew,
    )


def _refuse_owned(call: Call, owned: frozenset[str]) -> None:
    taken = sorted(owned & set(call.parameters))
    if taken:
        raise InvalidInput(
            f"The parameter {taken[0]!r} cannot be set: it is compiled from the view.",
            hint=f"Change the view or the call; parameters may not be any of: {', '.join(sorted(owned))}.",
        )


def _tools(names: Names, theirs: Provided, call: Call) -> frozenset[str]:
    """Return the names of all tools of a request, the provider's own by name and by type, and those of servers that it connects to."""
    listed = call.parameters.get("mcp_servers")
    servers = [server for server in listed if isinstance(server, Mapping)] if isinstance(listed, list | tuple) else []
    said = (known.get(key) for known in (*theirs.tools, *servers) for key in ("name", "type", "mcp_server_name"))
    keys = (key for tool in theirs.tools for key in tool)
    return frozenset(names.ours) | {str(name) for name in said if name} | frozenset(keys) - {"name", "type"}


def _fields(head: Body, field: str, said: _Growing, notes: ChangeNotes) -> Mapping[str, Any]:
    """Return the fields of the body. What did not enter through a message (a parameter, a name) is cleaned here."""
    cleaned: list[Replaced] = []
    body = freeze(head, "body", cleaned)
    if cleaned or said.cleaned:
        notes.add(None, "text", How.CHANGED, "it had what no request can carry, such as a lone surrogate")
    return {**body, field: said.items}


# --- exchanges -----------------------------------------------------------------------------------------------------------

_CALLS = frozenset({CallPart, ResultPart})
_WITH_MEDIA = frozenset({MediaPart, ResultPart})
_SERVED = frozenset({CallPart, ProviderPart})
"""Parts of which some have to do with what the provider runs itself, or made of the conversation."""


@dataclass(frozen=True, slots=True)
class _Exchanges:
    """Compiles exchanges one by one.

    Attributes:
        profile: The provider's rules.
        model: The model that the request is for.
        names: The names of tools.
        tools: The names of all tools in the request, the provider's own included.
        thinks: Whether it turns on Anthropic's thinking.
    """

    profile: Profile
    model: str
    names: Names
    tools: frozenset[str]
    thinks: bool

    def compiled(self, view: View, known: Mapping[int, Compiled]) -> list[Compiled]:
        """Compile the exchanges of a view in order. Known ones are compiled again only where their ids or age differ."""
        view.load()  # in few scans, rather than one for each exchange
        taken: set[str] = set()
        out: list[Compiled] = []
        opens = True
        for exchange in view.exchanges:
            piece = known.get(id(exchange))
            if piece is None or not piece.fits(taken, opens=opens):
                piece = self._compiled(exchange, taken, opens=opens)
            taken |= piece.ids
            opens = opens and bool(exchange.derived)
            out.append(piece)
        return out

    def _compiled(self, exchange: Exchange, before: AbstractSet[str], *, opens: bool) -> Compiled:
        notes, taken, profile = ChangeNotes(), Taken(before), self.profile
        script = tuple(paired(gather(exchange, profile, notes, opens=opens), profile, self.names, notes, taken))
        script = tuple(with_own_blocks(script, profile, notes, taken, self.tools))
        script = tuple(with_reasoning(script, profile, self.model, notes, taken, thinks=self.thinks))
        script = tuple(speech for speech in script if speech.parts)
        return self._piece(exchange, script, notes, taken, opens=opens)

    def less(self, piece: Compiled, names: frozenset[str]) -> Compiled:
        """Return an exchange without some calls that the provider runs itself, and their results; it is compiled so once."""
        if piece.less is None or piece.less[0] != names:
            notes = ChangeNotes(piece.changes)
            script = tuple(without(piece.script, names, self.profile, notes))
            taken = Taken(frozenset())
            taken.met, taken.added = set(piece.met), set(piece.ids)
            piece.less = names, self._piece(piece.exchange, script, notes, taken, opens=piece.opens)
        return piece.less[1]

    def _piece(
        self, exchange: Exchange, script: tuple[Speech, ...], notes: ChangeNotes, taken: Taken, *, opens: bool
    ) -> Compiled:
        profile = self.profile
        # most exchanges have few kinds of parts, and need few of these looks
        kinds = {type(part) for speech in script for part in speech.parts}
        served = not kinds.isdisjoint(_SERVED)
        media = not kinds.isdisjoint(_WITH_MEDIA) and any(True for _ in media_parts(script))
        shown, noted = (without_media(script, profile), ChangeNotes()) if media else (script, notes)
        thinking = enumerate(shown, 1) if ThinkingPart in kinds else ()
        thinks = max((at for at, speech in thinking if next(thoughts([speech]), None)), default=0)
        written = [list(profile.api.written(speech, profile, noted)) for speech in shown]
        items, data, cleaned = _clean(chain.from_iterable(written))
        rest = data[sum(map(len, written[:thinks])) :]
        return Compiled(
            exchange=exchange,
            script=script,
            changes=tuple(notes),
            items=items,
            data=data,
            met=frozenset(taken.met),
            ids=frozenset(taken.added),
            media=media,
            calls=not kinds.isdisjoint(_CALLS),
            asks=bool(script) and script[0].role == "user",
            cleaned=cleaned,
            opens=opens,
            links=links(script, profile) if served else (),
            restarts=served and restarts(script, profile.api.blocks.compaction),
            carried=carried(exchange, profile),
            plain=self._plain(shown[:thinks]) + rest if profile.api.binding else (),
            own=own_digest(shown[:thinks]) if profile.api.binding else "",
            bound=next((turn.bound for turn in exchange.turns if turn.bound), None),
        )

    def _plain(self, script: Sequence[Speech]) -> tuple[bytes, ...]:
        """Return the canonical bytes of items without thinking; as the items themselves have been, they need no cleaning."""
        written, notes = self.profile.api.written, ChangeNotes()
        return tuple(canonical_json(item) for speech in bare(script) for item in written(speech, self.profile, notes))

    def written(
        self, script: Sequence[Speech], notes: ChangeNotes
    ) -> tuple[tuple[Mapping[str, Any], ...], tuple[bytes, ...], bool]:
        """Write speeches: the items, their canonical bytes, and whether something had to be cleaned."""
        return _clean(item for speech in script for item in self.profile.api.written(speech, self.profile, notes))


def _clean(written: Iterable[Body]) -> tuple[tuple[Mapping[str, Any], ...], tuple[bytes, ...], bool]:
    """Return items as they are sent, their canonical bytes, and whether something had to be cleaned."""
    items = tuple(written)
    with suppress(InvalidMessage):
        data = tuple(map(canonical_json, items))
        if not any(map(_suspect, items, data)):
            return items, data, False
    cleaned: list[Replaced] = []
    # as deep as in a body, so that nesting that is too deep there fails here, too
    items = tuple(freeze({"": items}, "body", cleaned)[""])
    return items, tuple(map(canonical_json, items)), bool(cleaned)


def _suspect(item: object, data: bytes) -> bool:
    """Return whether an item may have a NUL, or be nested too deeply for a body."""
    return b"\\u0000" in data or (data.count(b"[") + data.count(b"{") > DEPTH and levels(item, DEPTH) > DEPTH)


# --- the conversation ----------------------------------------------------------------------------------------------------


class _Sent(NamedTuple):
    """Speeches as they are sent.

    Attributes:
        compiled: The exchange; None for what is said around the view.
        script: The speeches.
        items: What they are written as.
        data: The canonical bytes of each item.
        cleaned: Whether something had to be cleaned.
    """

    compiled: Compiled | None
    script: Sequence[Speech]
    items: Sequence[Mapping[str, Any]]
    data: Sequence[bytes]
    cleaned: bool


@dataclass(slots=True)
class _Growing:
    """The conversation while it is put together.

    Attributes:
        neighbours: Returns two items as one where the provider joins them; None where it never does.
        placed: Whether the call places cache marks.
        items: The messages, items or contents.
        data: The canonical bytes of each.
        origins: The blocks that each shows, for marks that the call places.
        last: The role that spoke last.
        cleaned: Whether something had to be cleaned.
    """

    neighbours: Callable[[Mapping[str, Any], Mapping[str, Any]], Body | None] | None
    placed: bool
    items: list[Mapping[str, Any]] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    origins: list[list[Handle | None]] = field(default_factory=list)
    last: str = ""
    cleaned: bool = False

    def follow(self, sent: _Sent) -> tuple[int, int]:
        """Append the items of an exchange, and return the index of the first and the one after the last."""
        items, neighbours = self.items, self.neighbours
        start = len(items)
        for index, item in enumerate(sent.items):
            joined = neighbours(items[-1], item) if neighbours and items else None
            if joined is None:
                items.append(item)
                self.data.append(sent.data[index])
            else:
                start -= index == 0
                items[-1], self.data[-1] = joined, canonical_json(joined)
            if self.placed:
                origins = [part.origin for part in sent.script[index].parts]
                self.origins += [origins] if joined is None else []
                self.origins[-1] += [] if joined is None else origins
        self.last = sent.script[-1].role if sent.script else self.last
        self.cleaned = self.cleaned or sent.cleaned
        return start, len(items)


def _sent(
    compiled: Sequence[Compiled], exchanges: _Exchanges, head: Body, load: Load, notes: ChangeNotes
) -> Iterator[_Sent]:
    """Return each exchange as it is sent, with the media that the whole request can have."""
    having = [piece.script for piece in compiled if piece.media]
    placed: Iterator[Sequence[Speech]] = iter(())
    if having:
        beside = _BESIDE * (1 + sum(1 for script in having for _ in media_parts(script)))
        said = sum(len(data) + 1 for piece in compiled for data in piece.data)
        room = exchanges.profile.request_bytes - len(canonical_json(freeze(head, "body"))) - said - beside
        placed = iter(with_media(having, exchanges.profile, load, max(room, 0), notes))
    for piece in compiled:
        yield _written(piece, next(placed), exchanges, notes) if piece.media else _unchanged(piece)


def _unchanged(piece: Compiled) -> _Sent:
    return _Sent(piece, piece.script, piece.items, piece.data, piece.cleaned)


def _written(piece: Compiled | None, script: Sequence[Speech], exchanges: _Exchanges, notes: ChangeNotes) -> _Sent:
    return _Sent(piece, script, *exchanges.written(script, notes))


def _around(sent: Sequence[_Sent], outline: Outline, exchanges: _Exchanges) -> tuple[_Sent, _Sent]:
    """Return what must come before the exchanges, and what must come after them."""
    then = outline.call.then or ""
    following = [Speech("user", (TextPart(then),))] if then.strip() else []
    trigger = outline.profile.api.blocks.trigger
    if outline.call.compact and trigger:
        following.append(Speech("assistant", (ProviderPart(trigger, {}),)))
    opening = next((_opening(piece) for piece in sent if piece.script), "user" if following else "")
    leading = list(_leading(opening, outline))
    return _written(None, leading, exchanges, outline.notes), _written(None, following, exchanges, outline.notes)


def _updated(
    sent: Sequence[_Sent], after: _Sent, known: PlacedSettings, exchanges: _Exchanges, outline: Outline
) -> tuple[list[_Sent], _Sent]:
    """Return the exchanges with the changes of instructions and tools between them, and what must come after them."""
    if len(known.stages) == 1:
        return list(sent), after
    profile, notes = outline.profile, outline.notes
    scripts = [piece.script for piece in (*sent, *([after] if after.script else []))]
    roles = list(_roles(scripts, profile))
    declare = partial(
        declared, profile=profile, call=outline.call, names=exchanges.names, theirs=outline.provided, notes=notes
    )
    said = updates(known, roles, exchanges.names, declare, profile, notes)
    out: list[_Sent] = []
    for at, piece in enumerate((*sent, None)):
        if at in said:
            out.append(_written(None, [said[at]], exchanges, notes))
        out += [piece] if piece is not None else []
    last = said.get(len(sent) + 1) if after.script else None
    return out, _written(None, [*after.script, last], exchanges, notes) if last else after


def _roles(scripts: Sequence[Sequence[Speech]], profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield who begins and who ends each exchange. While a call that the provider runs waits for its result, its answer is not over."""
    waiting: set[str] = set()
    for script in scripts:
        for kind, name in links(script, profile):
            (waiting.add if kind == "call" else waiting.discard)(name)
        yield (script[0].role, "assistant" if waiting else script[-1].role) if script else ("", "")


def _anew(head: Body, before: Sequence[_Sent], profile: Profile) -> str:
    """Return what it costs that instructions or tools changed at the top."""
    size = len(canonical_json(freeze(head, "body"))) + sum(len(data) for piece in before for data in piece.data)
    tokens = ceil(size / BYTES_PER_TOKEN)
    lost = sum(1 for piece in before if next(thoughts(piece.script), None)) if profile.reasoning.bound else 0
    leaves = f", and the thinking of {counted(lost, 'answer')} leaves" if lost else ""
    return f"changed at the top: about {tokens:,} tokens must be cached again{leaves}"


def _opening(piece: _Sent) -> str:
    """Return who speaks first. What the provider made of the conversation before may come first, whoever says it."""
    part = piece.script[0].parts[0]
    compacted = piece.compiled is not None and piece.compiled.restarts and isinstance(part, ProviderPart)
    return "user" if compacted else piece.script[0].role


def _answered(sent: list[_Sent], exchanges: _Exchanges, notes: ChangeNotes) -> list[_Sent]:
    """Return what is sent, with words of the assistant after results where the provider wants them."""
    if not exchanges.profile.turns.answered:
        return sent
    out, last = [], ""
    for piece in sent:
        if piece.script:
            between = answered(last, piece.script[0].role, exchanges.profile, notes)
            out += [_written(None, [speech], exchanges, notes) for speech in between]
            last = piece.script[-1].role
        out.append(piece)
    return out


# --- what is bound to what comes before it -------------------------------------------------------------------------------


def _bound(
    sent: Sequence[_Sent], around: tuple[_Sent, _Sent], head: Body, exchanges: _Exchanges, notes: ChangeNotes
) -> tuple[list[_Sent], BoundTo | None, str]:
    """Return the exchanges without the thinking that the model would refuse, and what the thinking of the answer will be bound to.

    The last value is the digest with which the chain begins anew where the provider compacts all before.
    """
    profile = exchanges.profile
    if not profile.api.binding:
        return list(sent), None, ""
    tools = deferred(head, profile)
    links = [_link(piece, exchanges, tools) for piece in sent]
    having = [index for index, link in enumerate(links) if link.own]
    leading, following = around
    anew = head_digest(head, profile)
    *before, end = prefixes(digest((anew.encode(), *leading.data)), links, anew)
    chosen = kept(links, before) if profile.reasoning.bound else frozenset(having)
    out = list(sent)
    for index in having:
        if index not in chosen:
            for part in thoughts(out[index].script):
                notes.add(part.origin, "thinking", How.DROPPED, "signed for other words than those before it now")
            out[index] = _bare(out[index], exchanges)
    end = digest((end.encode(), *following.data)) if following.data else end
    return out, bound_after([links[index].own for index in having if index in chosen], end), anew


def _bare(piece: _Sent, exchanges: _Exchanges) -> _Sent:
    """Return an exchange without its thinking, which is compiled once; itself where it has none."""
    compiled = piece.compiled
    if compiled is None or not compiled.own:
        return piece
    if compiled.bare is compiled:
        script = bare(compiled.script)
        items, data, cleaned = exchanges.written(script, ChangeNotes())
        compiled.bare = replace(compiled, script=script, items=items, data=data, cleaned=cleaned, own="")
    if not compiled.media:
        return _unchanged(compiled.bare)
    return _written(compiled.bare, bare(piece.script), exchanges, ChangeNotes())


def _link(piece: _Sent, exchanges: _Exchanges, tools: Mapping[str, bytes]) -> ChainLink:
    """Return an exchange as a link of the chain. Its media are chosen anew for each request, so its digest is not kept.

    What shows deferred tools to the model binds what follows to their declarations, too.
    """
    known = piece.compiled
    if known is None:
        return ChainLink(digest(piece.data), "", None, restarts=False)
    if not (known.media or tools):
        return known.link
    plain = digest(_bare(piece, exchanges).data) if known.media else known.link.plain
    if tools and (names := [name for name in shown(piece.script, exchanges.profile) if name in tools]):
        plain = digest((plain.encode(), *map(tools.__getitem__, names)))
    return ChainLink(plain, known.own, known.bound, known.restarts)


def _leading(opening: str, outline: Outline) -> Iterator[Speech]:
    """Return what must come before the first words: instructions that are a message, and a notice where the user must speak first."""
    turns = outline.profile.turns
    if outline.system and turns.system == "message":
        yield Speech("system", tuple(outline.system))
    if not opening:
        outline.notes.add(None, "text", How.ADDED, "the view shows nothing, and a request needs words")
        yield Speech("user", (TextPart(from_harness("notice", NOT_BEGUN)),))
    else:
        yield from opened(opening, outline.profile, outline.notes)
