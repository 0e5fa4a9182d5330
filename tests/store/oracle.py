"""The oracle of the store machine: plain dicts and lists, which share no code with any backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from palaver.log import Draft, Header

WORDS = ("apple", "pear", "foo_bar", "你好")
CALLS = ("a", "b")
ANY_KIND = st.sampled_from(["message", "call_started", "turn_started", "turn_ended", "label", "compaction", "custom"])
SEARCHED = {"message", "label", "compaction"}
BESIDE = {"label", "compaction"}


@dataclass
class Written:
    """An entry as the oracle keeps it, with what is in force after it."""

    kind: str
    role: str
    body: bytes
    at: float
    turn_head: int
    number: int
    total: int
    view_base: int
    open_turn: int
    open_calls: list[str]
    response: str
    calls: list[str]
    word: str
    indexed: bool = False


@dataclass
class Branch:
    """A dialog as the oracle keeps it."""

    session: str
    made: float
    ranges: list[tuple[str, int, int]]
    entries: list[Written] = field(default_factory=list)

    def head(self) -> int:
        """Return the number of the newest turn-owned entry."""
        return self.entries[-1].turn_head if self.entries else -1

    def follow(self, draft: Draft, word: str, *, turn: bool) -> Written | None:
        """Return the entry that a draft becomes, or None when it may not follow."""
        last = self.entries[-1] if self.entries else Written("", "", b"", 0, -1, 0, 0, -1, -1, [], "", [], "")
        if turn == (draft.kind in BESIDE):
            return None
        if draft.kind == "call_started" and not (set(draft.answers) and set(draft.answers) <= set(last.open_calls)):
            return None
        if (draft.kind == "turn_started" and last.open_turn != -1) or (
            draft.kind == "turn_ended" and last.open_turn == -1
        ):
            return None
        seq = len(self.entries)
        return Written(
            kind=draft.kind,
            role=draft.role,
            body=draft.body,
            at=draft.at,
            turn_head=seq if turn else last.turn_head,
            number=last.number + (draft.counts if not draft.response or draft.response != last.response else 0),
            total=last.total + len(draft.body),
            view_base=seq if draft.kind == "compaction" else last.view_base,
            open_turn={"turn_started": seq, "turn_ended": -1}.get(draft.kind, last.open_turn),
            open_calls=_left_open(draft, last),
            response=draft.response or last.response,
            calls=list(draft.opens) + list(draft.answers),
            word=word,
        )


def _left_open(draft: Draft, last: Written) -> list[str]:
    if draft.role == "assistant":
        same = draft.response == last.response if draft.response else bool(draft.opens) and last.role == "assistant"
        return (last.open_calls if same else []) + list(draft.opens)
    if draft.role == "tool":
        return [call for call in last.open_calls if call not in draft.answers]
    return last.open_calls


def agrees(header: Header, seq: int, entry: Written) -> bool:
    """Return whether a header says what the oracle knows."""
    said: tuple[Any, ...] = (
        header.seq,
        header.kind,
        header.role,
        header.turn_head,
        header.number,
        header.total,
        header.view_base,
    )
    said += (header.open_turn, list(header.open_calls), list(header.calls), header.response, header.at, header.size)
    known: tuple[Any, ...] = (seq, entry.kind, entry.role, entry.turn_head, entry.number, entry.total, entry.view_base)
    known += (entry.open_turn, entry.open_calls, entry.calls, entry.response, entry.at, len(entry.body))
    return said == known


@st.composite
def drafts(draw: st.DrawFn, kinds: st.SearchStrategy[str] = ANY_KIND) -> tuple[Draft, str]:
    """Any draft, and the word that its body holds."""
    kind = draw(kinds)
    role = draw(st.sampled_from(["user", "assistant", "tool"])) if kind == "message" else ""
    word = draw(st.sampled_from(WORDS))
    ids = tuple(draw(st.lists(st.sampled_from(CALLS), unique=True, max_size=2)))
    opens = ids if role == "assistant" else ()
    answers = ids if role == "tool" or kind == "call_started" else ()
    response = draw(st.sampled_from(["", "r1", "r2"])) if role == "assistant" else ""
    at = float(draw(st.integers(0, 9)))
    body = f"{word} {draw(st.integers(0, 99))}".encode()
    return Draft(kind, role, int(kind == "message"), opens, answers, response, at, body), word
