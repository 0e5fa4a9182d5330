"""Any provider that LiteLLM knows, over `litellm.acompletion`. Models are spelt as LiteLLM spells them: `anthropic/claude-…`, `gemini/…`.

LiteLLM is imported with the first question, because importing it takes seconds. It then looks up its price list in the network, tries to
download tokenizers, prints advice, and points tiktoken at its own files: all of that is turned off, or undone, here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from json import JSONDecodeError
from types import ModuleType
from typing import Any

from palaver.errors import MissingExtra
from palaver.messages import thaw
from palaver.models.answers import AnswerReader, ChatAnswer
from palaver.models.client import ClientProvider, streamed
from palaver.models.events import End
from palaver.models.failures import Fault
from palaver.models.openai_faults import fault_of
from palaver.wire import Request

__all__ = ["LiteLLMProvider"]

_BEFORE_IMPORT: Mapping[str, str] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks a server for prices, twice, and warns
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else it asks a server for those with its first question to Anthropic
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file of the working folder
}
_QUIET: Mapping[str, bool] = {
    "suppress_debug_info": True,  # else it prints advice with every failure
    "disable_hf_tokenizer_download": True,  # else it tries for most of a minute
    "telemetry": False,
    "disable_aiohttp_transport": True,  # its sessions are left open, which Python complains of
}
_CHANGED_BY_IMPORT = "TIKTOKEN_CACHE_DIR"


class LiteLLMProvider(ClientProvider[ModuleType]):
    """Asks whatever model LiteLLM finds for a name. Thinking does not go back: chat completions have no place for it."""

    def __init__(self, *, name: str = "litellm", **options: Any) -> None:  # noqa: ANN401 - those of LiteLLM
        """Choose options.

        Args:
            name: Who is asked, as errors and messages name it.
            options: Those of `litellm.acompletion` beside the request: `api_key`, `api_base`, `timeout` and so on. What is not given,
                LiteLLM takes from where it always does.
        """
        super().__init__(name, "openai-chat", None)
        self._options = {"num_retries": 0, "max_retries": 0} | options

    def _make(self) -> ModuleType:
        return loaded()

    async def _close(self, client: ModuleType) -> None:
        """Close the clients that LiteLLM has made. They are the whole program's, and are made again when they are needed."""
        await client.close_litellm_async_clients()
        client.in_memory_llm_clients_cache.flush_cache()  # it would go on to use the closed ones

    def _reader(self, request: Request) -> AnswerReader:
        return _LiteLLMAnswer(request, self._name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        answer = await self._client().acompletion(**{**thaw(request.body), **self._options})
        if not streamed(request):
            yield _with_cost(_plain(answer), getattr(answer, "_hidden_params", None))
            return
        try:
            async for chunk in answer:
                yield _plain(chunk)
        finally:
            await answer.aclose()

    def _fault(self, error: Exception, model: str) -> Fault | str | None:
        origin = getattr(error, "original_exception", None)
        if isinstance(
            origin, Exception
        ):  # of a stream that broke: LiteLLM calls it a fallback, with a status of its own
            error = origin
        fault = next(filter(None, map(_no_json, _causes(error))), None) or fault_of(error, self._name, model)
        if isinstance(fault, Fault):
            return replace(fault, message=fault.message.partition(_TRACE)[0].removeprefix("litellm."))
        return fault


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give an exception and those it came from: LiteLLM gives unreadable answers a status that their server never sent."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _no_json(error: BaseException) -> str:
    return f"The answer is no JSON: {error}" if isinstance(error, JSONDecodeError) else ""


_TRACE = "Traceback (most recent call last)"
"""LiteLLM puts where it failed into what it says."""


class _LiteLLMAnswer(ChatAnswer):
    """Reads an answer as LiteLLM passes it on: a stream in which it read nothing, it calls an empty answer that ended well."""

    def end(self) -> End:
        """Give the last event.

        Raises:
            BrokenAnswer: The answer is not whole, or there is none.
        """
        if self._streamed and not self.assembly.usage and not self.assembly.partial.contents:
            raise self.broken("The answer is empty")
        return super().end()


def _with_cost(answer: dict[str, Any], beside: object) -> dict[str, Any]:
    """Give a whole answer with what it cost, in dollars: LiteLLM puts it into the usage of streams, and beside whole answers."""
    cost = beside.get("response_cost") if isinstance(beside, Mapping) else None
    if isinstance(cost, int | float) and isinstance(answer.get("usage"), dict):
        answer["usage"].setdefault("cost", cost)
    return answer


def _plain(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of LiteLLM's
    """Give an answer as JSON. Its objects hold others than they declare, about which pydantic would warn."""
    data: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True, warnings=False)
    return data


@cache
def loaded() -> ModuleType:
    """Import LiteLLM such that it stays at home and quiet.

    Raises:
        MissingExtra: It is not installed.
    """
    environment = os.environ  # noqa: TID251 - set for LiteLLM, which reads it while it is imported; nothing is read for palaver
    before = environment.get(_CHANGED_BY_IMPORT)
    for name, value in _BEFORE_IMPORT.items():
        environment.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations among its own modules
            litellm = import_module("litellm")
            for kind in ("ModelResponse", "ModelResponseStream"):
                getattr(litellm, kind)()  # their schemas are built now, and not with warnings in the middle of a call
    except ModuleNotFoundError as error:
        raise MissingExtra("palaver.models.litellm", "litellm") from error
    finally:
        if before is None:
            environment.pop(_CHANGED_BY_IMPORT, None)
        else:
            environment[_CHANGED_BY_IMPORT] = before
    for flag, on in _QUIET.items():
        setattr(litellm, flag, on)
    return litellm
