"""`fit`: a context engine over a plain list of messages, in one call, without a store and without an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index as place_of
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, SupportsIndex

from palaver.context.compose import Composed, compose
from palaver.context.fitting.dialect import DIALECTS, Dialect, dialect, tool_specs
from palaver.context.fitting.given import dicts_of, items_of
from palaver.context.fitting.listing import LIST, listed
from palaver.context.fitting.output import Source, output, reread
from palaver.context.ledger import Ledger
from palaver.context.limits import within_profile
from palaver.context.managed import planner
from palaver.context.manager import ContextManager, Policy
from palaver.context.measure import Meter, Size
from palaver.context.registry import policy as named
from palaver.context.units import media_in
from palaver.context.unseen import unseen_media
from palaver.errors import InfeasibleBudget, InvalidInput, InvalidMessage, UnknownHandle
from palaver.log import Handle
from palaver.messages import Message, TextContent, ToolResultContent
from palaver.tokens import Budget, Counter, model_info
from palaver.tokens import counter as counter_of
from palaver.view import Omission, Reason, View
from palaver.wire import Change, How, Report, profile

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A list that fits, and what became of the rest.

    Attributes:
        messages: The list, in the dialect of the caller's; messages that were not touched are the caller's own objects.
        system: The instructions to send beside it: the ones given, with those that stood in the list and cannot stand there.
        report: Everything that was repaired, changed or added, in words; images and sounds that left a block, too.
        omitted: What is not in the list, with reason and handles: whole messages, blocks, and blocks whose images or sounds are not. Handles
            count the caller's list from 0.
        tokens: The size of the request with the list that is given back, in tokens: instructions, tools and messages.
        tokens_before: The same for the list as it came.
    """

    messages: list[Any]
    system: Any
    report: Report
    omitted: tuple[Omission, ...]
    tokens: int
    tokens_before: int
    _given: Sequence[Any] = field(repr=False)
    _read: Sequence[Message] = field(repr=False)

    def recall(self, handle: Handle | str) -> Any:  # noqa: ANN401 - the caller's own, whatever it is
        """Bring back what a handle names.

        Returns:
            The caller's own message; for a handle that names a block, its text, or the block where it is more than a text: a result with
            images is a `ToolResultContent` with all of them.

        Raises:
            InvalidHandle: The text is no handle.
            UnknownHandle: Nothing in this list has it.
        """
        place = Handle.parse(handle) if isinstance(handle, str) else handle
        if not LIST.startswith(place.dialog) or not 0 <= place.seq < len(self._given):
            raise UnknownHandle(str(place))
        if place.block is None:
            return self._given[place.seq]
        contents = self._read[place.seq].contents
        if not 0 <= place.block < len(contents):
            raise UnknownHandle(str(place))
        content = contents[place.block]
        if isinstance(content, ToolResultContent) and not any(media_in(content)):
            return content.text()
        return content.content if isinstance(content, TextContent) else content


