"""Anthropic's models over the official `anthropic` client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from palaver.errors import MissingExtra, ProviderError
from palaver.providers.client import ClientProvider, posted
from palaver.providers.failures import client_error, failed
from palaver.wire import Request

try:
    import anthropic
except ImportError as error:
    raise MissingExtra("Asking a model of Anthropic", "anthropic") from error


_VERSION, _OLDEST, _NEWEST = "anthropic-version", "2023-06-01", "2026-10-21"
"""The header that names a version of the API, and the versions that differ (platform.claude.com/docs/en/api/versioning)."""

_NEWEST_SINCE = 2
"""The first major version of the client whose requests name the newest."""

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

    def _columns(self) -> Mapping[str, Any]:
        """Return the version of the API that the client's requests name, where it is not the newest: it still takes sampling parameters."""
        given = self._options.get("default_headers") if self._given is None else self._given.default_headers
        named = {str(name).lower(): str(value) for name, value in (given or {}).items()}
        old = self._given is not None or int(anthropic.__version__.partition(".")[0]) < _NEWEST_SINCE
        version = named.get(_VERSION, _OLDEST if old else _NEWEST)
        return {"version": version} if version < _NEWEST else {}

    async def _list(self) -> AsyncGenerator[Mapping[str, Any], None]:
        after = ""
        while True:
            page: Any = await self._client().get(f"/v1/models?limit=1000{after}", cast_to=object)
            for model in page["data"]:
                yield model
            if not page.get("has_more"):
                return
            after = f"&after_id={page['last_id']}"

    async def _close(self, client: anthropic.AsyncAnthropic) -> None:
        await client.close()

    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        return posted(self._client(), "/v1/messages", request, anthropic.AsyncStream[object])

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        if _NO_KEY in str(error):
            return failed(self._name, str(error), model=model, status=400)
        return client_error(error, "anthropic", self._name, model)
