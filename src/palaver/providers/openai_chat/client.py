"""OpenAI's models, and every server that speaks its API, over the official `openai` client: chat completions and responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from palaver.errors import MissingExtra, ProviderError
from palaver.providers.client import ClientProvider, posted
from palaver.providers.failures import client_error
from palaver.providers.registry import APIS
from palaver.wire import Profile, Request

try:
    import openai
except ImportError as error:
    raise MissingExtra("Asking a model of OpenAI", "openai") from error


_PATHS: Mapping[str, str] = {"openai-chat": "/chat/completions", "openai-responses": "/responses"}

_HOST = "api.openai.com"


class OpenAIProvider(ClientProvider[openai.AsyncOpenAI]):
    """OpenAI, or a server that speaks its API."""

    def __init__(
        self,
        *,
        api: Literal["chat", "responses"] | None = None,
        client: openai.AsyncOpenAI | None = None,
        name: str = "openai",
        server: str = "",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Set the API, and the client or its options.

        Args:
            api: Chat completions, or responses. Default: chat completions; for OpenAI's models that take no tools there, responses.
            client: A client to use as it is, such as one for Azure.
            name: The provider's name, if it is not OpenAI. Reasoning is sent back only to the provider it came from.
            server: Whose rules hold for chat completions, such as `vllm` or `openrouter`: a name in
                `palaver.providers.openai_chat.servers`. Default: the provider's name, else the model decides.
            options: Options of `openai.AsyncOpenAI`: `api_key`, `base_url`, `timeout` and so on. The client finds the others itself.
        """
        super().__init__(name, f"openai-{api or 'chat'}", client)
        self._options = options
        self._server = server or ("" if name == "openai" else name)
        self._chooses = api is None

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""
        chat = super().profile_for(model)
        return chat if chat.tools.functions or not self._chooses else APIS["openai-responses"].profile(model)

    def _columns(self) -> Mapping[str, Any]:
        """Return whose rules hold, and what other servers do: they take tools in chat completions, of whatever model they speak."""
        address = self._options.get("base_url") if self._given is None else self._given.base_url
        own = address is None or urlsplit(str(address)).hostname == _HOST
        return ({} if own else {"functions": True}) | ({"server": self._server} if self._server else {})

    async def _list(self) -> AsyncGenerator[Mapping[str, Any], None]:
        answer: Any = await self._client().get("/models", cast_to=object)
        for model in answer["data"]:
            yield model

    def _make(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**({"max_retries": 0} | self._options))

    async def _close(self, client: openai.AsyncOpenAI) -> None:
        await client.close()

    def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        return posted(self._client(), _PATHS[request.profile.name], request, openai.AsyncStream[object])

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        return client_error(error, "openai", self._name, model)
