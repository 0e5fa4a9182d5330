"""Blocks of a store that a test begins and ends step by step."""

from contextlib import AbstractContextManager, suppress

from palaver import Store

__all__ = ["OpenBlocks"]


class OpenBlocks:
    """The blocks of this thread that are open, one within another; their number is their length."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._open: list[AbstractContextManager[None]] = []

    def __len__(self) -> int:
        """Give how many are open."""
        return len(self._open)

    def begin(self) -> None:
        """Begin one, within the last one."""
        block = self._store.together()
        block.__enter__()
        self._open.append(block)

    def end(self) -> None:
        """End the last one well."""
        self._open.pop().__exit__(None, None, None)

    def fail(self) -> None:
        """Have the last one raise."""
        error = ZeroDivisionError()
        with suppress(ZeroDivisionError):
            self._open.pop().__exit__(ZeroDivisionError, error, None)
            raise error
