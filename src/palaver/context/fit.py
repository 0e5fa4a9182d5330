"""`fit`: a context engine over a plain list of messages, in one call, without a store and without an agent."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import index as place_of
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, SupportsIndex

from palaver.context.compose import Composed, Policy, compose
from palaver.context.manager import ContextManager
from palaver.context.meter import Meter
from palaver.context.policy import DEFAULT_POLICY, PolicyLike
from palaver.context.policy import policy as policy_of
from palaver.context.recall import LIST, RECALL_TOOLS, ListRecall
from palaver.dialects import ReadList, read_list, tool_specs
from palaver.dialects.writing import MessageWriter
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.log import Handle, ToolSpec
from palaver.messages import (
    Message,
    Role,
    Speaker,
    TextContent,
    ThinkingContent,
    Trust,
    media_of,
)
from palaver.notebook import html_table
from palaver.plurals import a_type, counted
from palaver.providers import ListWriter, profile, profile_of
from palaver.providers.writer import Written
from palaver.tokens import Budget, Counter, model_info
from palaver.tokens import counter as counter_of
from palaver.tokens.budget import BudgetLike
from palaver.view import Block, Exchange, Omission, Reason, View, fold_messages
from palaver.view.blocks import BlockChange
from palaver.wire import Change, How, Profile, Report
from palaver.wire.binding import COMPACTION
from palaver.wire.script import marked

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A list that fits, and what became of the rest.

    Attributes:
        messages: The list, in the caller's dialect; messages that were not touched are the caller's own objects.
        system: The instructions to send with it: those given, and those of the list that have no place in it.
        tools: Schemas of the tools that bring back what is left out, in the caller's dialect; send them with your own. Empty while nothing is left out.
        omitted: What is left out or shown in another form: whole messages and blocks, each with reason and handle. Handles count the caller's list from 0.
        report: What was repaired, changed or added.
        tokens: The size of the request with this list, in tokens: instructions, tools and messages.
        tokens_before: The same for the list as it was given; estimated where it is much larger than the budget.
    """

    messages: list[Any]
    system: Any
    tools: list[Any]
    omitted: tuple[Omission, ...]
    report: Report
    tokens: int
    tokens_before: int
    _list: ListRecall = field(repr=False)

    def recall(self, handle: Handle | str) -> Any:  # noqa: ANN401 - the caller's own, whatever it is
        """Return what a handle names: the caller's own message; for a block its text, or the block where it is more than a text.

        Raises:
            InvalidInput: The text is not a handle.
            NotFound: Nothing in this list has the handle.
        """
        return self._list.item(handle)

    def call_tool(self, name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of one of `tools`.

        Args:
            name: The tool's name.
            args: The arguments, as a mapping or as the JSON text that the model wrote.

        Returns:
            The text of the tool's result; for wrong arguments, what is wrong with them.

        Raises:
            NotFound: None of `tools` has this name.
        """
        return self._list.answer(name, args)

    def __repr__(self) -> str:
        gone = sum(max(omission.messages, 1) for omission in self.omitted)
        left = f", {gone:,} omitted" if gone else ""
        return f"Fit({counted(len(self.messages), 'message')}, {self.tokens:,} of {self.tokens_before:,} tokens{left})"

    def _repr_html_(self) -> str:
        """Return what was omitted and changed, for a notebook."""
        rows = [(omission.place, f"omitted: {omission.reason.value}", omission.by) for omission in self.omitted]
        rows += [(str(change.handle or ""), change.what, f"{change.how.value}: {change.why}") for change in self.report]
        return html_table(repr(self), ("handle", "what", "why"), rows)


def fit(  # noqa: PLR0913 - what a request is made of, and how it is to be fitted
    messages: Iterable[Any],
    *,
    model: str,
    budget: BudgetLike | None = None,
    policy: PolicyLike = DEFAULT_POLICY,
    system: Any = None,  # noqa: ANN401 - a text, or a list of text blocks
    tools: Iterable[Mapping[str, Any]] | None = None,
    pinned: Iterable[int] = (),
    speaker: Speakers = None,
    dialect: str | None = None,
    counter: Counter | None = None,
) -> Fit:
    """Make a list of messages fit a model's window, and valid for its provider.

    The list does not change. The same arguments return the same result. A list that grew at its end returns a result that grew at its end, until something
    must be left out again. Keep your own list and fit it again for each call: then every handle refers to it, and nothing is lost.

    Args:
        messages: Dicts of chat completions, OpenAI's Responses, Anthropic's Messages or Gemini, or the message objects of their SDKs; or messages of
            another dialect of `palaver.read_messages`, such as those of a page that uses Vercel's AI SDK.
        model: The model that is called next: its window, tokenizer and rules count.
        budget: What the request may occupy: a number of tokens, a `Budget`, or words that `Budget.parse` reads. It replaces the policy's own
            budget, which is the default. The provider's limits on bytes and images apply, too.
        policy: A policy's name, a configuration, or a context manager. A plain context manager is called with a dialog over the list, and what it
            returns is sent.
        system: The instructions, if they are not in the list: a text, Anthropic's list of text blocks, or Gemini's content.
        tools: The tools' schemas, which count, too.
        pinned: Indexes of messages that must stay.
        speaker: Who said a message, where its role does not show it, such as tool output in a user's message: by index, or a function of index and message.
        dialect: A dialect of `palaver.read_messages`; found from the list by default.
        counter: What counts the tokens; the model's own counter by default.

    Raises:
        InvalidMessage: An item is not a message; the error names its index.
        InvalidInput: Another argument cannot be used, or no message says anything.
        PolicyFailed: The policy raised, or what it returned cannot be sent.
        InfeasibleBudget: What must be sent is larger than the budget; the error has the breakdown.
    """
    if not isinstance(model, str):
        raise InvalidInput(f"The model is {shortened(model)}.", hint="Give its name, such as 'gpt-5'.")
    schemas, specs = tool_specs(tools)
    source = read_list(messages, dialect, schemas, model)
    source = replace(source, read=_with_speakers(source, speaker))
    pins = (message for item in _places(pinned, len(source.items)) for message in source.of(item))
    job = _Job(source, _text(system), specs, (*pins, *_newest_compaction(source.read)), model)
    manager = fitting_policy(policy, model if budget is None else "")  # a budget of the caller's needs no window
    meter = Meter(_counter(counter, model))
    own = budget
    if budget is None and isinstance(manager, Policy):
        own = manager.budget if manager.model_name else manager.budget_for(model)
    room = Budget.parse(own, model)
    return job.fitted(job.fit(manager, room, meter), system)


def fitting_policy(config: PolicyLike, model: str = "") -> ContextManager:
    """Return a policy, one that `fit` can use.

    Args:
        config: As for `fit`.
        model: The model, unless the configuration names one.

    Raises:
        NotFound: No policy has this name.
        InvalidInput: The configuration is wrong, or the policy asks the provider to compact.
    """
    manager = policy_of(config, model)
    if manager is None:
        raise InvalidInput("fit() needs a policy.", hint="Name one, such as 'palaver'; 'full' leaves nothing out.")
    if isinstance(manager, Policy) and manager.asks_provider:
        raise InvalidInput(
            f"fit() returns messages, and the policy {manager.name!r} asks the provider to compact, by a field of the request.",
            hint="Set that field of your own request, and keep the answers whole: under other policies the newest compaction stays in the list.",
        )
    return manager


Speakers = Callable[[int, Any], Speaker | str | None] | Mapping[int, Speaker | str] | None
"""Who said the messages of a list; None for whoever speaks in the role."""


@dataclass(frozen=True, slots=True)
class _Done:
    composed: Composed
    written: Written
    tools: tuple[ToolSpec, ...]
    tokens: int


@dataclass(frozen=True)
class _Job:
    """One list to fit."""

    source: ReadList
    system: str
    tools: Sequence[ToolSpec]
    pinned: Sequence[int]
    model: str

    @property
    def read(self) -> Sequence[Message]:
        """What was read from the list."""
        return self.source.read

    @cached_property
    def media(self) -> bool:
        """Whether the list has any images or sounds."""
        return any(True for message in self.read for _ in media_of(message))

    @property
    def profile(self) -> Profile:
        """What the provider accepts."""
        said = self.source.dialect
        return profile_of(self.model) if said is None else profile(said.name, self.model)

    def fitted(self, done: _Done, system: Any) -> Fit:  # noqa: ANN401 - as it was given
        """Return the list with the caller's own messages wherever nothing was done to them."""
        return Fit(
            messages=self.source.own(done.written.items),
            system=_with(system, done.written.system),
            tools=[dict(self.source.declare(tool)) for tool in done.tools],
            omitted=(*done.composed.view.omissions, *_changed_blocks(done.composed, self.read)),
            report=Report((*_repairs(done.composed.view, self.read), *done.written.changes)),
            tokens=done.tokens,
            tokens_before=done.composed.before.total,
            _list=ListRecall(self.source.given, self.read),
        )

    def fit(self, manager: ContextManager, budget: Budget, meter: Meter) -> _Done:
        """Fit the list; once something is left out, with the tools that bring it back; into less room where writing added something."""
        before = _listed(self.read, self.system, self.tools, self.pinned)
        said = self.source.dialect
        if not before.exchanges and (not before.leading or (said is not None and said.model_role)):
            raise InvalidInput(
                "There is nothing to send: no message of the list says anything.",
                hint="Give at least one message with words, a call or a result.",
            )
        writer = self._writer(before)
        limit, added = budget.limit, 0
        for _ in range(_TRIES):
            room = budget.with_limit(limit - added) if added else budget
            try:
                composed, tools = self._composed(before, self.read, manager, room, meter)
            except InfeasibleBudget as error:
                if error.unit != "tokens":
                    raise
                part = {**error.breakdown, **({"around the messages": added} if added else {})}
                needed = min(part, self._whole(writer, meter), key=lambda sizes: sum(sizes.values()))
                raise InfeasibleBudget(limit, sum(needed.values()), needed) from error
            if self.profile.reasoning.bound and composed.view is not before:
                composed = self._bound(composed, tools, before, manager, room, meter)
            written = writer.write(composed.view)
            size = self._size(written, meter) if written.grew else composed.after.total
            tokens = size + (self._recall(before, meter)[1] if tools else 0)
            if tokens <= limit or (isinstance(manager, Policy) and not manager.enabled):
                return _Done(composed, written, tools, tokens)
            added += tokens - limit
        raise InfeasibleBudget(limit, limit + added, {"around the messages": limit + added})

    def _writer(self, before: View) -> ListWriter | MessageWriter:
        said = self.source.dialect
        if said is None:
            return MessageWriter(self.source, before)
        lenient = self._another_maker()
        return ListWriter(said, self.source.items, self.read, before, self.profile, self.model, lenient=lenient)

    def _composed(
        self, before: View, read: Sequence[Message], manager: ContextManager, budget: Budget, meter: Meter
    ) -> tuple[Composed, tuple[ToolSpec, ...]]:
        """Return what a list becomes, and the tools that bring back what is left out; none while it is whole."""
        room = self._limits(budget, before, read)
        tools, extra = self._recall(before, meter)
        notes = (
            isinstance(manager, Policy) and manager.enabled and not manager.complete
        )  # notes ask to recall what is left out
        if not notes or meter.fits(before, room.limit):
            composed = compose(before, manager, room, meter)
            if composed.view is before:
                return composed, ()
            if not notes or composed.after.total + extra <= room.limit:
                return composed, tools if composed.after.total + extra <= room.limit else ()
        try:
            return compose(before, manager, room.with_limit(room.limit - extra), meter), tools
        except InfeasibleBudget as error:
            if error.unit != "tokens":
                raise
            part = {**error.breakdown, "tools": error.breakdown.get("tools", 0) + extra}
            raise InfeasibleBudget(room.limit, sum(part.values()), part) from error

    def _recall(self, before: View, meter: Meter) -> tuple[tuple[ToolSpec, ...], int]:
        """Return the tools that bring back what is left out, and their size."""
        declared = {tool.name for tool in self.tools}
        more = tuple(tool for tool in RECALL_TOOLS if tool.name not in declared)
        both = replace(before, tools=(*before.tools, *more))
        return more, meter.fixed(both).tools - meter.fixed(before).tools

    def _limits(self, budget: Budget, view: View, read: Sequence[Message]) -> Budget:
        """Return the budget with the provider's limits on bytes and images, unless the list is too small to reach them."""
        media = [medium for message in read for medium in media_of(message)] if self.media else []
        size = _JSON_BYTES * sum(exchange.size for exchange in view.exchanges) + _BASE64 * sum(
            medium.size for medium in media
        )
        most_bytes = self.profile.request_bytes if size > self.profile.request_bytes else None
        most_media = self.profile.media.count if media else None
        return replace(
            budget, max_bytes=_least(budget.max_bytes, most_bytes), max_media=_least(budget.max_media, most_media)
        )

    def _whole(self, writer: ListWriter | MessageWriter, meter: Meter) -> Mapping[str, int]:
        """Return the parts of the whole list as it would be sent: it needs no tools that bring something back."""
        measured, written = meter.view(writer.before), writer.write(writer.before)
        around = max(self._size(written, meter) - measured.total, 0) if written.grew else 0
        return {name: size for name, size in {**measured.parts(), "around the messages": around}.items() if size}

    def _size(self, written: Written, meter: Meter) -> int:
        system = "\n\n".join(filter(None, (self.system, written.system)))
        read = _with_speakers(self.source.again(written.items), None)
        return meter.view(_listed(read, system, self.tools, ())).total

    def _bound(
        self,
        composed: Composed,
        tools: tuple[ToolSpec, ...],
        before: View,
        manager: ContextManager,
        room: Budget,
        meter: Meter,
    ) -> Composed:
        """Return a list without the thinking that a provider that checks would refuse, because its request had other words before it.

        The list up to an answer is what its request was made from: where that is fitted to the beginning of the present one, with the same tools that
        recall, the answer's thinking is bound to what precedes it now. Nothing is known of what a plain context manager did before.
        """
        cut = composed.view
        places = {exchange.first: index for index, exchange in enumerate(before.exchanges)}
        ends = [0, *accumulate((max(run.stop for run in exchange.runs) for exchange in before.exchanges), max)]

        def same(index: int) -> bool:
            """Return whether the request of an answer was made from what comes before it now."""
            first = cut.exchanges[index].first
            count = places.get(first)
            if not isinstance(manager, Policy) or first is None or count is None or ends[count] > first.seq:
                return False
            earlier = replace(before, exchanges=before.exchanges[:count], grown=(before.columns, count))
            try:
                then, offered = self._composed(earlier, self.read[: first.seq], manager, room, meter)
            except InfeasibleBudget:
                return False
            return offered == tools and then.view.exchanges == cut.exchanges[:index]

        kept = set[int]()
        sizes = list(accumulate(map(meter.exchange, cut.exchanges)))
        for answers in _asked_together(cut, before, meter):
            likely = bisect_left(answers, room.target, key=sizes.__getitem__)  # a cut goes down to the target
            kept.update(answers[_first(answers, same, likely) :])
        refused = [index for index, exchange in enumerate(cut.exchanges) if _thinks(exchange) and index not in kept]
        return _without_thinking(composed, refused, meter) if refused else composed

    def _another_maker(self) -> bool:
        """Return whether another maker's model is called in the dialect of OpenAI."""
        said = self.source.dialect
        return (
            bool(self.model)
            and said is not None
            and said.name == "openai-chat"
            and not model_info(self.model).family.startswith("openai")
        )


def _first(answers: Sequence[int], same: Callable[[int], bool], likely: int) -> int:
    """Return the place from which on all answers are the same, asking for as few as it takes from the likely place on."""
    low, high, step = 0, len(answers), 1
    while low < high:
        at = min(max(likely, low), high - 1) if low == 0 or high == len(answers) else (low + high) // 2
        if same(answers[at]):
            high, likely = at, at - step
        else:
            low, likely = at + 1, at + step
        step *= 2
    return low


def _thinks(exchange: Exchange) -> bool:
    return any(isinstance(block.content, ThinkingContent) for block in exchange.blocks())


def _asked_together(cut: View, before: View, meter: Meter) -> list[list[int]]:
    """Return the indexes of the answers that think, in parts in which every answer behind one with the present cut had it, too.

    Cuts move forward while a list grows. They go back where something counts less than it did: an output that is shortened by now, so that what comes
    behind a change is a part of its own; or the message of the user that the requests of its turn had to show. Where that one is larger than all that
    came since, each answer is asked alone, as where nothing before it is changed.
    """
    places = {id(exchange): index for index, exchange in enumerate(before.exchanges)}
    sizes = [meter.exchange(exchange) for exchange in cut.exchanges]
    parts: list[list[int]] = [[]]
    since, user, due, whole = sum(sizes), 0, 0, True
    for index, exchange in enumerate(cut.exchanges):
        place = places.get(id(exchange))
        whole = whole and place == due
        if due < 0 or place not in {due, None}:
            parts.append([])
        if _thinks(exchange) and (whole or since < user):
            parts += [[index], []]
        elif _thinks(exchange):
            parts[-1].append(index)
        user = sizes[index] if exchange.role is Role.USER and not exchange.derived else user
        since -= sizes[index]
        due = -1 if place is None else place + 1
    return parts


def _without_thinking(composed: Composed, refused: Sequence[int], meter: Meter) -> Composed:
    """Return a list without the thinking of some exchanges."""
    exchanges, omissions = list(composed.view.exchanges), list(composed.view.omissions)
    for index in refused:
        thoughts = {
            block.origin: len(block.content.content)
            for block in exchanges[index].blocks()
            if isinstance(block.content, ThinkingContent) and block.origin is not None
        }
        gone = dict.fromkeys(thoughts, BlockChange(Reason.UNBOUND))
        exchanges[index] = replace(exchanges[index], changes={**exchanges[index].changes, **gone})
        omissions += [Omission(reason=Reason.UNBOUND, handle=place, size=size) for place, size in thoughts.items()]
    view = replace(composed.view, exchanges=tuple(exchanges), omissions=tuple(omissions))
    return replace(composed, view=view, after=meter.view(view))


def _listed(messages: Sequence[Message], system: str, tools: Sequence[ToolSpec], pinned: Sequence[int]) -> View:
    """Return the view of a list, its instructions and its tools."""
    view = fold_messages(messages, LIST, pinned=pinned)
    text = TextContent(content=system)
    beside = (Block(content=text, speaker=Speaker.HARNESS, trust=Trust.HARNESS),) if system.strip() else ()
    return replace(view, system=(*beside, *view.system), tools=tuple(tools))


_TRIES = 4
"""How often a view is made smaller by what writing it added."""


# --- arguments ----------------------------------------------------------------------------------------------------------


def _with_speakers(source: ReadList, speaker: Speakers) -> tuple[Message, ...]:
    """Return the messages of a list with who said them."""
    if speaker is not None and not callable(speaker) and not isinstance(speaker, Mapping):
        raise InvalidInput(
            f"The speaker is {shortened(speaker)}.",
            hint="Pass a mapping from index to speaker, or a function of index and message.",
        )
    spoken = []
    for index, given, message in zip(source.owners, source.given, source.read, strict=True):
        who = speaker(index, given) if callable(speaker) else (speaker or {}).get(index)
        if who is None and message.role is Role.USER:
            who, message = _by_fit(message)  # noqa: PLW2901 - the message as it was before it was marked
        if who is not None and who not in tuple(Speaker):
            raise InvalidInput(
                f"The speaker of message {index} is {shortened(who)}.", hint=f"Speakers: {', '.join(Speaker)}."
            )
        spoken.append(message if who is None else message.model_copy(update={"speaker": Speaker(who)}))
    return tuple(spoken)


def _by_fit(message: Message) -> tuple[Speaker | None, Message]:
    """Return who said a message that an earlier `fit` put into the list, and what it said; None for any other message."""
    stand_in = marked(message.content) if isinstance(message.content, str) else None
    if stand_in is None:
        return None, message
    if stand_in[0] not in {"record", "summary"}:
        return Speaker.HARNESS, message
    return Speaker.SUMMARY, message.model_copy(update={"contents": (TextContent(content=stand_in[1]),)})


def _counter(given: Counter | None, model: str) -> Counter:
    if given is None:
        return counter_of(model)
    if not (hasattr(given, "family") and callable(getattr(given, "text", None))):
        raise InvalidInput(
            f"The counter is {shortened(given)}.",
            hint="Pass a palaver.tokens.Counter: an object with `family` and `text()`.",
        )
    return given


def _text(system: object) -> str:
    """Return instructions as one text."""
    if system is None or isinstance(system, str):
        return system or ""
    parts = system.get("parts") if isinstance(system, Mapping) else system
    if isinstance(parts, list | tuple) and all(isinstance(part, Mapping) for part in parts):
        return "\n\n".join(str(part.get("text", "")) for part in parts)
    raise InvalidInput(f"Instructions are a text, a list of text blocks or a content with parts, not {a_type(system)}.")


def _with(system: Any, more: str) -> Any:  # noqa: ANN401 - as it was given
    """Return the instructions with more of them; the same object when there are none."""
    if not more:
        return system
    if isinstance(system, Mapping):
        return {**system, "parts": [*system["parts"], {"text": more}]}
    if isinstance(system, list | tuple):
        return [*system, {"type": "text", "text": more}]
    return f"{system}\n\n{more}" if system else more


def _newest_compaction(messages: Sequence[Message]) -> Iterator[int]:
    """Return the place of what a provider made of the conversation before: nothing else in the list says what was said there."""
    for index in range(len(messages) - 1, -1, -1):
        if any(content.type == COMPACTION for content in messages[index].contents):
            yield index
            return


def _places(pinned: object, length: int) -> tuple[int, ...]:
    given = tuple(pinned) if isinstance(pinned, Iterable) else (None,)
    if not all(isinstance(place, SupportsIndex) for place in given):
        raise InvalidInput(
            f"The pinned indexes are {shortened(pinned)}.", hint="Pass indexes of the list, such as [0]."
        )
    places = tuple(map(place_of, given))
    outside = [place for place in places if not 0 <= place < length]
    if outside:
        raise InvalidInput(f"Message {outside[0]} is pinned, but the list has only {length}.")
    return places


_JSON_BYTES, _BASE64 = 8, 2
"""The most bytes of a request that one character, and one byte of media, need with their surroundings."""


def _least(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else min(first, second)


# --- what became of the rest ----------------------------------------------------------------------------------------------


def _changed_blocks(composed: Composed, read: Sequence[Message]) -> Iterator[Omission]:
    """Yield the blocks that are shown in another form, or left out of a message that stays."""
    listed_already = {gone.handle for gone in composed.view.omissions}
    for exchange in composed.view.exchanges:
        for block in exchange.blocks():
            place = block.origin
            if block.reason is None or place is None or place.block is None or place in listed_already:
                continue
            content = read[place.seq].contents[place.block]
            size = sum(media.size for media in media_of(read[place.seq])) + len(str(getattr(content, "content", "")))
            yield Omission(reason=block.reason, handle=place, by=composed.by, size=size)


_REPAIRS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.EMPTY: "it says nothing, and providers refuse empty messages",
        Reason.DUPLICATE_RESULT: "its call has a result already; the first one counts",
        Reason.FAILED_RESPONSE: "the response was cut off by an error and has nothing to reply to",
        Reason.NOT_SHOWN: "its role is never shown to a model",
    }
)


def _repairs(view: View, read: Sequence[Message]) -> Iterator[Change]:
    """Report what was repaired in the list."""
    for gone in view.omissions:
        why = _REPAIRS.get(gone.reason)
        yield from (Change(handle, "message", How.DROPPED, why) for handle in gone.handles() if why)
    for block in (block for exchange in view.exchanges for block in exchange.blocks()):
        if block.derived in {"waiting", "interrupted"}:
            yield Change(None, "tool result", How.ADDED, "its call has none in the list")
        elif block.reason is Reason.UNPAIRED:
            yield Change(block.origin, "tool result", How.CHANGED, "its call is not there: shown as text")
    for index in (index for index, message in enumerate(read) if message.normalized):
        yield Change(
            Handle(LIST, index), "text", How.CHANGED, "it had lone surrogates or NUL, which no request carries"
        )
