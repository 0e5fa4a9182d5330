"""The laws of a provider, to run over any: ours, and yours.

A provider gets every law by subclassing::

    class TestMine(ProviderLaws):
        model = "my-model"

        def provider(self) -> Provider:
            return MyProvider(base_url="http://127.0.0.1:8000")

        def questions(self) -> Iterable[Question]:
            return [Question("hello"), Question("list the files", tools=(LS,))]

The questions are asked whole and streamed; whoever answers them (a server on loopback, a script) should answer alike both times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import anyio

from palaver.errors import ProviderError
from palaver.log import Toolset, ToolSpec
from palaver.messages import (
    AssistantMessage,
    Role,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    decode,
    encode,
)
from palaver.models import Assembly, End, Event, Provider, collect
from palaver.session import Dialog
from palaver.wire import PROFILES, Request

__all__ = ["ProviderLaws", "Question", "told"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """Something a provider is asked.

    Attributes:
        text: The user's words.
        tools: The tools that are declared.
        call: Further fields of a Call, such as `max_tokens`.
        fails: The error it ends in, or None.
    """

    text: str
    tools: tuple[ToolSpec, ...] = ()
    call: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    fails: type[ProviderError] | None = None


class ProviderLaws:
    """What holds for every provider. A subclass gives the provider and what it is asked."""

    model: ClassVar[str] = "a-model"

    def provider(self) -> Provider:
        """Make a provider; each law gets its own, in an event loop of its own."""
        raise NotImplementedError

    def questions(self) -> Iterable[Question]:
        """Give the questions."""
        raise NotImplementedError

    def lost(self, question: Question) -> frozenset[str]:
        """Name what of an answer cannot go back to this provider, in the words of a Report: `thinking` over an API that takes none."""
        del question
        return frozenset()

    # --- the laws --------------------------------------------------------------------------------------------------------

    def test_it_is_a_provider(self) -> None:
        """It has a name, and a profile for its model."""
        provider = self.provider()
        assert isinstance(provider, Provider)
        assert provider.name
        assert provider.profile_for(self.model).name in PROFILES

    def test_an_answer_is_deltas_usage_and_one_end(self) -> None:
        """The last event, and no other, is the end; its blocks and usage are those that the events before add up to."""
        for _, request in self._asked():
            events = self._events(request)
            assert [isinstance(event, End) for event in events] == [False] * (len(events) - 1) + [True]
            end, assembly = events[-1], Assembly()
            assert isinstance(end, End)
            for event in events[:-1]:
                assembly.add(event)
            assert assembly.made().contents == end.message.contents
            assert assembly.usage == end.message.usage

    def test_whatever_has_come_is_a_valid_message(self) -> None:
        """After each event the partial message can be stored and read, keeps its id, and never shrinks."""
        for _, request in self._asked():
            assembly, length = Assembly(), 0
            for event in self._events(request):
                if not isinstance(event, End):
                    assembly.add(event)
                partial = assembly.partial
                assert decode(encode(partial)[0]) == partial
                assert len(partial.text_content()) >= length
                length = len(partial.text_content())

    def test_a_message_says_who_said_it_and_why_it_ends(self) -> None:
        """Role, model, provider and stop reason are there: the next request depends on them."""
        for _, request in self._asked():
            message = self._answer(request)
            assert message.role is Role.ASSISTANT
            assert message.model == self.model
            assert message.model_extra.get("provider")
            assert message.stop_reason is not None

    def test_streamed_and_whole_are_the_same_message(self) -> None:
        """How an answer travels leaves no trace in what is kept of it, ids aside that are new in each answer."""
        for question in self._answered():
            whole, streamed = (self._answer(self._request(question, stream=stream)) for stream in (False, True))
            assert told(whole) == told(streamed)

    def test_an_answer_goes_back(self) -> None:
        """With results for its calls and new words, the answer is part of a valid request; nothing of it is lost on the way."""
        for question in self._answered():
            dialog = self._dialog(question)
            message = self._answer(self._request(question, stream=True))
            dialog.append(message)
            results = [ToolResultContent(id=call.id, content="done") for call in message.tool_calls()]
            if results:
                dialog.append(ToolMessage.from_results(results))
            dialog.append(UserMessage(content="go on"))
            request = dialog.request(self.provider().profile_for(self.model), self.model, **question.call)
            assert {change.what for change in request.report.lost()} <= self.lost(question)

    def test_a_failure_is_a_typed_error(self) -> None:
        """Streamed or whole, it is the same kind of error, and it names the provider and the model."""
        for question in self.questions():
            for stream in (False, True) if question.fails else ():
                error = self._failure(self._request(question, stream=stream))
                assert type(error) is question.fails, f"{question.text}: {error!r}"
                assert error.provider
                assert error.model == self.model

    def test_an_answer_can_be_left_and_the_provider_asked_again(self) -> None:
        """Closing the events in the middle harms nothing, nor does closing the provider."""

        async def leave(provider: Provider) -> AssistantMessage:
            request = self._request(next(iter(self._answered())), stream=True)
            async with aclosing(provider.stream(request)) as events:
                await anext(events)
            await provider.aclose()
            return await collect(provider.stream(request))

        assert self._run(leave).contents

    def test_answers_do_not_mix(self) -> None:
        """Several are asked at once; each answer is the one to its question."""
        questions = list(self._answered())
        alone = [told(self._answer(self._request(question, stream=True))) for question in questions]

        async def together(provider: Provider) -> list[Mapping[str, Any]]:
            out: list[Mapping[str, Any]] = [{}] * len(questions)

            async def ask(number: int) -> None:
                out[number] = told(await collect(provider.stream(self._request(questions[number], stream=True))))

            async with anyio.create_task_group() as group:
                for number in range(len(questions)):
                    group.start_soon(ask, number)
            return out

        assert self._run(together) == alone

    # --- how they are asked ----------------------------------------------------------------------------------------------

    def _answered(self) -> Iterable[Question]:
        return (question for question in self.questions() if question.fails is None)

    def _asked(self) -> Iterable[tuple[Question, Request]]:
        for question in self._answered():
            for stream in (False, True):
                yield question, self._request(question, stream=stream)

    def _dialog(self, question: Question) -> Dialog:
        dialog = Dialog(owner="asker")
        if question.tools:
            dialog.record(Toolset(tools=question.tools))
        dialog.append(UserMessage(content=question.text))
        return dialog

    def _request(self, question: Question, *, stream: bool) -> Request:
        profile = self.provider().profile_for(self.model)
        return self._dialog(question).request(profile, self.model, stream=stream, **question.call)

    def _run(self, ask: Callable[[Provider], Awaitable[T]]) -> T:
        async def asked() -> T:
            provider = self.provider()
            try:
                return await ask(provider)
            finally:
                await provider.aclose()

        return anyio.run(asked)

    def _events(self, request: Request) -> list[Event]:
        return self._run(lambda provider: _listed(provider, request))

    def _answer(self, request: Request) -> AssistantMessage:
        return self._run(lambda provider: collect(provider.stream(request)))

    def _failure(self, request: Request) -> ProviderError:
        try:
            message = self._answer(request)
        except ProviderError as error:
            return error
        raise AssertionError(f"there is an answer: {message.text_content()!r}")


async def _listed(provider: Provider, request: Request) -> list[Event]:
    return [event async for event in provider.stream(request)]


_FRESH = frozenset({"id", "timestamp", "response_id", "metadata"})
"""Fields of a message that are new in each answer."""


def told(message: AssistantMessage) -> Mapping[str, Any]:
    """Give what a message says, without what is new in each answer: ids and times, and the ids of reasoning items."""
    said = {key: value for key, value in message.to_dict().items() if key not in _FRESH}
    for block in said["contents"]:
        if block.get("error") is None:
            block.pop("raw_args", None)  # the same arguments, with other spaces
        artefact = block.get("artefact")
        if isinstance(artefact, dict):
            block["artefact"] = {
                key: value for key, value in artefact.items() if key not in {"id", "encrypted_content"}
            }
    return said
