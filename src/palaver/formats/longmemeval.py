"""LongMemEval haystacks: an array of cases, each with dated sessions. Every session is a conversation.

Based on `longmemeval_s.json` (xiaowu0162/LongMemEval, README.md), also in a variant with several questions a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, kept, numbered, values, word
from palaver.formats.sources import SourceFile
from palaver.formats.unread import Unread
from palaver.messages import from_chat_dict

NAME = "longmemeval"
OWNER = "assistant"
_SESSIONS = "haystack_sessions"
_QUESTIONS = ("question", "questions", "answer", "answers", "question_date", "answer_session_ids")
_SAID = frozenset({"role", "content"})
_KEYS = {"": f"question_id question_type haystack_dates haystack_session_ids {_SESSIONS} {' '.join(_QUESTIONS)}"}


class LongMemEval:
    """LongMemEval haystacks: one conversation per session."""

    name = NAME
    title = "LongMemEval haystacks"
    signs = "a JSON array of objects with question_id and haystack_sessions"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it contains haystacks, from 0.0 to 1.0."""
        first = next(iter(source.opening.elements), NOTHING)
        return 1.0 if "question_id" in first and _SESSIONS in first else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every session as a conversation, one case in memory at a time."""
        ordinal, unread = 0, Unread(_KEYS)
        for found in values(source.member):
            if isinstance(found, Loss):
                yield found
                continue
            case, place = found.fields, found.place
            if not isinstance(case.get(_SESSIONS), list):
                yield bad_record(place, f"it has no list of {_SESSIONS}")
                continue
            unread.see(case, place)
            for _ in [key for key in _QUESTIONS if case.get(key)]:
                unread.skip("question", "what is asked of the sessions, which only the source has", place)
            for item in numbered(case[_SESSIONS], f"{place}.{_SESSIONS}"):
                yield from _session(item, case, ordinal)
                ordinal += 1
        yield from unread.losses()


def _session(item: Item, case: Mapping[str, object], ordinal: int) -> Iterator[Event]:
    names, dates = fields.items(case, "haystack_session_ids"), fields.items(case, "haystack_dates")
    name = word(names[item.ordinal]) if item.ordinal < len(names) else f"session {item.ordinal}"
    at = _moment(dates[item.ordinal]) if item.ordinal < len(dates) else 0.0
    about = {key: case[key] for key in ("question_id", "question_type") if key in case}
    key = f"{word(case.get('question_id'))}:{name}:{item.ordinal}"
    yield Conversation(key=key, ordinal=ordinal, title=name, started_at=at, metadata=kept(about, ()))
    writer = DialogWriter("main", NAME)
    yield writer.branch(OWNER)
    if not isinstance(item.value, list):
        yield bad_record(item.place, "it is not a list of messages")
    for said in numbered(item.value, item.place):
        yield from guarded(said.place, _message(said, writer, key, at))


def _moment(date: object) -> float:
    """Read a date such as `2023/07/12 (Wed) 10:14`, which has no time zone: as UTC."""
    day, _, rest = date.partition(" ") if isinstance(date, str) else ("", "", "")
    return fields.moment(f"{day.replace('/', '-')}T{rest.rpartition(' ')[2]}")


def _message(item: Item, writer: DialogWriter, key: str, at: float) -> Iterator[Event]:
    value = item.expect()
    said = {name: value.get(name) for name in _SAID}
    about = {"id": f"{key}:{item.ordinal}", "timestamp": at, "metadata": kept(value, _SAID)}
    yield from writer.say(from_chat_dict(said, **about), item.origin(), counted=1)
