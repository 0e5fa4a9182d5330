"""Evidence: of a long chat history, whether what answers a question asked at its end is in the view, and whether a search finds it.

Reads files in the shape of LongMemEval (arXiv 2410.10813): a list of objects with `haystack_sessions` (lists of turns with `role`, `content` and
`has_answer`), `haystack_session_ids`, `answer_session_ids`, and `question` and `answer`, or `questions` and `answers` with a list of ids each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.context import Meter
from palaver.errors import InvalidInput
from palaver.formats import open_source
from palaver.ids import DialogId, derive_id, new_session_id
from palaver.lab.entrants import Entrant
from palaver.lab.lookups import Index
from palaver.lab.metrics import ndcg_at, recall_all_at, recall_any_at, retained
from palaver.lab.recorded import trace
from palaver.lab.replay import Replay
from palaver.lab.things import things, words
from palaver.log import MessageEntry, Node, draft
from palaver.messages import AssistantMessage, Message, TextContent, UserMessage
from palaver.store import MemoryStore, SessionRecord
from palaver.tokens import ModelCounter
from palaver.view import View

__all__ = ["DEPTHS", "Evidence", "Found", "Haystack", "Question", "Ranked", "evidence", "haystacks", "searched"]

DEPTHS = (5, 10, 50)
"""The k of what a search finds: those that LongMemEval reports."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question at the end.

    Attributes:
        text: The question.
        answer: Its answer.
        sessions: The ids of the sessions that hold the answer.
        turns: The turns in them that are marked to hold it: session id and number.
    """

    text: str
    answer: str
    sessions: frozenset[str]
    turns: frozenset[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class Haystack:
    """A long history, and what is asked of it.

    Attributes:
        name: Its id.
        turns: The turns in order: session id, number in the session, role, words.
        questions: What is asked.
    """

    name: str
    turns: tuple[tuple[str, int, str, str], ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a view at the end of a history holds for a question.

    Attributes:
        question: The question.
        retained: The share of the turns with the answer that it shows word for word; None where none is marked.
        answered: Whether the answer's words stand in it.
        any: Whether it shows a turn, word for word, of one of the sessions that hold the answer: `recall_any` of all sessions it shows; None
            where no session holds it.
        all: The same of all of them: `recall_all`. A view has no ranking, and so no k and no NDCG.
    """

    question: str
    retained: float | None
    answered: bool
    any: float | None
    all: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """How well a search ranks what is relevant.

    Attributes:
        any: For each k, whether one that is relevant is among the first k.
        all: For each k, whether all of them are.
        ndcg: For each k, the discounted gain.
    """

    any: Mapping[int, float]
    all: Mapping[int, float]
    ndcg: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search for a question finds in a history.

    Attributes:
        question: The question.
        sessions: How it ranks the sessions that hold the answer; None where none does: the question is an abstention.
        turns: How it ranks the turns that hold it; None where none is marked.
    """

    question: str
    sessions: Ranked | None
    turns: Ranked | None


def haystacks(path: Path) -> Iterator[Haystack]:
    """Read the histories of a file.

    Raises:
        InvalidInput: It is no file in this shape.
    """
    with open_source(path) as source:
        text = source.members[0].read(_MOST)
    try:
        found = [_haystack(one) for one in json.loads(text)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path} is not in the shape of LongMemEval: {error!r}.",
            hint="It is a list of objects with haystack_sessions.",
        ) from error
    yield from found


_MOST = 1 << 30
"""Bytes of a file at most."""

_ABSTAINS = "_abs"
"""How the id of a question ends in LongMemEval that nothing answers: the sessions that it names hold something like it."""


def _haystack(one: Mapping[str, Any]) -> Haystack:
    ids = [str(each) for each in one["haystack_session_ids"]]
    sessions = list(zip(ids, one["haystack_sessions"], strict=True))
    marked = frozenset(
        (key, number) for key, turns in sessions for number, turn in enumerate(turns) if turn.get("has_answer")
    )
    several = "questions" in one
    asked = one["questions"] if several else [one["question"]]
    answers = one["answers"] if several else [one["answer"]]
    held = one["answer_session_ids"] if several else [one["answer_session_ids"]]
    if str(one.get("question_id", "")).endswith(_ABSTAINS):
        held = [[] for _ in asked]
    return Haystack(
        name=str(one.get("question_id", "")),
        turns=tuple(
            (key, number, str(turn["role"]), str(turn["content"]))
            for key, turns in sessions
            for number, turn in enumerate(turns)
        ),
        questions=tuple(
            Question(
                str(text), str(answer), frozenset(map(str, keys)), frozenset(one for one in marked if one[0] in keys)
            )
            for text, answer, keys in zip(asked, answers, held, strict=True)
        ),
    )


def evidence(haystack: Haystack, entrant: Entrant, counting: ModelCounter) -> tuple[Evidence, ...]:
    """Replay a history under a policy, and look at the view in which its questions would be asked.

    Args:
        haystack: The history.
        entrant: The policy.
        counting: What counts tokens.

    Raises:
        InvalidInput: The policy failed, or its budget is infeasible at the end.
    """
    store, dialog, places = _told(haystack)
    calls = trace(store, dialog)
    replay = Replay(calls, things(calls), entrant, stand_in="fold", meter=Meter(counting), rates=None)
    last: View | None = None
    for step in replay.steps():
        last = None if step.composed is None else step.view
    if last is None:
        said = replay.error or "what must be sent is larger than its budget"
        raise InvalidInput(f"{entrant.name} gives no view at the end of {haystack.name}: {said}.")
    shown = {
        places[block.origin.seq]
        for exchange in last.exchanges
        for block in exchange.blocks()
        if block.origin is not None and block.reason is None and block.origin.seq in places
    }
    turns, sessions = {_turn(*place) for place in shown}, sorted({key for key, _ in shown})
    text = _plain("\n".join(words(block.content) for exchange in last.exchanges for block in exchange.blocks()))
    return tuple(
        Evidence(
            question=each.text,
            retained=retained({_turn(*place) for place in each.turns}, turns),
            answered=bool(_plain(each.answer)) and _plain(each.answer) in text,
            any=recall_any_at(sessions, each.sessions, len(sessions)) if each.sessions else None,
            all=recall_all_at(sessions, each.sessions, len(sessions)) if each.sessions else None,
        )
        for each in haystack.questions
    )


def searched(haystack: Haystack) -> tuple[Found, ...]:
    """Search a history for each question, by BM25 over its turns, and score the turns, and the sessions that they are of.

    A session stands where its first turn was found, once (LongMemEval's granularity `session`); it is relevant if it holds the answer.
    """
    index = Index()
    for _, _, _, text in haystack.turns:
        index.add(text)
    found = []
    for each in haystack.questions:
        hits = [haystack.turns[number] for number in index.search(each.text, first=len(index))]
        found.append(
            Found(
                question=each.text,
                sessions=_ranked(list(dict.fromkeys(key for key, *_ in hits)), each.sessions),
                turns=_ranked(
                    [_turn(key, number) for key, number, *_ in hits], {_turn(*place) for place in each.turns}
                ),
            )
        )
    return tuple(found)


def _ranked(ranked: Sequence[str], relevant: Collection[str]) -> Ranked | None:
    if not relevant:
        return None
    return Ranked(
        any={k: recall_any_at(ranked, relevant, k) for k in DEPTHS},
        all={k: recall_all_at(ranked, relevant, k) for k in DEPTHS},
        ndcg={k: ndcg_at(ranked, relevant, k) for k in DEPTHS},
    )


def _turn(session: str, number: int) -> str:
    return f"{session}#{number}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _told(haystack: Haystack) -> tuple[MemoryStore, DialogId, Mapping[int, tuple[str, int]]]:
    """Write a history down as one dialog that ends with a question; give where each turn is."""
    store, session = MemoryStore(), new_session_id()
    store.create_session(SessionRecord(session_id=session, name=haystack.name))
    dialog = DialogId(derive_id("haystack", haystack.name))
    store.create_dialog(Node(dialog_id=dialog, session_id=session))
    places: dict[int, tuple[str, int]] = {}
    for number, message in enumerate(_messages(haystack)):
        last = store.last(dialog)
        ready, _ = draft(MessageEntry(message=message), continues=last.response)
        store.append(dialog, [ready], last.turn_head)
        if number < len(haystack.turns):
            places[number] = haystack.turns[number][:2]
    return store, dialog, places


def _messages(haystack: Haystack) -> Iterator[Message]:
    for key, number, role, text in haystack.turns:
        if role == "assistant":
            yield AssistantMessage(contents=(TextContent(content=text or "-"),), response_id=f"{key}#{number}")
        else:
            yield UserMessage.text(text)
    yield UserMessage.text("I have a question.")
    yield AssistantMessage(contents=(TextContent(content="Ask."),), response_id="the question")
