"""Clients of vendors that are closed after the test that opened them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final, TypeVar

Client = TypeVar("Client", bound=Any)

OPENED: Final = ExitStack()


def opened(client: Client) -> Client:
    """Return a client whose connections are closed after the test."""
    OPENED.callback(client.close)
    return client
