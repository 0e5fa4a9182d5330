"""OpenAI's models, and every server that speaks its API, over the official `openai` client: chat completions and responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from palaver.errors import MissingExtra, ProviderError
from palaver.providers.client import ClientProvider, posted
from palaver.providers.failures import client_error
from palaver.providers.openai_chat.profile import for_model
from palaver.wire import Profile, Request

try:
    import openai
except ImportError as error:
    raise MissingExtra("palaver.providers.openai_chat.client", "openai") from error


_PATHS: Mapping[str, str] = {"openai-chat": "/chat/completions", "openai-responses": "/responses"}


class OpenAIProvider(ClientProvider[openai.AsyncOpenAI]):
    """OpenAI, or a server that speaks its API."""

    def __init__(
        self,
        *,
        api: Literal["chat", "responses"] = "chat",
        client: openai.AsyncOpenAI | None = None,
        name: str = "openai",
        server: str = "",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Set the API, and the client or its options.

        Args:
            api: Chat completions, or responses.
            client: A client to use as it is, such as one for Azure.
            name: The provider's name, if it is not OpenAI. Reasoning is sent back only to the provider it came from.
            server: Whose rules hold for chat completions, such as `vllm` or `openrouter`: a name in
                `palaver.providers.openai_chat.servers`. Default: the provider's name, else the model decides.
            options: Options of `openai.AsyncOpenAI`: `api_key`, `base_url`, `timeout` and so on. The client finds the others itself.
        """
        super().__init__(name, f"openai-{api}", client)
        self._options = options
        self._server = server or name

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""
        return for_model(model, self._server) if self._api.name == "openai-chat" else super().profile_for(model)

    def _make(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**({"max_retries": 0} | self._options))

    async def _close(self, client: openai.AsyncOpenAI) -> None:
        await client.close()

    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        return posted(self._client(), _PATHS[self._api.name], request, openai.AsyncStream[object])

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        return client_error(error, "openai", self._name, model)
