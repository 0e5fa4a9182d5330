"""Exchanges: the unit of cutting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from palaver.ids import DialogId
from palaver.log import Handle, Span, letter
from palaver.messages import Role, Speaker
from palaver.view.blocks import Block, Turn
from palaver.view.edits import NO_CHANGES, Change, in_force, shown_turns
from palaver.view.source import Recorded, Result


class Given(NamedTuple):
    """What an exchange shows that a program made.

    Attributes:
        given: Its turns.
        runs: The entries that it stands for: dialog, first, and the number after the last.
    """

    given: tuple[Turn, ...]
    runs: tuple[tuple[DialogId, int, int], ...] = ()
    loaded: bool = True

    def turns(self) -> tuple[Turn, ...]:
        """Return its turns."""
        return self.given

    def shape(self) -> Iterator[tuple[Handle, str]]:
        """Return its blocks that have a handle, and their letters."""
        for turn in self.given:
            for block in turn.blocks:
                if block.origin is not None:
                    yield block.origin, "m" if (known := letter(block.content)) == "." else known

    def results(self) -> Iterator[Result]:
        """Return its results that have a handle; their size is not known."""
        for turn in self.given[1:]:
            yield from (Result(block.origin, 0) for block in turn.blocks if block.origin is not None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchange:
    """An assistant response with a result for each of its calls, or one user or system message, or a derived text.

    An exchange of the log is made from headers; its turns are read on first use, or before with `View.load`. Two exchanges are equal when they show
    the same; comparing them reads both.

    Attributes:
        source: What it shows before any change: of the log, or turns that a program made.
        role: The role of its first turn.
        speaker: Who speaks in its first message.
        pinned: Whether every view must show it.
        open: Whether a call in it still waits for its result.
        derived: What it is when nobody said it: `record`, `summary` or `notice`; else empty.
        messages: How many recorded messages it was made of.
        size: The size of their recorded form, in bytes.
        changes: Its blocks that are shown in another form or left out.
    """

    source: Recorded | Given
    role: Role = Role.USER
    speaker: Speaker = Speaker.HUMAN
    pinned: bool = False
    open: bool = False
    derived: str = ""
    messages: int = 0
    size: int = 0
    changes: Mapping[Handle, Change] = NO_CHANGES
    _turns: tuple[Turn, ...] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(  # noqa: PLR0913 - its fields, by keyword
        cls,
        turns: Sequence[Turn],
        *,
        runs: Iterable[Span] = (),
        pinned: bool = False,
        open: bool = False,  # noqa: A002 - the field's name
        derived: str = "",
        messages: int = 0,
        size: int = 0,
    ) -> Exchange:
        """Return an exchange of turns that are at hand; `role` and `speaker` are those of the first turn."""
        given = tuple(turns)
        return cls(
            source=Given(given, tuple((run.dialog, run.start, run.stop) for run in runs)),
            role=given[0].role,
            speaker=next((block.speaker for block in given[0].blocks), Speaker.HARNESS),
            pinned=pinned,
            open=open,
            derived=derived,
            messages=messages,
            size=size,
        )

    @property
    def runs(self) -> tuple[Span, ...]:
        """Its entries, in order; empty when it is derived."""
        return tuple([Span(*run) for run in self.source.runs])

    @property
    def results(self) -> tuple[Result, ...]:
        """Its recorded tool results, in the order of the calls."""
        return tuple(self.source.results())

    def entries(self) -> Iterator[Handle]:
        """Return its entries, in order."""
        for dialog, start, stop in self.source.runs:
            for seq in range(start, stop):
                yield Handle(dialog, seq)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """A user or system turn alone; or an assistant turn, and after it the tool turn with a result for each of its calls."""
        if self._turns is None:
            object.__setattr__(self, "_turns", shown_turns(self.source.turns(), self.changes))
        return self._turns or ()

    @property
    def loaded(self) -> bool:
        """Whether its turns can be had without reading the log."""
        return self.source.loaded

    @property
    def first(self) -> Handle | None:
        """The handle of its first entry; None when it is derived."""
        return next(self.entries(), None)

    def blocks(self) -> Iterator[Block]:
        """Return its blocks in order."""
        for turn in self.turns:
            yield from turn.blocks

    def shape(self) -> Iterator[tuple[Handle, str]]:
        """Return the handles and letters of its recorded blocks, changed or not, without reading the log.

        Letters: `t` text, `h` thinking, `c` tool call, `r` tool result, `m` media and blocks of a kind unknown here.
        """
        return self.source.shape()

    def shown(self) -> Iterator[tuple[Handle, str]]:
        """Return the handles and letters of its recorded blocks that are not left out."""
        if not self.changes:
            yield from self.shape()
            return
        for handle, kind in self.shape():
            change = in_force(self.changes, handle)
            stays = kind == "c" or (kind == "r" and self.role is Role.ASSISTANT)
            if stays or change is None or change.text is not None:
                yield handle, kind

    def __eq__(self, other: object) -> bool:
        """Return whether both show the same of the same entries."""
        if not isinstance(other, Exchange):
            return NotImplemented
        return self is other or (self._key() == other._key() and self.turns == other.turns)

    def __hash__(self) -> int:
        """Return a hash that reads nothing."""
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.source.runs, self.role, self.speaker, self.pinned, self.open, self.derived, self.messages, self.size
