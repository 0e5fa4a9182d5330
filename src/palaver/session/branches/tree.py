"""The tree of dialogs as users walk it: derived from the nodes a store keeps, never kept beside them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.errors import InvalidInput, UnknownDialog
from palaver.log import Node, Span
from palaver.messages import FrozenList

__all__ = ["DialogTreeNode", "Tree", "tree_from_dicts", "tree_of"]

Tree: TypeAlias = Mapping[str, "DialogTreeNode"]
"""Nodes by dialog id, in the order in which the dialogs were made."""

_IDS = ("dialog_id", "owner", "parent_id", "split_point", "last_n", "first_k", "children_ids")


@dataclass(frozen=True, slots=True)
class DialogTreeNode:
    """A dialog's place in the tree: ids and structure, no messages.

    A snapshot: a fork made later shows in a node that is asked for later.

    Attributes:
        dialog_id: The dialog.
        owner: The agent that owns it.
        parent_id: The dialog it was forked from, or None for a root.
        split_point: How many messages it kept from its parent, or None for a root.
        last_n: How many trailing messages the fork asked for (0: all), or None for a root.
        first_k: How many leading messages the fork asked for, or None for a root.
        children_ids: The dialogs forked from it, in the order of the forks; read-only.
        kept: The entries it shares with its ancestors, exactly; not part of the dictionary form.
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
            UnknownDialog: The node was read alone, without its tree.
        """
        return None if self.parent_id is None else self._at(self.parent_id)

    @property
    def children(self) -> tuple[DialogTreeNode, ...]:
        """The nodes forked from it, in the order of the forks.

        Raises:
            UnknownDialog: The node was read alone, without its tree.
        """
        return tuple(map(self._at, self.children_ids))

    @property
    def depth(self) -> int:
        """How many forks lie between it and its root.

        Raises:
            UnknownDialog: The node was read alone, without its tree.
        """
        forks, node = 0, self
        while (above := node.parent) is not None:
            forks, node = forks + 1, above
            if forks > len(self._tree):
                raise InvalidInput(f"Dialog {self.dialog_id} is its own ancestor.")
        return forks

    def subtree_ids(self) -> list[str]:
        """Give its own id and those of all dialogs below it, level by level, siblings in the order of the forks.

        Raises:
            UnknownDialog: The node was read alone, without its tree.
        """
        found: list[str] = []
        waiting = deque([self])
        while waiting:
            node = waiting.popleft()
            found.append(node.dialog_id)
            waiting.extend(node.children)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Give the ids and numbers as JSON values."""
        return {name: getattr(self, name) for name in _IDS} | {"children_ids": list(self.children_ids)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> DialogTreeNode:
        """Read what `to_dict` gave: a node alone; `tree_from_dicts` reads several that know each other.

        Raises:
            InvalidInput: There is no dialog id.
        """
        if not isinstance(fields.get("dialog_id"), str):
            raise InvalidInput("A tree node needs a dialog_id.")
        known = {name: fields[name] for name in _IDS if name in fields}
        return cls(**known | {"children_ids": FrozenList(known.get("children_ids") or ())})

    def _at(self, dialog_id: str) -> DialogTreeNode:
        found = self._tree.get(dialog_id)
        if found is None:
            raise UnknownDialog(dialog_id, hint="This node was read without its tree: use tree_from_dicts().")
        return found


def tree_of(nodes: Iterable[Node]) -> Tree:
    """Derive the tree from the nodes of a session, given in the order in which the dialogs were made."""
    nodes = tuple(nodes)
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
    """Rebuild a tree from the dictionaries of its nodes alone, as a flat log holds them."""
    return _linked(map(DialogTreeNode.from_dict, dicts))


def _linked(nodes: Iterable[DialogTreeNode]) -> Tree:
    """Let the nodes know each other."""
    tree: dict[str, DialogTreeNode] = {}
    shared = MappingProxyType(tree)
    for node in nodes:
        tree[node.dialog_id] = replace(node, _tree=shared)
    return shared
