"""Sessions whose sizes can be added up with a pencil: English text in the tokens of o200k_base, and every message has as many as it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import cycle, islice
from typing import Any

from palaver.context import Composed, ContextManager, compose, policy
from palaver.context.meter import Meter
from palaver.context.recall import LIST
from palaver.messages import (
    AssistantMessage,
    Message,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    words_of,
)
from palaver.testing.logs import Log
from palaver.testing.policy_checks import commit
from palaver.tokens import FAMILIES, Budget, Family, counter
from palaver.view import Fold, View, fold_messages

_BARE = replace(FAMILIES["openai"], per_request=0, per_message=0, per_call=0, per_result=0, per_tools=0, per_tool=0)


class Tokens:
    """Counts tokens of o200k_base, and nothing around them: what tests of cuts count with."""

    family: Family = _BARE

    @lru_cache(maxsize=10_000)  # noqa: B019 - one object
    def text(self, text: str, /) -> int:
        """Return the number of tokens of a text."""
        return counter("gpt-4o").text(text)


class Characters:
    """Counts characters, and nothing around them: for tests whose sizes do not matter."""

    family: Family = replace(_BARE, factor=3.6)

    def text(self, text: str, /) -> int:
        """Return the length of a text."""
        return len(text)


class Manager(ContextManager):
    """A plain manager that does what a function does."""

    name = "mine"

    def __init__(self, does: Callable[[Any], Any]) -> None:
        self.does = does

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - whatever dialog there is
        """Return what the function makes of a dialog."""
        return self.does(dialog)


COUNTER = Tokens()
METER = Meter(COUNTER)

_SENTENCE = "we put all of it in the log so you can read on"
"""A token a word, and 3.6 recorded bytes a token, as in recorded sessions (`palaver.context.meter`)."""


@lru_cache(maxsize=10_000)
def prose(tokens: int, begin: str = "") -> str:
    """Return English text of so many tokens; the beginning counts."""
    more = tokens - COUNTER.text(begin)
    text = begin + "".join(islice(cycle(f" {word}" for word in _SENTENCE.split()), more))
    assert COUNTER.text(text) == tokens
    return text


def talk(messages: int, size: int = 1_000) -> list[Message]:
    """Return so many messages of one size, of user and model in turn; the last is the user's."""
    kinds = (UserMessage, AssistantMessage)
    return [kinds[(messages - at + 1) % 2](content=prose(size, f"{at:04}")) for at in range(messages)]


_CALL = COUNTER.text("bash") + COUNTER.text("{}")


def did(at: int, output: str, tool: str = "bash", args: dict[str, object] | None = None) -> list[Message]:
    """Return a call and its output."""
    call = ToolCallContent(f"c{at}", tool, args={} if args is None else args)
    return [AssistantMessage(contents=(call,)), ToolMessage.from_result(ToolResultContent(f"c{at}", output, name=tool))]


def work(rounds: int, size: int = 1_000, task: str = "task", then: str = "") -> list[Message]:
    """Return a task, and so many calls with outputs: 1,000 tokens a round; then perhaps words of the user."""
    said = [each for at in range(rounds) for each in did(at, prose(size - _CALL, f"{at:04}"))]
    return [UserMessage(content=task), *said, *([UserMessage(content=then)] if then else [])]


def composed(
    messages: Sequence[Message],
    by: str | dict[str, object] | ContextManager,
    limit: int | Budget,
    pinned: Sequence[int] = (),
) -> Composed:
    """Compose a list of messages within so many tokens."""
    manager = policy(by) if not isinstance(by, ContextManager) else by
    assert manager is not None
    budget = limit if isinstance(limit, Budget) else Budget.of_input(limit)
    return compose(fold_messages(messages, LIST, pinned=pinned), manager, budget, Meter(COUNTER))


def compacted(
    messages: Sequence[Message], by: str | dict[str, object] | ContextManager, limit: int | Budget
) -> list[Composed]:
    """Append messages to a dialog one by one, as an agent does, and return each compaction that it commits within so many tokens."""
    manager = policy(by) if not isinstance(by, ContextManager) else by
    assert manager is not None
    log, meter = Log(), Meter(COUNTER)
    budget = limit if isinstance(limit, Budget) else Budget.of_input(limit)
    made: list[Composed] = []
    views = Fold(log.store, log.store.node(log.dialog))
    for message in messages:
        (header,) = log.put(message)
        view = views.view(header)
        if any(each.open for each in view.exchanges):
            continue
        composed = compose(view, manager, budget, meter, committed=True)
        if composed.view is not view and composed.after.total < composed.before.total:
            commit(log, composed)
            made.append(composed)
    return made


def shape(view: View) -> str:
    """Return a letter for each exchange: `.` as it was said, `c` changed, `R` a record, `N` a notice."""
    letters = {"record": "R", "notice": "N", "summary": "S", "": "."}
    return "".join(
        "c" if any(block.reason for block in each.blocks()) else letters[each.derived] for each in view.exchanges
    )


def text(view: View, index: int = 0) -> str:
    """Return what an exchange says."""
    return "\n".join(words_of(block.content) for block in view.exchanges[index].blocks())


def sizes(view: View) -> list[int]:
    """Return the size of each exchange."""
    return [METER.exchange(each) for each in view.exchanges]
