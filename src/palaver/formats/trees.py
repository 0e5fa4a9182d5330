"""The dialogs of a recording that is a tree: the first child of a node continues its dialog, and each later one begins a fork."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from palaver.formats.dialogs import DialogWriter, Mark, guarded
from palaver.formats.events import Event

ROOT = -1
"""The parent of a node that has none."""


class TreeWriter:
    """Writes the nodes of a tree in the order of the file.

    Attributes:
        root: The dialog that the first node begins. Put what comes before it, such as instructions, first.
        main: The key of the dialog with the last node.
    """

    def __init__(self, parents: Sequence[int], format_name: str, owner: str) -> None:
        """Find the dialog of each node.

        Args:
            parents: For each node the number of its parent, which comes before it; `ROOT` if it has none.
            format_name: The name of the format.
            owner: The name of the agent that owns the dialogs.
        """
        continued: set[int] = set()
        self._parents = parents
        self._keys: list[str] = []
        for node, parent in enumerate(parents):
            first = parent not in continued and (parent != ROOT or node == 0)
            continued.add(parent)
            self._keys.append(f"branch:{node}" if not first else "main" if node == 0 else self._keys[parent])
        self.root = DialogWriter("main", format_name)
        self.main = self._keys[-1] if self._keys else "main"
        self._owner = owner
        self._writers: dict[str, DialogWriter] = {}
        self._ends: list[Mark] = []
        self._start = self.root.mark()

    def key(self, number: int) -> str:
        """Return the key of the dialog of a node."""
        return self._keys[number]

    def node(self, number: int, place: str, say: Callable[[DialogWriter], Iterator[Event]]) -> Iterator[Event]:
        """Return the events of a node; `say` puts its entries. Call it for each node in turn."""
        key, parent = self._keys[number], self._parents[number]
        if number == 0:
            self._start, self._writers[key] = self.root.mark(), self.root
        elif key not in self._writers:
            mark = self._ends[parent] if parent != ROOT else self._start
            self._writers[key] = mark.writer.fork(key, mark)
            yield self._writers[key].branch(self._owner)
        writer = self._writers[key]
        yield from guarded(place, say(writer))
        self._ends.append(writer.mark())
