"""A summariser that asks a model: with the conversation as the agent sends it where that can be read from the cache, else with a text of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from palaver.context import SummaryAnswer, SummaryRequest
from palaver.errors import ContextOverflow, InvalidRequest, MissingBlob
from palaver.ids import DialogId
from palaver.messages import AssistantMessage, StopReason
from palaver.models import Provider, collect
from palaver.tools.aside import aside
from palaver.view import View
from palaver.wire import Call, Request
from palaver.wire import compile as compile_request

__all__ = ["ModelSummarizer"]

_NOWHERE = View(dialog_id=DialogId("0" * 32), at=-1)


class ModelSummarizer:
    """Asks a model of a provider for summaries; any model, also a cheaper one than the agent's (R328).

    Where it is the agent's own model, the request begins as the agent's requests do, tools included, so that the provider has nearly all of
    it in its cache; what is asked stands behind it. Where that is too long for the model, or the model is another one, it gets the
    conversation as one text, which always fits.

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
    ) -> None:
        """Take a model.

        Args:
            provider: Who runs it.
            model: The model.
            max_tokens: Tokens that an answer may have; None for the provider's own limit.
            media: Gives the bytes of a payload by its digest, for a conversation with images that is sent as it is: `store.blob`.
        """
        self._provider = provider
        self._model = model
        self._max_tokens = max_tokens
        self._media = media or _nothing
        self.requests: list[Request] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Summarise.

        Raises:
            ProviderError: The provider gave no whole answer.
            InvalidRequest: The provider would refuse what asks for it; nothing was sent.
        """
        view = request.view
        if view is not None and view.model == self._model:
            try:
                return await self._ask(lambda: self._compiled(view, request.instruction))
            except (ContextOverflow, InvalidRequest, MissingBlob):
                pass  # as one text it is shorter, has no images, and nothing in it belongs together
        return await self._ask(lambda: self._compiled(_NOWHERE, request.prompt()))

    async def _ask(self, compiled: Callable[[], Request]) -> SummaryAnswer:
        sent = await aside(compiled)
        self.requests = [*self.requests[-15:], sent]
        async with aclosing(self._provider.stream(sent)) as events:
            return _read(await collect(events), self._model)

    def _compiled(self, view: View, words: str) -> Request:
        choice = "none" if view.tools else ""
        call = Call(model=self._model, then=words, max_tokens=self._max_tokens, tool_choice=choice)
        request = compile_request(view, self._provider.profile_for(self._model), call, self._media)
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
