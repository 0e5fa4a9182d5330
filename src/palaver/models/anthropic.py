"""Anthropic's models over the official `anthropic` client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from palaver.errors import MissingExtra, ProviderError
from palaver.models.answers import AnswerReader, AnthropicAnswer
from palaver.models.client import ClientProvider, posted
from palaver.models.failures import described, failed, unreadable
from palaver.wire import Request

try:
    import anthropic
except ImportError as error:
    raise MissingExtra("palaver.models.anthropic", "anthropic") from error

__all__ = ["AnthropicProvider"]

_NO_KEY = "Could not resolve authentication method"
"""The message of the client's TypeError without a key."""


class AnthropicProvider(ClientProvider[anthropic.AsyncAnthropic]):
    """Anthropic, or a server that speaks its Messages API."""

    def __init__(
        self,
        *,
        client: anthropic.AsyncAnthropic | None = None,
        name: str = "anthropic",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Set the client or its options.

        Args:
            client: A client to use as it is, such as one for Bedrock or Vertex.
            name: The provider's name, if it is not Anthropic. Thinking is sent back only to the provider it came from.
            options: Options of `anthropic.AsyncAnthropic`: `api_key`, `base_url`, `timeout`, `default_headers` (for betas) and so on. The
                client finds the others itself.
        """
        super().__init__(name, "anthropic", client)
        self._options = options

    def _make(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(**({"max_retries": 0} | self._options))

    async def _close(self, client: anthropic.AsyncAnthropic) -> None:
        await client.close()

    def _reader(self, request: Request) -> AnswerReader:
        return AnthropicAnswer(request, self._name)

    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        client = self._client().with_options(max_retries=0)
        return posted(client, "/v1/messages", request, anthropic.AsyncStream[object])

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        if isinstance(error, anthropic.APIResponseValidationError):
            return unreadable(self._name, model, error)
        if isinstance(error, anthropic.APIConnectionError):
            return failed(self._name, described(error), model=model)
        if isinstance(error, anthropic.APIStatusError):
            return self._refusal(error, model)
        if isinstance(error, anthropic.AnthropicError) or _NO_KEY in str(error):
            return failed(self._name, str(error), model=model, status=400)
        return None

    def _refusal(self, error: anthropic.APIStatusError, model: str) -> ProviderError:
        body = error.body if isinstance(error.body, Mapping) else {}
        said = body.get("error")
        inner = said if isinstance(said, Mapping) else {}
        return failed(
            self._name,
            str(inner.get("message") or error),
            model=model,
            status=error.status_code,
            codes=tuple(word for word in (inner.get("type"), error.error_code) if isinstance(word, str)),
            headers={key.lower(): value for key, value in error.response.headers.items()},
            request_id=error.request_id or str(body.get("request_id") or ""),
        )
