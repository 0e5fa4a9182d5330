"""Anthropic's models over the official `anthropic` client.

Requests go out as they were compiled, through the client's own `post`: it knows the address, the key and the transport, and adds no fields.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from palaver.errors import MissingExtra
from palaver.messages import thaw
from palaver.models.answers import AnswerReader, AnthropicAnswer
from palaver.models.client import ClientProvider, streamed, told
from palaver.models.failures import Fault
from palaver.wire import Request

try:
    import anthropic
except ImportError as error:
    raise MissingExtra("palaver.models.anthropic", "anthropic") from error

__all__ = ["AnthropicProvider"]

_PATH = "/v1/messages"
_REFUSED = 400


class AnthropicProvider(ClientProvider[anthropic.AsyncAnthropic]):
    """Asks Anthropic, or a server that speaks its Messages API."""

    def __init__(
        self,
        *,
        client: anthropic.AsyncAnthropic | None = None,
        name: str = "anthropic",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Choose the client or its options.

        Args:
            client: A client to use as it is, such as one for Bedrock or Vertex.
            name: Who is asked, where it is not Anthropic: thinking of one is not sent to another.
            options: Those of `anthropic.AsyncAnthropic`: `api_key`, `base_url`, `timeout`, `default_headers` (for betas) and so on. What
                is not given, the client takes from where it always does.
        """
        super().__init__(name, "anthropic", client)
        self._options = options

    def _make(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(**({"max_retries": 0} | self._options))

    async def _close(self, client: anthropic.AsyncAnthropic) -> None:
        await client.close()

    def _reader(self, request: Request) -> AnswerReader:
        return AnthropicAnswer(request, self._name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        client, body = self._client().with_options(max_retries=0), thaw(request.body)
        if not streamed(request):
            yield await client.post(_PATH, body=body, cast_to=object)
            return
        stream = await client.post(
            _PATH, body=body, cast_to=object, stream=True, stream_cls=anthropic.AsyncStream[object]
        )
        async with stream:
            async for data in stream:
                yield data

    def _fault(self, error: Exception, model: str) -> Fault | str | None:
        if isinstance(error, anthropic.APIResponseValidationError):
            return f"The answer makes no sense: {told(error)}"
        if isinstance(error, anthropic.APIConnectionError):
            return Fault(provider=self._name, model=model, message=told(error))
        if isinstance(error, anthropic.APIStatusError):
            return self._refusal(error, model)
        if isinstance(error, anthropic.AnthropicError) or _NO_KEY in str(error):
            return Fault(provider=self._name, model=model, message=str(error), status=_REFUSED)
        return None

    def _refusal(self, error: anthropic.APIStatusError, model: str) -> Fault:
        body = error.body if isinstance(error.body, Mapping) else {}
        said = body.get("error")
        inner = said if isinstance(said, Mapping) else {}
        return Fault(
            provider=self._name,
            model=model,
            message=str(inner.get("message") or error),
            status=error.status_code,
            codes=tuple(word for word in (inner.get("type"), error.error_code) if isinstance(word, str)),
            headers={key.lower(): value for key, value in error.response.headers.items()},
            request_id=error.request_id or str(body.get("request_id") or ""),
            details=error.body,
        )


_NO_KEY = "Could not resolve authentication method"
"""What the client says, in a TypeError, when it was given no key and found none."""