def fit(  # noqa: PLR0913 - what a request is made of, and how it is to be fitted
    messages: Iterable[Any],
    *,
    model: str,
    system: Any = None,  # noqa: ANN401 - a text, or a list of text blocks
    tools: Iterable[Mapping[str, Any]] | None = None,
    policy: str | ContextManager | Mapping[str, Any] = "default",
    budget: Budget | int | Mapping[str, object] | None = None,
    pinned: Iterable[int] = (),
    dialect_name: str | None = None,
    counter: Counter | None = None,
) -> Fit:
    """Make a list of messages fit a model's window, and valid for its provider.

    The list given is never changed. The same list, model and budget give the same result; and a list that grew at its end gives a
    result that grew at its end, until something has to be left out again.

    Keep your own list and fit it anew for each call: then nothing is ever lost, and every handle counts it. What was given back may also
    be gone on with and fitted again: the records in it are read as records, never as the user's words, and what the user said must be is
    carried from one to the next. But what they shortened is gone, and handles in them counted the list before.

    Args:
        messages: Dicts as chat completions, OpenAI's Responses, Anthropic's interface or Gemini's take them, or the objects that their
            SDKs give in their place: messages, input items or contents.
        model: The model that is called next: its window, tokenizer and rules count.
        system: Instructions sent beside the list: a text, Anthropic's list of text blocks, or Gemini's content.
        tools: The schemas sent beside it; they take room too.
        policy: A name, a configuration, or a context manager.
        budget: The room: a `Budget`, the number of tokens that the request may occupy, or words that `Budget.parse` reads; unless
            given, the policy's own for the model, and of a context manager without one the model's window with room for the answer.
            The bytes and images that the provider takes are kept to besides.
        pinned: The places in the list of messages that must stay in, counted from 0.
        dialect_name: `openai-chat`, `openai-responses`, `anthropic` or `gemini`; found from the list unless given.
        counter: What counts the tokens; the model's own counter unless given.

    Raises:
        InvalidMessage: One of the messages is none; the error says which.
        InvalidInput: Another argument cannot be used, or no message says anything.
        PolicyFailed: The policy raised.
        InfeasibleBudget: What must be sent is larger than the budget; the error has the breakdown.
    """
    _require_texts(model, dialect_name)
    items = items_of(messages)
    _require_finite(items, "messages")
    given = dicts_of(items)
    schemas = _schemas(tools)
    said = dialect(dialect_name, given, schemas, model)
    reader = said.reader()
    read = tuple(_read(reader, message, index) for index, message in enumerate(given))
    before = listed(read, system=_text(system), tools=tool_specs(schemas), pinned=_places(pinned, len(given)))
    if not before.exchanges and (said.turns or not before.leading):
        raise InvalidInput(
            "There is nothing to send: no message of the list says anything.",
            hint="Give at least one message with words, a call or a result.",
        )
    source = Source(given, read, before, said, profile(said.name, model), model, foreign=_foreign(said, model))
    meter = Meter(_counter(counter, model))
    manager = _manager(policy, model)

    def written(room: Budget) -> _Written:
        composed = compose(before, planner(manager), room, meter.counter, ledger=Ledger(meter=meter))
        out, beside, changes = output(source, composed.view)
        instructions = _with(system, beside)
        size = meter.view(listed(reread(source, out), system=_text(instructions), tools=tool_specs(schemas)))
        return _Written(composed, out, instructions, changes, size)

    own = manager.budget_for(model) if budget is None and isinstance(manager, Policy) else budget
    done = _within(within_profile(Budget.parse(own, model), source.profile), written)
    unseen = tuple(unseen_media(done.composed, read))
    theirs = {id(message): item for message, item in zip(given, items, strict=True)}
    return Fit(
        messages=[theirs.get(id(message), message) for message in done.messages],
        system=done.system,
        report=Report((*_repairs(done.composed.view, read), *(change for _, change in unseen), *done.changes)),
        omitted=(*done.composed.view.omissions, *(gone for gone, _ in unseen)),
        tokens=done.size.total,
        tokens_before=done.composed.tokens_before,
        _given=items,
        _read=read,
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A view written as a list, and the size of that list."""

    composed: Composed
    messages: list[Any]
    system: Any
    changes: tuple[Change, ...]
    size: Size


def _within(budget: Budget, written: Callable[[Budget], _Written]) -> _Written:
    """Write the list; where writing made it larger than the budget, from a view that is so much smaller.

    A list may have to say more than its view does: who speaks first, what could not be sent.

    Raises:
        InfeasibleBudget: What must be sent, and what has to be said around it, is larger than the budget.
    """
    more = 0
    for _ in range(_TRIES):
        done = _attempt(budget, more, written)
        over = done.size.total - budget.for_input
        if over <= 0:
            return done
        more += over
    raise InfeasibleBudget(budget.for_input, budget.for_input + more, {"around the messages": budget.for_input + more})


def _attempt(budget: Budget, more: int, written: Callable[[Budget], _Written]) -> _Written:
    """Write the list from a view that leaves so many tokens of the budget free."""
    if not more:
        return written(budget)
    try:
        return written(budget.with_input(budget.for_input - more))
    except InfeasibleBudget as error:
        around = {**error.breakdown, "around the messages": more}
        raise InfeasibleBudget(budget.for_input, error.needed + more, around) from error


_TRIES = 4
"""How often the view is made smaller by what writing added: what is added depends on what is left, and hardly on how much."""


def _require_texts(model: object, dialect_name: object) -> None:
    """Insist that the model and the dialect are named by texts."""
    if not isinstance(model, str):
        raise InvalidInput(f"The model is {shortened(model)}.", hint="Give its name, such as 'gpt-5'.")
    if dialect_name is not None and not isinstance(dialect_name, str):
        raise InvalidInput(
            f"The dialect_name is {shortened(dialect_name)}.", hint=f"Give one of {', '.join(DIALECTS)}, or None."
        )


def _require_finite(items: Sequence[object], argument: str) -> None:
    """Insist that nothing contains itself: what reads it would come to no end."""
    for index, item in enumerate(items):
        left = [(item, 0)]
        while left:
            value, depth = left.pop()
            if depth > _DEEPEST:
                raise InvalidInput(
                    f"Item {index} of the {argument} contains itself, or has more than {_DEEPEST} levels.",
                    hint="Pass what can be written as JSON.",
                )
            if isinstance(value, Mapping):
                left.extend((each, depth + 1) for each in value.values())
            elif isinstance(value, list | tuple):
                left.extend((each, depth + 1) for each in value)


_DEEPEST = 200
"""Levels of an item that are read: twice what any value of a message may have, and no more than the interpreter can follow."""


def _schemas(tools: object) -> tuple[Mapping[str, Any], ...]:
    """Give the tools' schemas, each of them a dict."""
    hint = "Pass a list of the dicts that the provider gets."
    if tools is None:
        return ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise InvalidInput(f"The tools are {shortened(tools)}, not a list.", hint=hint)
    schemas = tuple(tools)
    for index, schema in enumerate(schemas):
        if not isinstance(schema, Mapping):
            raise InvalidInput(f"Item {index} of the tools is {shortened(schema)}, no tool's schema.", hint=hint)
    _require_finite(schemas, "tools")
    return schemas


def _counter(given: Counter | None, model: str) -> Counter:
    """Give what counts: what was given, or the model's own."""
    if given is None:
        return counter_of(model)
    if not (hasattr(given, "family") and callable(getattr(given, "text", None))):
        raise InvalidInput(
            f"The counter is {shortened(given)}.",
            hint="Give a palaver.tokens.Counter: an object with `family` and `text()`.",
        )
    return given


def _read(reader: Callable[..., Message], message: Mapping[str, Any], index: int) -> Message:
    try:
        return reader(message, id=f"message-{index}", timestamp=0.0)
    except InvalidMessage as error:
        raise InvalidMessage(
            f"Item {index} of the messages: {error.message}", faults=error.faults, hint=error.hint
        ) from error


def _foreign(said: Dialect, model: str) -> bool:
    """Tell whether another maker's model is called in the words of OpenAI's interface."""
    return bool(model) and said.name == "openai-chat" and not model_info(model).family.startswith("openai")


def _manager(config: str | ContextManager | Mapping[str, Any], model: str) -> ContextManager:
    """Find the policy that is meant."""
    made = named(config, model)
    if made is None:
        raise InvalidInput("fit() needs a policy.", hint="Name one, such as 'default'; 'full' leaves nothing out.")
    return made


def _text(system: object) -> str:
    """Give instructions as one text."""
    if system is None or isinstance(system, str):
        return system or ""
    parts = system.get("parts") if isinstance(system, Mapping) else system
    if isinstance(parts, list | tuple) and all(isinstance(part, Mapping) for part in parts):
        return "\n\n".join(str(part.get("text", "")) for part in parts)
    raise InvalidInput(
        f"Instructions are a text, a list of text blocks or a content with parts, not a {type(system).__name__}."
    )


def _with(system: Any, more: str) -> Any:  # noqa: ANN401 - as it was given
    """Give the instructions with more of them; the very object when there are none."""
    if not more:
        return system
    if isinstance(system, Mapping):
        return {**system, "parts": [*system["parts"], {"text": more}]}
    if isinstance(system, list | tuple):
        return [*system, {"type": "text", "text": more}]
    return f"{system}\n\n{more}" if system else more


def _places(pinned: object, length: int) -> tuple[int, ...]:
    """Give the places of what is pinned, each of them in the list."""
    given = tuple(pinned) if isinstance(pinned, Iterable) else (None,)
    if not all(isinstance(place, SupportsIndex) for place in given):
        raise InvalidInput(
            f"What is pinned is {shortened(pinned)}.",
            hint="Give a list of places in the list of messages, counted from 0, such as [0].",
        )
    places = tuple(map(place_of, given))
    outside = [place for place in places if not 0 <= place < length]
    if outside:
        raise InvalidInput(f"Message {outside[0]} is pinned, and the list has {length}.")
    return places


_REPAIRS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.EMPTY: "it says nothing, and providers refuse empty messages",
        Reason.DUPLICATE_RESULT: "its call has a result already; the first one counts",
        Reason.FAILED_RESPONSE: "the response was cut off by an error and holds nothing that can be replied to",
        Reason.NOT_SHOWN: "its role is never shown to a model",
    }
)


def _repairs(view: View, read: Sequence[Message]) -> Iterable[Change]:
    """Tell what the fold had to put right in the list."""
    for gone in view.omissions:
        why = _REPAIRS.get(gone.reason)
        yield from (Change(handle, "message", How.DROPPED, why) for handle in gone.handles() if why)
    for block in (block for exchange in view.exchanges for block in exchange.blocks()):
        if block.derived in {"pending", "interrupted"}:
            yield Change(None, "tool result", How.ADDED, "its call has none in the list")
        elif block.reason is Reason.UNPAIRED:
            yield Change(block.origin, "tool result", How.CHANGED, "its call is not there: shown as text")
    for index in (index for index, message in enumerate(read) if message.normalized):
        yield Change(
            Handle(LIST, index), "text", How.CHANGED, "it had lone surrogates or NUL, which no request carries"
        )
