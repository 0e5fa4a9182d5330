"""Blocks of `together`, and what cannot be done inside one."""

from __future__ import annotations

from palaver.errors import InvalidInput
from palaver.store.protocol import Store

__all__ = ["in_block", "require_no_block", "tells_blocks"]


def tells_blocks(store: Store) -> bool:
    """Tell whether a store says which threads are inside a block of it (`TellsBlocks`)."""
    return hasattr(store, "in_block")


def in_block(store: Store) -> bool:
    """Tell whether this thread is inside a block of a store; never, where a store does not say (`TellsBlocks`)."""
    return bool(getattr(store, "in_block", False))


def require_no_block(store: Store, what: str) -> None:
    """Refuse what is done in several threads inside a block of one: the others would wait for its end, and it for them.

    Args:
        store: The store that will be written to, or read from, in other threads.
        what: What is refused, as the subject of a sentence.

    Raises:
        InvalidInput: This thread is inside a block of the store.
    """
    if in_block(store):
        raise InvalidInput(
            f"{what} cannot be begun while this thread, perhaps in another task, is inside `with store.together()`: other threads work on it too, "
            "and they see nothing of what the block has written and cannot write before it ends.",
            hint="End the block first. It belongs around writes alone, with no await in it.",
        )
