"""Clients and providers that are closed after the test that opened them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final, TypeVar

from palaver.tools.portal import run_sync

Client = TypeVar("Client", bound=Any)

OPENED: Final = ExitStack()


def opened(client: Client) -> Client:
    """Return a client or a provider whose connections are closed after the test."""
    later = getattr(client, "aclose", None)
    OPENED.callback(*((client.close,) if later is None else (run_sync, later)))
    return client
