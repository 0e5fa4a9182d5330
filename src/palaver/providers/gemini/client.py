"""Google's models over the official `google-genai` client.

The client lets a caller replace the body that it builds (`HttpOptions.extra_body`); requests go out as they were compiled.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

from palaver.errors import MissingExtra, ProviderError
from palaver.messages import thaw
from palaver.providers.client import ClientProvider, streamed
from palaver.providers.dialect import sdk_json
from palaver.providers.failures import failed, unreadable
from palaver.wire import Request

try:
    from google import genai
    from google.genai import errors, types
except ImportError as error:
    raise MissingExtra("Asking a model of Google", "google", package="google-genai") from error


PLACEHOLDER = "."
"""Contents that the client requires and the body replaces."""


class GoogleProvider(ClientProvider[genai.Client]):
    """Google's Gemini API."""

    _row: ClassVar[str] = "gemini"

    def __init__(
        self,
        *,
        client: genai.Client | None = None,
        name: str = "google",
        **options: Any,  # noqa: ANN401 - those of the client
    ) -> None:
        """Set the client or its options.

        Args:
            client: A client to use as it is, such as one for Vertex.
            name: The name that errors and messages use.
            options: Options of `google.genai.Client`: `api_key`, `http_options` and so on. The client finds the others itself.
        """
        super().__init__(name, self._row, client)
        self._options = options

    def _make(self) -> genai.Client:
        http = types.HttpOptions.model_validate(self._options.get("http_options") or {})
        if http.retry_options is None:  # the client's default retries for up to ten seconds
            http = http.model_copy(update={"retry_options": types.HttpRetryOptions(attempts=1)})
        try:
            return genai.Client(**self._options | {"http_options": http})
        except ValueError as error:  # no key, or contradicting options
            raise ProviderError(
                f"The client of {self._name} cannot be created: {error}",
                kind="auth",
                provider=self._name,
                hint="Pass the provider's key as api_key, or set it as the client reads it.",
            ) from error

    async def _list(self) -> AsyncGenerator[Mapping[str, Any], None]:
        async for model in await self._client().aio.models.list(config={"page_size": 1000}):
            yield sdk_json(model)

    async def _close(self, client: genai.Client) -> None:
        await client.aio.aclose()
        client.close()

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        models = self._client().aio.models
        whole = not streamed(request)  # read as it came: the client's types drop what they do not know
        config = types.GenerateContentConfig(
            http_options=types.HttpOptions(extra_body=thaw(request.fields)), should_return_http_response=whole
        )
        if whole:
            answer = await models.generate_content(model=request.model, contents=PLACEHOLDER, config=config)
            yield json.loads((answer.sdk_http_response and answer.sdk_http_response.body) or "")
            return
        stream = await models.generate_content_stream(model=request.model, contents=PLACEHOLDER, config=config)
        async for answer in stream:
            yield sdk_json(answer)

    def _mapped(self, error: Exception, model: str) -> ProviderError | None:
        if isinstance(error, errors.UnknownApiResponseError | ValueError):
            return unreadable(self._name, model, error)
        if not isinstance(error, errors.APIError):
            return None
        headers = getattr(error.response, "headers", None)
        return failed(
            self._name,
            error.message or str(error),
            model=model,
            status=error.code,
            codes=(error.status,) if error.status else (),
            headers={key.lower(): value for key, value in headers.items()} if isinstance(headers, Mapping) else {},
            details=error.details,
        )
