"""One long conversation through every adapter: what the framework has, what its model is sent, and that the model can read back all that is left out."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import pytest

from palaver import Session
from palaver.dialects import read_messages
from palaver.messages import Message
from palaver.store import Store
from palaver.tokens import o200k
from tests.integrations.long_talks import BUDGET, FILES, FIRST, NEWEST, ROUNDS, TALKS, Script, plain, read_file, told


def tokens(messages: Sequence[Message]) -> int:
    """Return the tokens of o200k_base in what messages say."""
    return sum(o200k.count(part) for message in messages for part in told(message))


def is_paired(request: Sequence[Message]) -> bool:
    """Return whether each call has its result directly after it, and each result its call."""
    open_calls: list[str] = []
    for message in request:
        calls, results = message.tool_calls(), message.tool_results()
        if open_calls and not calls and not results:
            return False
        for result in results:
            if result.id not in open_calls:
                return False
            open_calls.remove(result.id)
        open_calls += [call.id for call in calls]
    return not open_calls


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TALKS)
def test_long_conversation_is_sent_small_and_can_be_recalled(name: str, store: Store) -> None:
    """Over 200 rounds each request pairs and fits and has the first and the newest words; the framework has all, and the model reads back all that left."""
    dialect, talk = TALKS[name]
    script = Script(dialect)
    state = list(read_messages(list(talk(store, script)), dialect))
    assert len(script.requests) > ROUNDS + 2
    assert all(map(is_paired, script.requests))
    assert max(map(tokens, script.requests)) <= BUDGET
    assert all(FIRST in str(list(map(told, request))) for request in script.requests)
    assert all(NEWEST in str(list(map(told, request))) for request in script.requests[ROUNDS + 1 :])

    said = [part for message in state for part in told(message)]
    before = state[: 1 + next(index for index, message in enumerate(state) if NEWEST in told(message))]
    after = script.requests[ROUNDS + 1]
    assert [part for part in said if part.startswith("File ")] == [read_file(number) for number in range(FILES)]
    assert said.count(FIRST) == said.count(NEWEST) == 1
    known = Session.open(store, "talk").root.messages
    assert [part for message in known for part in told(message)] == said

    sent = {part for message in after for part in told(message)}
    omitted = [message for message in before if not sent.issuperset(told(message))]
    recalled = read_back(state[len(before) :])
    back = [message for message in omitted if all(part in recalled for part in told(message))]
    assert len(omitted) >= ROUNDS
    assert back == omitted
    sizes = (f"{tokens(before):,} → {tokens(after):,}", len(omitted), len(back))
    sys.stdout.write(f"\n| {name} | {len(before)} → {len(after)} | {' | '.join(map(str, sizes))} |\n")


def read_back(messages: Sequence[Message]) -> str:
    """Return what the model got from `recall`, its pages joined."""
    texts = [plain(result.text()) for message in messages for result in message.tool_results()]
    return "".join(re.sub(r"\n\[more follows; offset \d+\]$", "", text) for text in texts)
