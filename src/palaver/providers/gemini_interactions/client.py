"""Gemini's Interactions over the official `google-genai` client.

The client merges the body that it is passed (`extra_body`) into its own; requests go out as they were compiled. Where the decoding limit of one request cuts
an answer, the client goes on with it by itself (`automatic_continuation`), and the answer arrives as one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, ClassVar

from palaver.errors import ProviderError
from palaver.messages import thaw
from palaver.providers.client import streamed
from palaver.providers.dialect import sdk_json
from palaver.providers.failures import client_error
from palaver.providers.gemini.client import PLACEHOLDER, GoogleProvider
from palaver.wire import Request


class GoogleInteractionsProvider(GoogleProvider):
    """Google's Gemini, over its Interactions API."""

    _row: ClassVar[str] = "gemini-interactions"

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        create = self._client().aio.interactions.create
        whole = not streamed(request)
        answer: Any = await create(
            model=request.model, input=PLACEHOLDER, extra_body=thaw(request.fields), stream=not whole
        )
        if whole:
            yield sdk_json(answer)
            return
        async with answer:
            async for event in answer:
                yield sdk_json(event)

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        return super()._mapped(error, model) or client_error(error, "google", self._name, model)
