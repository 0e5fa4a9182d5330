"""The seam between palaver and those who run models: a compiled request goes in, the events of an answer come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from palaver.models.events import Event
from palaver.wire import Profile, Request

__all__ = ["Provider"]


@runtime_checkable
class Provider(Protocol):
    """Somebody who runs models.

    A provider sends a request as it was compiled: it adds nothing to the body and leaves nothing out. It does not retry: that is the
    business of :class:`palaver.models.Retry`, where every attempt is seen. It reads no environment, though a vendor's client that it
    makes may read its own key.
    """

    @property
    def name(self) -> str:
        """Who it is, as errors and messages name it."""

    def profile_for(self, model: str) -> Profile:
        """Give the profile that requests for a model are compiled with."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask a model, and yield the events of its answer; the last one is an End.

        Whether the answer comes in pieces is the request's own business; one that comes whole is yielded as the same events. Close the
        generator (`contextlib.aclosing`) to leave an answer before its end: that cuts the connection.

        Raises:
            ProviderError: There is no whole answer; the error has what came of it.
        """

    async def aclose(self) -> None:
        """Let go of connections. The provider may be asked again."""
