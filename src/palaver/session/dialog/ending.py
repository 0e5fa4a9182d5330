"""How far an object of a dialog knows its log: it moves forward, whichever of the threads that use it comes first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from threading import get_ident
from typing import NamedTuple

from palaver.errors import UnknownHandle
from palaver.ids import DialogId
from palaver.log import NOTHING, Header
from palaver.session.reading.erased import tells_of_erasure
from palaver.store.blocks import in_block, tells_blocks
from palaver.store.protocol import Store
from palaver.tools.locks import OwnLock

__all__ = ["Ending"]


class _Known(NamedTuple):
    """How far a log is known.

    Two threads learn of what they wrote in any order. What was written beside the turn is known when all of the turn before it is.

    Attributes:
        last: The newest entry.
        beside: The newest that was written beside the turn, perhaps behind something of the turn that is not known yet.
    """

    last: Header
    beside: Header

    def joined(self, last: Header, beside: Header) -> _Known:
        """Give what is known when this is known, too."""
        last, beside = max(self.last, last, key=_seq), max(self.beside, beside, key=_seq)
        return _Known(beside if beside.seq > last.seq and beside.turn_head == last.turn_head else last, beside)


def _seq(header: Header) -> int:
    return header.seq


class Ending:
    """The newest entry that is known, of those that were written here and those that the store was asked for.

    What a thread writes, or reads, inside a block of the store is known to this thread alone, for the block may still take it back. It is sure,
    and known to all, as soon as it is seen from outside: by its thread behind the end of the block, or by another one that finds it in the store.
    No lock is held while the store is asked.

    Attributes:
        undone: How often something that was known was not there any more, or was erased: nothing counts that was made of it.
        settled: How often something became sure that had been written, or read, in a block.
    """

    def __init__(self, store: Store, dialog_id: DialogId) -> None:
        """Begin with what the store has."""
        self._store = store
        self._dialog_id = dialog_id
        self._sure: _Known | None = None  # None: the object was made in a block, and nobody has looked from outside
        self._blocks: dict[int, list[_Known]] = {}  # by thread: all that was known there, step by step
        self._notes = 0
        self._lock = OwnLock()
        self.undone = 0
        self.settled = 0
        last = store.last(dialog_id)
        self._looked = NOTHING.seq if in_block(store) else last.seq  # how far was looked for erasures
        self._looked_within: dict[int, Header] = {}  # by thread: how far in its block
        self._begin_with(last)

    # --- what is known ------------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> Header:
        """The newest entry that this thread knows."""
        return self._known().last

    @property
    def shared(self) -> bool:
        """Whether no other thread has something that is not sure: else what is made of entries is made for one thread alone."""
        return all(thread == get_ident() for thread in list(self._blocks))

    def _known(self) -> _Known:
        while True:
            if not self._blocks and self._sure is not None:  # in this order: what leaves the one is in the other before
                return self._sure
            for thread, steps in list(self._blocks.items()):
                if thread == get_ident():
                    self._own(steps[-1])
                else:
                    self._others(thread, steps)
            with self._lock:
                mine, sure = self._blocks.get(get_ident()), self._sure
            if mine is not None:
                return mine[-1] if sure is None else sure.joined(*mine[-1])
            if sure is not None:
                return sure
            self._begin_with(self._store.last(self._dialog_id))

    def _begin_with(self, now: Header) -> None:
        """Take note of what the store has, where nothing else is known."""
        inside = in_block(self._store)
        with self._lock:
            if inside:
                self._blocks.setdefault(get_ident(), [_Known(now, now)])
            elif self._sure is None:
                self._sure = _Known(now, now)

    def _own(self, newest: _Known) -> None:
        """Look whether what this thread knows of a block is there still: sure behind its end, and what the store has where it was taken back."""
        inside = in_block(self._store)
        if self._stands(newest):
            if not inside:
                self._settle(get_ident(), newest, whole=True)
            return
        notes = self._notes
        while not self._goes_back(self._store.last(self._dialog_id), notes, inside=inside):
            notes = self._notes  # another thread wrote through this object since

    def _goes_back(self, now: Header, notes: int, *, inside: bool) -> bool:
        with self._lock:
            if notes != self._notes:
                return False
            self.undone += 1
            self._notes += 1
            if inside:
                self._blocks[get_ident()] = self._led_to(now)
            else:
                self._sure = _Known(now, now)
                self._blocks.pop(get_ident(), None)
                self.settled += 1
            return True

    def _led_to(self, now: Header) -> list[_Known]:
        return [*(one for one in self._blocks.get(get_ident(), ()) if one.last.seq < now.seq), _Known(now, now)]

    def _others(self, thread: int, steps: list[_Known]) -> None:
        """Look how much of what another thread wrote in blocks is there for this one: that much is sure, the rest is his."""
        newest = steps[-1]
        found = self._found(newest.last)
        if found == newest.last and self._stands(newest):
            self._settle(thread, newest, whole=True)
            return
        now = self._store.last(self._dialog_id)
        for at in range(bisect_right(steps, now.seq, key=lambda one: one.last.seq) - 1, -1, -1):
            if self._sure is not None and steps[at].last.seq <= self._sure.last.seq:
                break
            if self._stands(steps[at]):
                self._settle(thread, steps[at], whole=False)
                break
        if found is not None and found != newest.last:
            self._forget(thread, newest)

    def _settle(self, thread: int, known: _Known, *, whole: bool) -> None:
        """Know for all what a thread knew of its block; with `whole`, that is all there is of it, unless it wrote more since."""
        with self._lock:
            steps = self._blocks.get(thread)
            if steps is None:
                return
            self._sure = known if self._sure is None else self._sure.joined(*known)
            if whole and steps[-1] is known:
                del self._blocks[thread]
            self.settled += 1
            self._notes += 1

    def _forget(self, thread: int, newest: _Known) -> None:
        """Know nothing of a thread's block any more: another entry has its number, so it was taken back."""
        with self._lock:
            steps = self._blocks.get(thread)
            if steps is not None and steps[-1] is newest:
                self.undone += 1  # before it goes: who sees that it is gone sees this
                self._notes += 1
                del self._blocks[thread]

    def _stands(self, known: _Known) -> bool:
        stands = self._found(known.last) == known.last
        return stands and (known.beside.seq <= known.last.seq or self._found(known.beside) == known.beside)

    def _found(self, header: Header) -> Header | None:
        """Give what the store has under an entry's number, as this thread sees it."""
        if header.seq < 0:
            return header
        try:
            return self._store.header(self._dialog_id, header.seq)
        except UnknownHandle:
            return None

    # --- what is taken note of ----------------------------------------------------------------------------------------------------

    def wrote(self, header: Header) -> None:
        """Take note of an entry of the turn, made on the newest one that was known."""
        self._note(lambda known: known.joined(header, known.beside))

    def added(self, header: Header) -> None:
        """Take note of an entry beside the turn."""
        self._note(lambda known: known.joined(known.last, header))

    def _note(self, change: Callable[[_Known], _Known]) -> None:
        inside = in_block(self._store)
        me = get_ident()
        before = self._known()
        with self._lock:
            sure, steps = self._sure, self._blocks.get(me)
            self._notes += 1
            if not inside:
                self._sure = change(before if sure is None else sure)
            elif steps is None:
                self._blocks[me] = [change(before if sure is None else sure)]
            else:
                steps.append(change(steps[-1] if sure is None else sure.joined(*steps[-1])))

    def look(self) -> bool:
        """Look whether something was erased that the dialog holds, by whomever, since the look before; True where it was: then `undone` counts it.

        Of what others wrote nothing else is taken note of. Costs the headers of what is new since the look before.
        """
        inside = in_block(self._store)
        within = self._looked_within.pop(get_ident(), None)
        newest = within if inside and within is not None and self._found(within) == within else None
        upto, erased = self._looked if newest is None else max(self._looked, newest.seq), False
        for header in self._store.headers(self._dialog_id, upto + 1):
            newest, upto = header, header.seq
            if tells_of_erasure(self._store, self._dialog_id, header):
                erased = True
                self.added(header)
        if not inside:
            self._looked = upto
        elif newest is not None:  # what this thread alone sees may go again
            self._looked_within[get_ident()] = newest
        if erased:
            with self._lock:
                self.undone += 1
        return erased

    def reload(self) -> None:
        """Take note of what the store has, unless something is taken note of meanwhile: then it is asked again.

        What the store has counts, also where it has less: a block that raised took back what was written in it.
        """
        inside = in_block(self._store)
        known = self._known()
        while True:
            notes = self._notes
            now = self._store.last(self._dialog_id)
            lost = not tells_blocks(self._store) and not self._stands(known)
            with self._lock:
                if notes != self._notes:
                    continue
                self._notes += 1
                self._looked = min(self._looked, now.seq)
                self.undone += lost
                if inside:
                    self._blocks[get_ident()] = self._led_to(now)
                else:
                    self._sure = _Known(now, now)
                return
