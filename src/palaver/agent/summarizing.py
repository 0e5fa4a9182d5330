"""A summariser that asks a model: with the conversation as the agent sends it where that can be read from the cache, else with a text of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, runtime_checkable

from palaver.context import Summarizer, SummaryAnswer, SummaryRequest
from palaver.errors import ContextOverflow, InvalidRequest, MissingBlob
from palaver.ids import DialogId
from palaver.messages import AssistantMessage, StopReason
from palaver.models import Provider, collect
from palaver.tokens import model_info
from palaver.tools.aside import aside
from palaver.view import View
from palaver.wire import Call, Profile, Request
from palaver.wire import compile as compile_request

__all__ = ["AsTheAgent", "ModelSummarizer"]

_NOWHERE = View(dialog_id=DialogId("0" * 32), at=-1)


@runtime_checkable
class AsTheAgent(Summarizer, Protocol):
    """A summariser that can ask as an agent asks, so that the provider finds the conversation in its cache."""

    def sending(self, call: Call) -> Summarizer:
        """Give the same summariser, which asks with what an agent asks its model with."""
        ...


class ModelSummarizer:
    """Asks a model of a provider for summaries; any model, also a cheaper one than the agent's (R328).

    Where it is the agent's own model, the request begins as the agent's requests do, tools included and with the agent's own parameters, so
    that the provider has nearly all of it in its cache; what is asked stands behind it. Where that is too long for the model, or the model is
    another one, it gets the conversation as one text, which always fits.

    That no tool be called is asked for in words, and by the choice between tools only where that is no part of what the provider caches by.
    The form that the agent's answers must have is left out: a summary has none, and is then not read from the cache.

    Attributes:
        requests: The requests that were sent, oldest first, at most the last 16.
    """

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        max_tokens: int | None = None,
        media: Callable[[str], bytes] | None = None,
        call: Call | None = None,
    ) -> None:
        """Take a model.

        Args:
            provider: Who runs it.
            model: The model.
            max_tokens: Tokens that an answer may have; None for the provider's own limit.
            media: Gives the bytes of a payload by its digest, for a conversation with images that is sent as it is: `store.blob`.
            call: What the agent asks its model with; an agent that compacts says so itself.
        """
        self._provider = provider
        self._model = model
        self._max_tokens = max_tokens
        self._media = media or _nothing
        self._call = call or Call(model=model)
        self.requests: list[Request] = []

    @property
    def window(self) -> int:
        """What the model can read at once, in tokens; 0 where that is not known."""
        info = model_info(self._model)
        return info.max_input if info.known else 0

    def sending(self, call: Call) -> ModelSummarizer:
        """Give the same summariser, which asks with what an agent asks its model with; both keep one list of requests."""
        other = ModelSummarizer(self._provider, self._model, max_tokens=self._max_tokens, media=self._media, call=call)
        other.requests = self.requests
        return other

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Summarise.

        Raises:
            ProviderError: The provider gave no whole answer.
            InvalidRequest: The provider would refuse what asks for it; nothing was sent.
        """
        view = request.view
        if view is not None and view.model == self._model:
            try:
                return await self._ask(lambda: self._compiled(view, self._beside(view, request.behind)))
            except (ContextOverflow, InvalidRequest, MissingBlob):
                pass  # as one text it is shorter, has no images, and nothing in it belongs together
        plain = Call(model=self._model, then=request.prompt(), max_tokens=self._max_tokens)
        return replace(await self._ask(lambda: self._compiled(_NOWHERE, plain)), of_view=False)

    async def _ask(self, compiled: Callable[[], Request]) -> SummaryAnswer:
        sent = await aside(compiled)
        self.requests[:] = [*self.requests[-15:], sent]
        async with aclosing(self._provider.stream(sent)) as events:
            return _read(await collect(events), self._model)

    @property
    def _profile(self) -> Profile:
        return self._provider.profile_for(self._model)

    def _beside(self, view: View, words: str) -> Call:
        """Give what the agent asks with, as far as an answer in prose can be asked for so; with the words that ask for it."""
        free = self._call.tool_choice in {"", "auto", "none"}
        choice = self._call.tool_choice if free and self._profile.cache.choice else "none" if view.tools else ""
        most = self._call.max_tokens if self._max_tokens is None else self._max_tokens
        return replace(
            self._call, model=self._model, then=words, format=None, stream=False, tool_choice=choice, max_tokens=most
        )

    def _compiled(self, view: View, call: Call) -> Request:
        request = compile_request(view, self._profile, call, self._media)
        request.check()
        return request


def _read(message: AssistantMessage, model: str) -> SummaryAnswer:
    return SummaryAnswer(
        text=message.text_content(),
        complete=message.stop_reason is not StopReason.LENGTH,
        calls=len(message.tool_calls()),
        model=message.model or model,
        usage=message.usage,
    )


def _nothing(digest: str) -> bytes:
    raise MissingBlob(digest)
