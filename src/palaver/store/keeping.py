"""Payloads that an entry names: kept in the same durable step as the entry, so that nothing takes them away in between."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from palaver.store.protocol import Store

__all__ = ["keeping"]


def keeping(store: Store, payloads: Collection[bytes]) -> AbstractContextManager[None]:
    """Put payloads; what is written inside the block, the entries that name them, is one durable step with that.

    An erasure or a sweep takes a payload that nothing names, and cannot know who is about to name one that it finds there. Either comes before
    the step, which then puts what is gone, or behind it, and then an entry names it. A writer that dies leaves both or neither.

    Without payloads nothing is put, and the block is no step of its own.

    Args:
        store: The store.
        payloads: What the entries name.
    """
    return _together(store, payloads) if payloads else nullcontext()


@contextmanager
def _together(store: Store, payloads: Collection[bytes]) -> Iterator[None]:
    with store.together():
        for payload in payloads:
            store.put_blob(payload)
        yield
