"""Using a store from async code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from palaver import tools
from palaver.store.protocol import Durability, Store


class HasStore(Protocol):
    """What has a store."""

    @property
    def store(self) -> Store:
        """The store."""
        ...


S = TypeVar("S", bound=HasStore)
T = TypeVar("T")
P = ParamSpec("P")


async def awaited(store: Store, work: Callable[[], T]) -> T:
    """Do something with a store, and return what it returns, without the event loop waiting for a network, a disk or another writer.

    It runs in a worker thread, but with a store in memory at once. Once begun it runs to its end, also when the caller is cancelled.
    """
    return work() if store.durability is Durability.MEMORY else await in_thread(store, work)


async def in_thread(store: Store, work: Callable[[], T]) -> T:
    """Do something with a store in a worker thread; inside a transaction of this thread at once, for a worker would not be in it."""
    return work() if store.in_transaction else await tools.run_in_worker(work)


def in_worker(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the async form of a method, which runs it as `in_thread` does."""

    @wraps(method)
    async def form(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(self.store, partial(method, self, *args, **kwargs))

    form.__doc__ = f"Do the same as `{method.__name__}` without making the event loop wait: in a worker thread."
    return form
