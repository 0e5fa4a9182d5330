"""The provider protocol: a compiled request goes in, the events of an answer come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from palaver.models.events import Event
from palaver.wire import Profile, Request

__all__ = ["Provider"]


@runtime_checkable
class Provider(Protocol):
    """A service that runs models.

    A provider sends a request exactly as it was compiled. It does not retry: :class:`palaver.models.Retry` does, where every attempt is
    recorded. It reads no environment variables, although the vendor client that it creates may.
    """

    @property
    def name(self) -> str:
        """The name that errors and messages use."""

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask a model, and yield the events of its answer; the last is an End.

        The request decides whether the answer is streamed. Close the generator (`contextlib.aclosing`) to abandon an answer; that
        closes the connection.

        Raises:
            ProviderError: There is no complete answer. `partial` is the part that arrived.
        """

    async def aclose(self) -> None:
        """Close connections. The provider may be asked again."""
