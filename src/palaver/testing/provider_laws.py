"""The laws of a provider as a test suite, for any provider.

Subclass it to check a provider::

    class TestMine(ProviderLaws):
        model = "my-model"

        def provider(self) -> Provider:
            return MyProvider(base_url="http://127.0.0.1:8000")

        def questions(self) -> Iterable[Question]:
            return [Question("hello"), Question("list the files", tools=(LS,))]

Each question is asked without and with streaming; the server or script should answer the same both times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
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
from palaver.providers import APIS, Assembly, End, Event, Provider, collect
from palaver.session import Dialog
from palaver.wire import Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a provider.

    Attributes:
        text: The user's text.
        tools: The declared tools.
        call: Further fields of a Call, such as `max_tokens`.
        fails: The kind of the error it ends in, or empty.
    """

    text: str
    tools: tuple[ToolSpec, ...] = ()
    call: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    fails: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """The result of a question."""

    question: Question
    streamed: bool
    events: tuple[Event, ...]
    error: ProviderError | None = None

    @property
    def message(self) -> AssistantMessage:
        """The answer."""
        end = self.events[-1]
        assert isinstance(end, End), "the last event is not an End"
        return end.message


class ProviderLaws:
    """The laws of every provider. A subclass defines the provider and the questions."""

    model: ClassVar[str] = "a-model"

    def provider(self) -> Provider:
        """Return a new provider; each law uses its own, in its own event loop."""
        raise NotImplementedError

    def questions(self) -> Iterable[Question]:
        """Return the questions."""
        raise NotImplementedError

    def lost(self, question: Question) -> frozenset[str]:
        """Return the parts of an answer that cannot be sent back to this provider, as a Report names them: such as `thinking`."""
        del question
        return frozenset()

    # --- the laws --------------------------------------------------------------------------------------------------------

    def test_it_is_a_provider(self) -> None:
        """It has a name, and a profile for its model."""
        provider = self.provider()
        assert isinstance(provider, Provider)
        assert provider.name
        assert provider.profile_for(self.model).name in APIS

    def test_an_answer_is_deltas_usage_and_one_end(self) -> None:
        """The last event, and no other, is the end; its blocks and usage are those that the events before add up to."""
        for heard in self._answers():
            assert [isinstance(event, End) for event in heard.events] == [False] * (len(heard.events) - 1) + [True]
            assembly = Assembly()
            for event in heard.events[:-1]:
                assembly.add(event)
            assert assembly.message().contents == heard.message.contents
            assert assembly.usage == heard.message.usage

    def test_whatever_has_come_is_a_valid_message(self) -> None:
        """After each event, the partial message can be stored and read, and it never shrinks."""
        for heard in self._answers():
            assembly, length = Assembly(), 0
            for event in heard.events[:-1]:
                assembly.add(event)
                partial = assembly.partial
                assert decode(encode(partial)[0]) == partial
                assert len(partial.text_content()) >= length
                length = len(partial.text_content())

    def test_a_message_says_who_said_it_and_why_it_ends(self) -> None:
        """Role, model, provider and stop reason are set: the next request depends on them."""
        for heard in self._answers():
            message = heard.message
            assert message.role is Role.ASSISTANT
            assert message.model == self.model
            assert message.provider
            assert message.stop_reason is not None

    def test_streamed_and_whole_are_the_same_message(self) -> None:
        """Streaming makes no difference to the stored message, except for ids that are new in each answer."""
        answers = list(self._answers())
        for whole, streamed in zip(answers[::2], answers[1::2], strict=True):
            assert told(whole.message) == told(streamed.message)

    def test_an_answer_goes_back(self) -> None:
        """With results for its calls and a new message, the answer is part of a valid request, without losses."""
        profile = self.provider().profile_for(self.model)
        for heard in self._answers():
            dialog = self._dialog(heard.question)
            dialog.append(heard.message)
            results = [ToolResultContent(id=call.id, content="done") for call in heard.message.tool_calls()]
            if results:
                dialog.append(ToolMessage.from_results(results))
            dialog.append(UserMessage(content="go on"))
            request = dialog.request(profile, self.model, **heard.question.call)
            assert {change.what for change in request.report.lost()} <= self.lost(heard.question)

    def test_a_failure_is_a_typed_error(self) -> None:
        """With or without streaming, the error has the same kind, and names the provider and the model."""
        for heard in self._heard():
            kind = heard.error.kind if heard.error is not None else ""
            assert kind == heard.question.fails, f"{heard.question.text}: {heard.error!r}"
            if heard.error is not None:
                assert heard.error.provider
                assert heard.error.model == self.model

    def test_an_answer_can_be_left_and_the_provider_asked_again(self) -> None:
        """Closing the events early, or the provider, does no harm."""

        async def leave(provider: Provider) -> AssistantMessage:
            request = self._request(next(self._answered()), stream=True)
            async with aclosing(provider.stream(request)) as events:
                await anext(events)
            await provider.aclose()
            return await collect(provider.stream(request))

        assert self._run(leave).contents

    def test_it_serves_several_event_loops(self) -> None:
        """A program may run one loop after another; nothing of the first is used in the second."""
        provider, request = self.provider(), self._request(next(self._answered()), stream=True)

        async def ask() -> AssistantMessage:
            try:
                return await collect(provider.stream(request))
            finally:
                await provider.aclose()

        assert told(anyio.run(ask)) == told(anyio.run(ask))

    def test_answers_do_not_mix(self) -> None:
        """Questions asked concurrently each get their own answer."""
        questions = list(self._answered())
        alone = [told(heard.message) for heard in self._answers() if heard.streamed]

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

    def _answered(self) -> Iterator[Question]:
        return (question for question in self.questions() if not question.fails)

    def _answers(self) -> Iterator[Heard]:
        """Yield the answers: for each question the one without streaming, then the streamed one."""
        return (heard for heard in self._heard() if not heard.question.fails and heard.error is None)

    def _heard(self) -> tuple[Heard, ...]:
        """Ask all questions, once for all laws."""
        kind = type(self)
        if kind not in _HEARD:
            _HEARD[kind] = self._run(self._ask_all)
        return _HEARD[kind]

    async def _ask_all(self, provider: Provider) -> tuple[Heard, ...]:
        return tuple(
            [
                await _hear(provider, question, self._request(question, stream=stream), streamed=stream)
                for question in self.questions()
                for stream in (False, True)
            ]
        )

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

    def _answer(self, request: Request) -> AssistantMessage:
        return self._run(lambda provider: collect(provider.stream(request)))

    def _failure(self, request: Request) -> ProviderError:
        try:
            message = self._answer(request)
        except ProviderError as error:
            return error
        raise AssertionError(f"there is an answer: {message.text_content()!r}")


async def _hear(provider: Provider, question: Question, request: Request, *, streamed: bool) -> Heard:
    events: list[Event] = []
    try:
        async for event in provider.stream(request):
            events.append(event)  # noqa: PERF401 - those before a failure count
    except ProviderError as error:
        return Heard(question, streamed, tuple(events), error)
    return Heard(question, streamed, tuple(events))


_HEARD: dict[type, tuple[Heard, ...]] = {}
"""The results of each class of laws."""

_FRESH = frozenset({"id", "timestamp", "response_id", "metadata"})
"""Fields of a message that are new in each answer."""


def told(message: AssistantMessage) -> Mapping[str, Any]:
    """Return a message without the parts that are new in each answer: ids and times, ids of reasoning items, usage texts."""
    said = {key: value for key, value in message.to_dict().items() if key not in _FRESH}
    said["usage"] = (message.usage.input_tokens, message.usage.output_tokens)
    for block in said["contents"]:
        if block.get("error") is None:
            block.pop("raw_args", None)  # the same arguments, with other spaces
        artefact = block.get("artefact")
        if isinstance(artefact, dict):
            block["artefact"] = {
                key: value for key, value in artefact.items() if key not in {"id", "encrypted_content"}
            }
    return said
