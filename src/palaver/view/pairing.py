"""From headers to exchanges: fragments become one turn, and results go to their calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from palaver.ids import DialogId
from palaver.log import Derived, Handle, Header, Span, part_of
from palaver.messages import Role, Speaker, Trust
from palaver.messages.roles import SPEAKER_OF_ROLE
from palaver.view.blocks import Reason, Turn
from palaver.view.exchange import SUMMARY, Exchange, Reading, Recorded
from palaver.view.view import Omission

_SPEAKERS = {role.value: speaker for role, speaker in SPEAKER_OF_ROLE.items()} | {each.value: each for each in Speaker}


@dataclass(slots=True)
class Response:
    """A model's response, to which fragments and results may still come.

    Attributes:
        index: Its place among the exchanges.
        inherited: Whether an ancestor owns its first entry.
        entries: The entries in which the model speaks, with their shapes.
        calls: The ids of its calls, in order.
        waiting: For each call id, the places in `calls` that have no result yet.
        results: The results so far with their sizes, by the place in `calls` of the call that each answers.
        runs: Its entries so far.
        messages: How many messages it was made of.
        size: The size of its entries, in bytes.
    """

    index: int
    inherited: bool
    entries: list[tuple[DialogId, int, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    results: dict[int, tuple[DialogId, int, int, int]] = field(default_factory=dict)
    runs: list[tuple[DialogId, int, int]] = field(default_factory=list)
    messages: int = 0
    size: int = 0

    @property
    def first(self) -> Handle:
        """The handle of its first entry."""
        return Handle(*self.entries[0][:2])

    def call_handles(self) -> Iterator[Handle]:
        """Return the handles of its calls, in order."""
        for dialog, seq, letters in self.entries:
            yield from (Handle(dialog, seq, index) for index, letter in enumerate(letters) if letter == "c")

    def speak(self, dialog: DialogId, header: Header) -> None:
        """Add what an entry says."""
        self.entries.append((dialog, header.seq, header.blocks))
        if "c" in header.blocks:
            for call in header.calls:
                self.waiting.setdefault(call, []).append(len(self.calls))
                self.calls.append(call)

    def count(self, dialog: DialogId, header: Header, messages: int) -> None:
        """Count an entry as part of the exchange, once."""
        seq, runs = header.seq, self.runs
        newest, start, stop = runs[-1] if runs else ("", 0, 0)
        if newest != dialog or not start <= seq <= stop:
            runs.append((dialog, seq, seq + 1))
        elif stop == seq:
            runs[-1] = (dialog, start, seq + 1)
        else:
            return
        self.messages += messages
        self.size += header.size


@dataclass(slots=True)
class Pairing:
    """The exchanges so far, and the newest response, whose calls can still be answered.

    A result that comes after a newer response began does not go back to its call, because a request was sent without it. It is shown where it came.

    Attributes:
        read: Reads entries of the log.
        open_at: Returns the ids of the calls that were open where the branch begins, for an entry that an ancestor owns.
        open_before: Returns the block of a call, by its id, that was open where the shared entries around an entry begin; None if none was.
        holes: What the branch does not share between entries that it shares.
        apart: The results that are shown where they came, even if a call waits for them.
        exchanges: The exchanges so far, unchanged.
        response: The newest response.
        omissions: The entries left out.
        parted: The calls whose result may be on another branch, and those on another branch whose result is here.
        blocks: The other results left out; those that a checkpoint left out answer no call, even if one waits since their own is gone.
    """

    read: Reading
    open_at: Callable[[Handle], Collection[str]]
    open_before: Callable[[Handle, str], Handle | None]
    holes: Sequence[Span] = ()
    apart: AbstractSet[Handle] = frozenset()
    exchanges: list[Exchange] = field(default_factory=list)
    response: Response | None = None
    omissions: list[Omission] = field(default_factory=list)
    parted: dict[Handle, Omission] = field(default_factory=dict)
    blocks: dict[Handle, Omission] = field(default_factory=dict)
    _grown: bool = False

    def leave_out(self, dialog: DialogId, header: Header, reason: Reason) -> None:
        """Leave a whole message out."""
        span = Span(dialog, header.seq, header.seq + 1)
        self.omissions.append(Omission(reason=reason, span=span, messages=1, size=header.size))

    def derived(self, text: Derived) -> None:
        """Add a derived text."""
        speaker, trust = Speaker(text.speaker), Trust[text.trust.upper()]
        self.exchanges.append(Exchange.stated(text.text, text.label, text.sources, speaker, trust))

    def summary(self, dialog: DialogId, header: Header) -> None:
        """Add a recorded summary: of a branch, or by another agent's compaction."""
        seq = header.seq
        self.exchanges.append(
            Exchange(
                source=Recorded(self.read, Role.USER, ((dialog, seq, SUMMARY),), ((dialog, seq, seq + 1),)),
                speaker=Speaker.SUMMARY,
                derived="summary",
                size=header.size,
            )
        )

    def respond(self, dialog: DialogId, header: Header, *, inherited: bool) -> None:
        """Add a model's response, or its next fragment.

        Args:
            dialog: The dialog that owns the entry.
            header: The entry's header.
            inherited: Whether an ancestor owns the entry.
        """
        if header.blocks in _EMPTY:
            self.leave_out(dialog, header, _EMPTY[header.blocks])
            return
        response = self.response
        part = bool(header.continues) and response is not None and self._shared_with(response, dialog, header)
        if response is None or not part:
            self.finish(live=False)
            response = self.response = Response(len(self.exchanges), inherited)
            self.exchanges.append(_COMING)  # what comes between its fragments is shown after it
        response.count(dialog, header, 0 if part else 1)
        response.speak(dialog, header)
        self._grown = True

    def _shared_with(self, response: Response, dialog: DialogId, header: Header) -> bool:
        """Return whether the branch holds what an entry continues: a window may share the entry and not what lies before it."""
        last, _, stop = response.runs[-1]
        places = Handle(last, stop - 1), Handle(dialog, header.seq)
        return len({part_of(place, self.holes) for place in places}) == 1

    def say(self, dialog: DialogId, header: Header, role: Role) -> None:
        """Add a user's, a tool's or a late system message: results go to their calls, the rest is an exchange of its own."""
        letters, seq = header.blocks, header.seq
        if not letters:
            self.leave_out(dialog, header, Reason.EMPTY)
            return
        aside = self._answer(dialog, header) if "r" in letters else _NO_BLOCKS
        rest = letters if not aside else "".join([each for index, each in enumerate(letters) if index not in aside])
        if not rest.strip("."):
            return
        speaker = _SPEAKERS.get(header.speaker or header.role, Speaker.HARNESS)
        self.exchanges.append(
            Exchange(
                source=Recorded(self.read, role, ((dialog, seq, letters),), ((dialog, seq, seq + 1),), aside),
                role=role,
                speaker=Speaker.TOOL if speaker is Speaker.HUMAN and not rest.strip(".r") else speaker,
                messages=0 if aside else 1,
                size=header.size,
            )
        )

    def _answer(self, dialog: DialogId, header: Header) -> frozenset[int]:
        """Return the results of a message to the calls of the newest response; return the blocks that need no other place."""
        response = self.response
        calling = {} if response is None else response.waiting
        aside = []
        size = header.size // (len(header.calls) or 1)
        calls = iter(header.calls)
        for index, letter in enumerate(header.blocks):
            if letter != "r":
                continue
            call, place = next(calls, ""), Handle(dialog, header.seq, index)
            waiting = calling.get(call)
            if place in self.blocks:  # a checkpoint left it out
                aside.append(index)
            elif response is not None and waiting is not None and place not in self.apart:
                # an empty list: the call was made here and has its result already
                aside.append(index)
                if waiting:
                    response.results[waiting.pop(0)] = (dialog, header.seq, index, size)
                    response.count(dialog, header, 1)
                    self._grown = True
                else:
                    self.blocks[place] = Omission(reason=Reason.DUPLICATE_RESULT, handle=place, size=size)
            elif (missing := self.open_before(place, call)) is not None:
                self.parted[missing] = Omission(reason=Reason.PARTED, handle=missing)
        return frozenset(aside)

    def finish(self, *, live: bool = True) -> list[Exchange]:
        """Return the exchanges, with the newest response so far.

        Args:
            live: Whether its calls can still be answered. Those of a response that an ancestor owns never wait.
        """
        response = self.response
        if response is not None and (self._grown or (self.exchanges[response.index].open and not live)):
            self.exchanges[response.index] = self._exchange(response, live=live and not response.inherited)
            self._grown = False
        return self.exchanges

    def _exchange(self, response: Response, *, live: bool) -> Exchange:
        results = response.results
        missing = len(response.calls) - len(results)
        parted = self._parted(response) if response.inherited else ()
        missing_as = "waiting" if live else "interrupted"
        answers = tuple(
            [
                results.get(index) or ("parted" if index in parted else missing_as)
                for index in range(len(response.calls))
            ]
        )
        return Exchange(
            source=Recorded(self.read, Role.ASSISTANT, tuple(response.entries), tuple(response.runs), answers=answers),
            role=Role.ASSISTANT,
            speaker=Speaker.MODEL,
            open=live and missing > 0,
            messages=response.messages,
            size=response.size,
        )

    def _parted(self, response: Response) -> frozenset[int]:
        """Return the calls whose result may be on another branch; each is an omission that names the call."""
        missing = set(range(len(response.calls))).difference(response.results)
        opened = self.open_at(response.first) if missing else ()
        parted = frozenset(index for index in missing if response.calls[index] in opened)
        for index, handle in enumerate(response.call_handles()):
            self.parted.pop(handle, None)
            if index in parted:
                self.parted[handle] = Omission(reason=Reason.PARTED, handle=handle)
        return parted


_EMPTY = {"": Reason.EMPTY, "!": Reason.FAILED_RESPONSE}
_NO_BLOCKS: frozenset[int] = frozenset()
_COMING = Exchange.of((Turn(role=Role.ASSISTANT, blocks=()),))
"""Reserves the place of a response until it is finished."""
