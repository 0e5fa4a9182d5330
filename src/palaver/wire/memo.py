"""The memo of compiled exchanges: an incremental compiler only processes new exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from palaver.view import Exchange
from palaver.wire.parts import Speech
from palaver.wire.report import Change

__all__ = ["Compiled", "Memo", "Taken"]


class Taken:
    """The ids that are taken in a request: those of earlier exchanges, and those of the exchange being compiled.

    Attributes:
        met: The ids of earlier exchanges that this one would have used.
        added: The ids that this one uses.
    """

    __slots__ = ("_before", "added", "met")

    def __init__(self, before: AbstractSet[str]) -> None:
        self._before = before
        self.met: set[str] = set()
        self.added: set[str] = set()

    def __contains__(self, one: str) -> bool:
        """Return whether an id is taken."""
        if one in self._before:
            self.met.add(one)
            return True
        return one in self.added


@dataclass(slots=True, eq=False)
class Compiled:
    """An exchange as one provider and model gets it.

    Attributes:
        exchange: The exchange.
        edited: Whether the view was edited before it, after it was said.
        script: Its speeches before media are chosen.
        changes: What compiling it changed.
        items: Its messages, items or contents, read-only; with media, what they are without.
        data: The canonical bytes of each item.
        met: Ids that earlier exchanges had taken.
        ids: Ids that it uses.
        media: Whether it holds images or sounds.
        calls: Whether it holds tool calls.
        asks: Whether it begins with a user's words.
        cleaned: Whether something in it had to be cleaned.
        checked: Whether a request that holds it was found valid.
    """

    exchange: Exchange
    edited: bool
    script: tuple[Speech, ...]
    changes: tuple[Change, ...]
    items: tuple[Mapping[str, Any], ...]
    data: tuple[bytes, ...]
    met: frozenset[str]
    ids: frozenset[str]
    media: bool
    calls: bool
    asks: bool
    cleaned: bool
    checked: bool = False

    def fits(self, edited: bool, taken: AbstractSet[str]) -> bool:  # noqa: FBT001 - the two facts that it depends on
        """Return whether compiling it anew would give the same, after other exchanges took these ids."""
        return self.edited is edited and self.ids.isdisjoint(taken) and self.met <= taken


class Memo:
    """The exchanges of a conversation's last request, compiled for one provider and model.

    It never changes a request: compiling without it gives the same.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._label: object = None
        self._compiled: dict[int, Compiled] = {}

    def known(self, label: object) -> Mapping[int, Compiled]:
        """Return what was compiled under a label, by the id of the exchange: nothing when the label is another one."""
        return self._compiled if label == self._label else {}

    def keep(self, label: object, compiled: list[Compiled]) -> None:
        """Replace what is kept."""
        self._label, self._compiled = label, {id(each.exchange): each for each in compiled}
