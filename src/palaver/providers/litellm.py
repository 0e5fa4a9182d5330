"""Every provider that LiteLLM supports, over `litellm.acompletion`. Models are spelled as LiteLLM spells them: `anthropic/claude-…`.

LiteLLM is imported with the first request, because that takes seconds. By default it fetches its price list, tries to download tokenizers,
prints advice, and points tiktoken at its own files; this module turns all of that off.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from json import JSONDecodeError
from types import ModuleType
from typing import Any

from palaver.errors import MissingExtra, ProviderError
from palaver.messages import thaw
from palaver.providers.client import ClientProvider, streamed
from palaver.providers.failures import client_error, unreadable
from palaver.providers.openai_chat.read import ChatAnswer
from palaver.providers.provider import End
from palaver.providers.reader import AnswerReader
from palaver.wire import Request

_BEFORE_IMPORT: Mapping[str, str] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches prices, twice, and warns
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else it fetches them with its first request to Anthropic
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file of the working folder
}
_QUIET: Mapping[str, bool] = {
    "suppress_debug_info": True,  # else it prints advice with every failure
    "disable_hf_tokenizer_download": True,  # else it tries for most of a minute
    "telemetry": False,
    "disable_aiohttp_transport": True,  # it leaves sessions open, and Python warns about them
}
_CHANGED_BY_IMPORT = "TIKTOKEN_CACHE_DIR"
_LATE = "litellm.llms.github_copilot.per_user_auth"
"""A module that LiteLLM imports with its first request since 1.110, with warnings about the types in it."""


class LiteLLMProvider(ClientProvider[ModuleType]):
    """Any model that LiteLLM finds for a name. Thinking is not sent back: chat completions have no field for it."""

    def __init__(self, *, name: str = "litellm", **options: Any) -> None:  # noqa: ANN401 - those of LiteLLM
        """Set the options.

        Args:
            name: The name that errors and messages use.
            options: Options of `litellm.acompletion` beyond the request: `api_key`, `api_base`, `timeout` and so on. LiteLLM finds the
                others itself.

        Raises:
            MissingExtra: LiteLLM is not installed.
        """
        if find_spec("litellm") is None:
            raise MissingExtra("Asking a model through LiteLLM", "litellm")
        super().__init__(name, "openai-chat", None)
        self._options = {"num_retries": 0, "max_retries": 0} | options

    def _columns(self) -> Mapping[str, Any]:
        """Return that tools may be declared for every model: LiteLLM asks in the API that takes them."""
        return {"functions": True}

    def _make(self) -> ModuleType:
        return imported()

    async def _close(self, client: ModuleType) -> None:
        """Close LiteLLM's clients. They belong to the whole program, and LiteLLM creates new ones on demand."""
        await client.close_litellm_async_clients()
        client.in_memory_llm_clients_cache.flush_cache()  # it would go on to use the closed ones

    def _reader(self, request: Request) -> AnswerReader:
        return _LiteLLMAnswer(request, self._name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        answer = await self._client().acompletion(**{**thaw(request.fields), **self._options})
        if not streamed(request):
            yield _plain(answer)
            return
        try:
            async for chunk in answer:
                yield _plain(chunk)
        finally:
            if hasattr(answer, "aclose"):  # since 1.82; what lies below it closes when it is collected
                await answer.aclose()

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        origin = getattr(error, "original_exception", None)
        if isinstance(origin, Exception):  # of a broken stream; LiteLLM calls it a fallback, with a status of its own
            error = origin
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, JSONDecodeError):  # LiteLLM reports a status that the server never sent
                return unreadable(self._name, model, cause)
            cause = cause.__cause__ or cause.__context__
        return client_error(error, "openai", self._name, model)


class _LiteLLMAnswer(ChatAnswer):
    """Reads an answer from LiteLLM, which reports a stream that it could not read as an empty answer with a regular end."""

    def end(self) -> End:
        """Return the last event.

        Raises:
            ProviderError: The answer is cut or empty.
        """
        if self._streamed and not self.assembly.usage and not self.assembly.partial.contents:
            raise self.broken("The answer is empty.")
        return super().end()


def _plain(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of LiteLLM's
    """Return an answer as JSON, without pydantic's warnings about fields of undeclared types."""
    data: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True, warnings=False)
    return data


@cache
def imported() -> ModuleType:
    """Import LiteLLM without network access and output."""
    environment = os.environ  # noqa: TID251 - set for LiteLLM, which reads it on import
    before = environment.get(_CHANGED_BY_IMPORT)
    for name, value in _BEFORE_IMPORT.items():
        environment.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations among its own modules
            litellm = import_module("litellm")
            for kind in ("ModelResponse", "ModelResponseStream"):
                getattr(litellm, kind)()  # builds their schemas now, and not with warnings during a call
            with suppress(ModuleNotFoundError):  # older than 1.110
                import_module(_LATE)
    finally:
        if before is None:
            environment.pop(_CHANGED_BY_IMPORT, None)
        else:
            environment[_CHANGED_BY_IMPORT] = before
    for flag, on in _QUIET.items():
        setattr(litellm, flag, on)
    return litellm
