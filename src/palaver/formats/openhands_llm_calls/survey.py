"""The first reading of a series: in which order the calls were made, and which of them went on from where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palaver.formats import fields
from palaver.formats.events import Loss
from palaver.formats.openhands_llm_calls.snapshots import Snapshot, essence, read
from palaver.formats.sources import Member


class Step(NamedTuple):
    """A call, and where it goes on.

    Attributes:
        member: Its file.
        dialog: The number of the dialog it belongs to.
        shared: How many messages of what was sent stand in that dialog already, inherited ones included.
        parent: The number of the dialog that this one leaves, where this call begins it; else -1.
    """

    member: Member
    dialog: int
    shared: int
    parent: int = -1


class Said(NamedTuple):
    """A message of a dialog.

    Attributes:
        essence: What it says.
        dialog: The dialog that holds it.
    """

    essence: bytes
    dialog: int


class _Call(NamedTuple):
    """What is kept of a file between the readings."""

    member: Member
    at: float
    sent: tuple[bytes, ...]
    answer: bytes


class Survey:
    """What the first reading found.

    Attributes:
        steps: The calls, in the order in which they were made.
        losses: What is no call, or cannot be read.
        first: The id of the first answer: names the run.
        model: The model of the first answer.
        started_at: When the first call was logged.
        longest: The messages of the dialog that grew longest, with all it inherited: the run, as its length is counted.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.losses: list[Loss] = []
        self.first = ""
        self.model = ""
        self.started_at = 0.0
        self.place = members[0].place("whole series")
        self._first_at = float("inf")
        calls = sorted(self._calls(members), key=lambda call: (call.at, call.member.name))
        self._dialogs: list[list[Said]] = []
        self.steps = tuple(self._step(call) for call in calls)
        self.longest: Sequence[Said] = max(self._dialogs, key=len, default=[])

    def _calls(self, members: Sequence[Member]) -> Iterator[_Call]:
        for member in members:
            found = read(member)
            if isinstance(found, Loss):
                self.losses.append(found)
                continue
            self._about(found)
            answer = essence(found.answer) if found.answer else b""
            yield _Call(member, found.at, tuple(essence(message) for message in found.messages), answer)

    def _about(self, found: Snapshot) -> None:
        if found.at < self._first_at:
            self._first_at = self.started_at = found.at
            self.first, self.model = fields.text(found.response, "id"), found.model

    def _step(self, call: _Call) -> Step:
        """Find the dialog that holds most of what was sent; where it holds something else behind that, the call begins a branch."""
        shared, dialog = max(
            ((_common(said, call.sent), number) for number, said in enumerate(self._dialogs)), default=(0, -1)
        )
        if dialog >= 0 and shared == len(self._dialogs[dialog]):
            parent = -1
        else:
            parent = dialog
            self._dialogs.append(self._dialogs[dialog][:shared] if dialog >= 0 else [])
            dialog = len(self._dialogs) - 1
        said = self._dialogs[dialog]
        new = [*call.sent[shared:], *([call.answer] if call.answer else [])]
        said.extend(Said(one, dialog) for one in new)
        return Step(call.member, dialog, shared, parent)


def _common(said: Sequence[Said], sent: Sequence[bytes]) -> int:
    """Count the messages that a request begins with as a dialog does."""
    count = 0
    for one, other in zip(said, sent, strict=False):
        if one.essence != other:
            break
        count += 1
    return count
