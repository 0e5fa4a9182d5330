"""A summarizer that asks a model."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

from palaver.context.summary import SummaryAnswer, SummaryRequest
from palaver.ids import DialogId
from palaver.messages import StopReason
from palaver.models import Provider, collect
from palaver.tokens import model_info
from palaver.tools import run_in_worker
from palaver.view import View
from palaver.wire import Call, Request
from palaver.wire import compile as compile_request

__all__ = ["ModelSummarizer"]

_EMPTY = View(dialog_id=DialogId("0" * 32), at=-1)


class ModelSummarizer:
    """Asks a model for summaries; it may be another, cheaper one than the agent's (R328). The request is one text, without tools.

    Attributes:
        provider: The provider.
        model: The model.
        max_tokens: Tokens that an answer may have; None for the provider's own limit.
    """

    def __init__(self, provider: Provider, model: str, *, max_tokens: int | None = None) -> None:
        self.provider = provider
        self.model = model
        self.max_tokens = max_tokens

    @property
    def window(self) -> int:
        """What the model reads at once, in tokens; 0 where it is unknown."""
        info = model_info(self.model)
        return info.max_input if info.known else 0

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Summarise.

        Raises:
            ProviderError: The provider gave no whole answer.
        """
        sent = await run_in_worker(partial(self._compiled, request.prompt()))
        async with aclosing(self.provider.stream(sent)) as events:
            message = await collect(events)
        return SummaryAnswer(
            text=message.text_content(),
            complete=message.stop_reason is not StopReason.LENGTH,
            calls=len(message.tool_calls()),
            model=message.model or self.model,
            usage=message.usage,
        )

    def _compiled(self, text: str) -> Request:
        call = Call(model=self.model, then=text, max_tokens=self.max_tokens)
        request = compile_request(_EMPTY, self.provider.profile_for(self.model), call, lambda _: b"")
        request.check()
        return request
