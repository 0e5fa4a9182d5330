"""The tree of dialogs: nodes for users, and the spans of entries that branches share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from palaver.errors import InvalidInput, NotFound
from palaver.log import HOLDING, Handle, Node, Reader, Run, Span, Stretch, clip, joined, rule
from palaver.messages import FrozenList
from palaver.session.messages import place_of_message
from palaver.store.protocol import Store

__all__ = [
    "DialogTreeNode",
    "Tree",
    "apart",
    "common",
    "newest",
    "runs_of",
    "tree_from_dicts",
    "tree_lines",
    "tree_of",
    "upto",
    "window",
]

Tree: TypeAlias = Mapping[str, "DialogTreeNode"]
"""Nodes by dialog id, in the order of creation."""

_FIELDS = ("dialog_id", "owner", "parent_id", "split_point", "last_n", "first_k", "children_ids")
_SHOWN_DIGITS = 8  # of an id in `tree_overview` (source document 000)


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
        found: list[str] = []
        waiting = deque([self])
        while waiting:
            node = waiting.popleft()
            found.append(node.dialog_id)
            waiting.extend(node.children)
        return found

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
        found = self._tree.get(dialog_id)
        if found is None:
            raise NotFound(dialog_id, what="dialog", hint="This node was read without its tree: use tree_from_dicts().")
        return found


def tree_of(nodes: Sequence[Node]) -> Tree:
    """Return the tree of a session's nodes, given in the order of creation."""
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


# --- spans ------------------------------------------------------------------------------------------------------------------------


def upto(spans: Sequence[Span], place: Handle) -> tuple[Span, ...]:
    """Return the spans up to an entry, inclusive.

    Raises:
        NotFound: The entry is not in them.
    """
    for index, span in enumerate(spans):
        if place in span:
            return (*spans[:index], Span(span.dialog, span.start, place.seq + 1))
    raise NotFound(str(place), what="entry", hint="This dialog does not contain it.")


def newest(spans: Sequence[Span]) -> Handle | None:
    """Return the last entry of spans, or None."""
    return Handle(spans[-1].dialog, spans[-1].stop - 1) if spans else None


def common(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """Return the common beginning of two paths."""
    found: list[Span] = []
    for mine, theirs in zip(one, other, strict=False):
        if (mine.dialog, mine.start) != (theirs.dialog, theirs.start):
            break
        found.append(Span(mine.dialog, mine.start, min(mine.stop, theirs.stop)))
        if mine.stop != theirs.stop:
            break
    return tuple(found)


def apart(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that are not in `others`, in order."""
    held: dict[str, list[Span]] = {}
    for other in sorted(others):
        held.setdefault(other.dialog, []).append(other)
    found: list[Span] = []
    for span in spans:
        start = span.start
        for other in held.get(span.dialog, ()):
            if start < min(other.start, span.stop):
                found.append(Span(span.dialog, start, min(other.start, span.stop)))
            start = max(start, other.stop)
        if start < span.stop:
            found.append(Span(span.dialog, start, span.stop))
    return tuple(found)


def runs_of(spans: Iterable[Span]) -> tuple[Run, ...]:
    """Return spans in the form that entries record."""
    return tuple(Run(dialog=span.dialog, start=span.start, stop=span.stop) for span in spans)


# --- which entries a fork shares ----------------------------------------------------------------------------------------------------


def window(store: Store, held: Sequence[Stretch], last_n: int, first_k: int) -> tuple[Span, ...]:
    """Return the spans of the first `first_k` and the last `last_n` messages, found in headers.

    An entry that is not a message belongs to the message before it, a fragment to the first fragment of its response. Of the omitted part,
    entries with a lasting effect stay (instructions, pins, …), so that the same settings are in force. The cost does not depend on the length
    of the log.
    """
    spans = [stretch.span for stretch in held]
    count = held[-1].first + held[-1].messages
    front, after, strays = _cut(store, held, first_k) if first_k else ([], spans, [])
    before, back, late = _cut(store, held, count - last_n)
    order = {span.dialog: index for index, span in enumerate(spans)}
    between = [*strays, *_holding(store, list(clip(before, after)))]
    between.sort(key=lambda span: (order[span.dialog], span.start))
    return joined([*front, *between, *apart(back, late)])


def _holding(store: Store, left_out: Sequence[Span]) -> Iterator[Span]:
    """Yield the omitted entries that have a lasting effect."""
    found: set[str] = set()
    for span in reversed(left_out):
        for header in store.latest_of_kind(span.dialog, HOLDING, span.start, span.stop):
            if header.kind not in found:
                yield Span(span.dialog, header.seq, header.seq + 1)
            if rule(header.kind).holds == "newest":
                found.add(header.kind)


def _cut(reader: Reader, held: Sequence[Stretch], index: int) -> tuple[list[Span], list[Span], list[Span]]:
    """Split the spans where message `index` begins.

    Returns:
        The part before, the part from there on, and the entries of the latter that continue a message of the former.
    """
    at, seq = place_of_message(reader, held, index)
    cut = held[at].span
    front = [*(stretch.span for stretch in held[:at]), Span(cut.dialog, cut.start, seq)]
    back = [Span(cut.dialog, seq, cut.stop), *(stretch.span for stretch in held[at + 1 :])]
    return front, back, list(_strays(reader, joined(front), back))


def _strays(reader: Reader, front: Sequence[Span], back: Sequence[Span]) -> Iterator[Span]:
    """Yield the entries after a cut that continue the response before it. The response ends where the next one begins."""
    if not front:
        return
    place = front[-1]
    last = reader.header(place.dialog, place.stop - 1)
    behind = [span for span in back if span.dialog == place.dialog and len(span)]
    if not last.response or not behind:
        return
    stop = max(span.stop for span in behind)
    if reader.header(place.dialog, stop - 1).number - last.number == stop - 1 - last.seq:
        return  # each entry begins a message, so none continues one
    for seq in range(last.seq + 1, stop):  # one by one, because the next response is near
        header = reader.header(place.dialog, seq)
        if header.response != last.response:
            return
        if header.continues == "message":
            yield from (Span(place.dialog, seq, seq + 1) for span in behind if span.start <= seq < span.stop)
