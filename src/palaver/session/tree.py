"""The tree of dialogs, as users see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.errors import InvalidInput, NotFound
from palaver.log import Node, Span
from palaver.messages import FrozenList

Tree: TypeAlias = Mapping[str, "DialogTreeNode"]
"""Nodes by dialog id, in the order of creation."""

_FIELDS = ("dialog_id", "owner", "parent_id", "split_point", "last_n", "first_k", "children_ids")
_SHOWN_DIGITS = 8  # of an id in `tree_overview` (LLLM)


@dataclass(frozen=True, slots=True)
class DialogTreeNode:
    """A dialog's place in the tree: ids and structure, no messages.

    A snapshot: to see later forks, read the node again.

    Attributes:
        dialog_id: The dialog.
        owner: The agent that owns it.
        parent_id: The dialog it was forked from, or None for a root.
        split_point: The number of messages it kept from its parent, or None for a root.
        last_n: The number of trailing messages requested for the fork (0: all), or None for a root.
        first_k: The number of leading messages requested for the fork, or None for a root.
        children_ids: The dialogs forked from it, in the order of the forks; read-only.
        kept: The entries it shares with its ancestors; not part of the dictionary form.
    """

    dialog_id: str
    owner: str = ""
    parent_id: str | None = None
    split_point: int | None = None
    last_n: int | None = None
    first_k: int | None = None
    children_ids: list[str] = field(default_factory=FrozenList, hash=False)
    kept: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    _tree: Tree = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_root(self) -> bool:
        """Whether it has no parent."""
        return self.parent_id is None

    @property
    def parent(self) -> DialogTreeNode | None:
        """The node it was forked from, or None for a root.

        Raises:
            NotFound: The node was read without its tree.
        """
        return None if self.parent_id is None else self._at(self.parent_id)

    @property
    def children(self) -> tuple[DialogTreeNode, ...]:
        """The nodes forked from it, in the order of the forks.

        Raises:
            NotFound: The node was read without its tree.
        """
        return tuple(map(self._at, self.children_ids))

    @property
    def depth(self) -> int:
        """The number of forks between it and its root.

        Raises:
            NotFound: The node was read without its tree.
        """
        forks, node = 0, self
        while (above := node.parent) is not None:
            forks, node = forks + 1, above
            if forks > len(self._tree):
                raise InvalidInput(f"Dialog {self.dialog_id} is its own ancestor.")
        return forks

    def subtree_ids(self) -> list[str]:
        """Return its own id and those of all dialogs below it, breadth first, siblings in the order of the forks.

        Raises:
            NotFound: The node was read without its tree.
        """
        ids: list[str] = []
        waiting = deque([self])
        while waiting:
            node = waiting.popleft()
            ids.append(node.dialog_id)
            waiting.extend(node.children)
        return ids

    def to_dict(self) -> dict[str, Any]:
        """Return the ids and numbers as JSON values."""
        return {name: getattr(self, name) for name in _FIELDS} | {"children_ids": list(self.children_ids)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> DialogTreeNode:
        """Read one node from the result of `to_dict`; `tree_from_dicts` reads several and links them.

        Raises:
            InvalidInput: The dialog id is missing.
        """
        if not isinstance(fields.get("dialog_id"), str):
            raise InvalidInput("A tree node needs a dialog_id.")
        known = {name: fields[name] for name in _FIELDS if name in fields}
        return cls(**known | {"children_ids": FrozenList(known.get("children_ids") or ())})

    def _at(self, dialog_id: str) -> DialogTreeNode:
        node = self._tree.get(dialog_id)
        if node is None:
            raise NotFound(dialog_id, what="dialog", hint="This node was read without its tree: use tree_from_dicts().")
        return node


def tree_of(nodes: Sequence[Node]) -> Tree:
    """Return the tree of a session's nodes, which are in the order of creation."""
    below: dict[str, list[str]] = {node.dialog_id: [] for node in nodes}
    for node in nodes:
        if node.parent_id is not None:
            below.setdefault(node.parent_id, []).append(node.dialog_id)
    return _linked(
        DialogTreeNode(
            dialog_id=node.dialog_id,
            owner=node.owner,
            parent_id=node.parent_id,
            split_point=node.split_point,
            last_n=node.last_n,
            first_k=node.first_k,
            children_ids=FrozenList(below[node.dialog_id]),
            kept=node.ranges,
        )
        for node in nodes
    )


def tree_from_dicts(dicts: Iterable[Mapping[str, Any]]) -> Tree:
    """Rebuild a tree from the dictionaries of its nodes, as a flat log contains them."""
    return _linked(map(DialogTreeNode.from_dict, dicts))


def _linked(nodes: Iterable[DialogTreeNode]) -> Tree:
    tree: dict[str, DialogTreeNode] = {}
    shared = MappingProxyType(tree)
    for node in nodes:
        tree[node.dialog_id] = replace(node, _tree=shared)
    return shared


def tree_lines(root: DialogTreeNode, count: Callable[[str], int]) -> Iterator[str]:
    """Yield a line for each dialog below a node, each under its parent; `count` returns a dialog's number of messages."""
    waiting = [(0, root)]
    while waiting:
        depth, node = waiting.pop()
        kept = f" (last_n={node.last_n}, first_k={node.first_k})" if node.last_n else ""
        branch = "  " * depth + "└─ " if depth else ""
        yield (
            f"{branch}[{node.dialog_id[:_SHOWN_DIGITS]}] owner={node.owner} "
            f"msgs={count(node.dialog_id)} split@{node.split_point}{kept}"
        )
        waiting.extend((depth + 1, child) for child in reversed(node.children))
