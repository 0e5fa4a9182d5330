"""OpenAI's models, and those of every server that speaks its API, over the official `openai` client: chat completions and responses.

Requests go out as they were compiled, through the client's own `post`: it knows the address, the key and the transport, and adds no fields.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from palaver.errors import MissingExtra
from palaver.messages import thaw
from palaver.models.answers import AnswerReader, ChatAnswer, ResponsesAnswer
from palaver.models.client import ClientProvider, streamed
from palaver.models.failures import Fault
from palaver.models.openai_faults import fault_of
from palaver.wire import ProfileName, Request

try:
    import openai
except ImportError as error:
    raise MissingExtra("palaver.models.openai", "openai") from error

__all__ = ["OpenAIProvider"]

_PATHS: Mapping[str, str] = {"chat": "/chat/completions", "responses": "/responses"}
_READERS: Mapping[str, type[AnswerReader]] = {"chat": ChatAnswer, "responses": ResponsesAnswer}
_PROFILES: Mapping[str, ProfileName] = {"chat": "openai-chat", "responses": "openai-responses"}


class OpenAIProvider(ClientProvider[openai.AsyncOpenAI]):
    """Asks OpenAI, or a server that speaks its API."""

    def __init__(
        self,
        *,
        api: Literal["chat", "responses"] = "chat",
        client: openai.AsyncOpenAI | None = None,
        name: str = "openai",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Choose the API, and the client or its options.

        Args:
            api: Chat completions, or responses.
            client: A client to use as it is, such as one for Azure.
            name: Who is asked, where it is not OpenAI: reasoning of one is not sent to another.
            options: Those of `openai.AsyncOpenAI`: `api_key`, `base_url`, `timeout` and so on. What is not given, the client takes
                from where it always does.
        """
        super().__init__(name, _PROFILES[api], client)
        self._api = api
        self._options = options

    def _make(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**({"max_retries": 0} | self._options))

    async def _close(self, client: openai.AsyncOpenAI) -> None:
        await client.close()

    def _reader(self, request: Request) -> AnswerReader:
        return _READERS[self._api](request, self._name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        client = self._client().with_options(max_retries=0)
        path, body = _PATHS[self._api], thaw(request.body)
        if not streamed(request):
            yield await client.post(path, body=body, cast_to=object)
            return
        stream = await client.post(path, body=body, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object])
        async with stream:
            async for data in stream:
                yield data

    def _fault(self, error: Exception, model: str) -> Fault | str | None:
        return fault_of(error, self._name, model)
