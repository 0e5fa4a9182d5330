"""What stands in the place of lines that a replay log has lost, so that every entry behind them keeps its number and stays usable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from palaver.ids import DialogId
from palaver.log import LOST, NOTHING, Custom, Entry, Handle, Header, MessageEntry, draft, in_place_of, next_header
from palaver.messages import FrozenDict, Role
from palaver.session.carried.portable import Line, drafted

__all__ = ["filled", "number_of"]

_NUMBER = re.compile(rb'"seq": ?(\d{1,9})[,}]')
_KIND = re.compile(rb'"kind":"(\w+)"')
_ROLE = re.compile(rb'"role":"(\w+)"')
_BESIDE = b'"turn":false}'
_ANSWERS = {Role.ASSISTANT.value, Role.TOOL_CALL.value}
_TEXT = "[Entry {handle} cannot be read: its line of the replay log is spoilt.]"


def number_of(spoilt: bytes) -> int | None:
    """Give the number of the entry that a spoilt line held, where that can still be read."""
    found = _NUMBER.findall(spoilt)
    return int(found[-1]) if found else None


def filled(dialog: DialogId, known: Mapping[int, Line], spoilt: Mapping[int, bytes]) -> Iterator[Line]:
    """Give the lines of a dialog in order, with what stands for those that are lost between them.

    A lost message is a message of the harness that says so. It makes the calls that later entries answer, or answers those that were open, so
    that both halves of an exchange find each other. What else was lost is an entry that no view shows. What either said is not guessed.

    Args:
        dialog: The dialog.
        known: The lines that are whole, by the numbers of their entries.
        spoilt: What is left of the others, where something is.
    """
    last = NOTHING
    for seq in range(max(known, default=-1) + 1):
        line = known.get(seq)
        if line is None:
            end = _end_of_gap(known, seq)
            behind = [known[later] for later in range(end, end + _AHEAD) if later in known]
            said = not 0 <= behind[0].number == last.number + behind[0].counts
            line = _lost(Handle(dialog, seq), spoilt.get(seq, b""), last, behind, said=said)
        last = next_header(drafted(line), last, turn=line.turn, judged=False)
        yield line


_AHEAD = 64
"""How many entries behind a gap are looked at for results of calls that it made; a batch of calls is far smaller."""


def _end_of_gap(known: Mapping[int, Line], seq: int) -> int:
    while seq not in known:
        seq += 1
    return seq


def _lost(handle: Handle, left: bytes, last: Header, behind: Sequence[Line], *, said: bool) -> Line:
    """Make what stands for a lost line, after the header before it; a message, unless it is known that none was said."""
    kind = _KIND.search(left)
    if not said or (kind is not None and kind[1] != b"message"):
        entry: Entry = Custom(custom_type=LOST, data={"kind": kind[1].decode() if kind else ""}, at=last.at)
        return Line(handle.seq, not left.rstrip().endswith(_BESIDE), 0, draft(entry)[0].body)
    text = _TEXT.format(handle=handle)
    message = in_place_of(_header(left, last, behind), "", text).model_copy(
        update={"id": str(handle), "timestamp": last.at, "metadata": FrozenDict({LOST: True})}
    )
    made = draft(MessageEntry(at=last.at, message=message))[0]
    return Line(handle.seq, turn=True, counts=made.counts, body=made.body)


def _header(left: bytes, last: Header, behind: Sequence[Line]) -> Header:
    """Give the role of a lost message, and the calls that it made or answered: what is left of it, or what stands around it, says so."""
    told = _ROLE.search(left)
    role = "" if told is None else told[1].decode(errors="replace")
    answered = _answered(behind)
    made = tuple(call for call in answered if call not in last.open_calls)
    if made and role in {"", *_ANSWERS}:
        return NOTHING._replace(role=Role.ASSISTANT.value, calls=made)
    unanswered = tuple(call for call in last.open_calls if call not in answered)
    if unanswered and role in {"", Role.TOOL.value}:
        return NOTHING._replace(role=Role.TOOL.value, calls=unanswered)
    return NOTHING._replace(role=role if role in _ANSWERS else "")


def _answered(behind: Sequence[Line]) -> tuple[str, ...]:
    """Give the calls that the next entries begin or answer, up to the next answer of the model or the next question."""
    found: dict[str, None] = {}
    for line in behind:
        ready = drafted(line)
        if ready.opens or ready.role in {*_ANSWERS, Role.USER.value}:
            break
        found |= dict.fromkeys(ready.answers)
    return tuple(found)
