"""What the user wanted is carried from policy to policy: none that follows another invents it, and none drops it."""

from typing import Any

import pytest

from palaver.context import ContextManager, Meter, Shown
from palaver.context.floor import floor
from palaver.log import Pin, Place
from palaver.messages import AssistantMessage, Message, ToolCallContent, ToolMessage, ToolResultContent, UserMessage
from palaver.testing.logs import Log
from palaver.view import Reason, View
from tests.context.helper import COUNTER, commit, fitted, record, seen, size

GOAL = "Sort the parser out. You must never delete files."
RULE = "Always run the linter before you are done."


def turns(start: int, stop: int) -> list[Message]:
    """Work: a call with its result, an answer, and what the user says next."""
    messages: list[Message] = []
    for number in range(start, stop):
        call = ToolCallContent(id=f"k{number}", name="bash", args={"command": f"cat f{number}"})
        messages += [
            AssistantMessage(contents=(call,)),
            ToolMessage.from_result(ToolResultContent(id=f"k{number}", content="out " * 200)),
            AssistantMessage(content="here it is"),
            UserMessage(content=f"q{number} " + "why " * 60),
        ]
    return messages


class Newest(ContextManager):
    """Keeps the newest, and says in its own words that there was more, or says nothing."""

    name = "newest"

    def __init__(self, summary: str) -> None:
        """Say this in the place of what is left out."""
        self.summary = summary

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
        """Give the newest exchanges behind the summary."""
        view: View = dialog.view()
        kept = view.exchanges[-6:]
        if self.summary:
            said = Log()
            said.put(UserMessage(content=self.summary))
            kept = (*seen(said).exchanges, *kept)
        return Shown(View(dialog_id=view.dialog_id, at=view.at, exchanges=kept))


@pytest.mark.parametrize(
    "before", [("default",), ("offload",), ("fold", "default"), ("default", "offload"), (Newest("They spoke."),)]
)
def test_the_goal_survives_whatever_policy_came_before(before: tuple[str | ContextManager, ...]) -> None:
    """The record made after other compactions names the first words of the user as his goal, and his constraints."""
    log = Log()
    log.put(UserMessage(content=GOAL), *turns(0, 10), UserMessage(content=RULE), *turns(10, 40))
    for number, by in enumerate(before):
        commit(log, fitted(seen(log), by, 6_000))
        log.put(*turns(40 + 20 * number, 60 + 20 * number))
    told = record(fitted(seen(log), "fold", 6_000).view)
    goal = told.split("Goal, in the user's words:")[1].splitlines()[1]
    assert GOAL in goal
    assert f'- "{RULE}"' in told
    assert '- "You must never delete files."' in told


def test_a_goal_that_nobody_kept_is_not_invented() -> None:
    """A manager that leaves the first words out and puts nothing in their place: the record has later asks and no goal."""
    log = Log()
    log.put(UserMessage(content=GOAL), *turns(0, 30))
    commit(log, fitted(seen(log), Newest(""), 6_000))
    log.put(*turns(30, 60))
    told = record(fitted(seen(log), "fold", 6_000).view)
    assert "Later asks" in told
    assert "Goal" not in told


def test_a_goal_that_is_still_shown_is_not_replaced_in_the_record() -> None:
    """The first words are pinned and stay: what came after them are later asks."""
    log = Log()
    log.put(UserMessage(content=GOAL), *turns(0, 40))
    log.put(Pin(target=Place(dialog=log.dialog, seq=0), at=0.0))
    view = fitted(seen(log), "fold", 6_000).view
    assert "Later asks" in record(view)
    assert "Goal" not in record(view)


@pytest.mark.parametrize("by", ["fold", "palaver", "openhands", "claude-code", "aider"])
def test_what_is_left_out_without_a_text_is_not_called_folded(by: str) -> None:
    """Where the text that a policy folds into has no room in the end, the reason says so: nothing of what it names is to be found in a record."""
    log = Log()
    called = ToolCallContent(id="k", name="bash", args={"command": "ls"})
    log.put(
        UserMessage(content="How many pages?"),
        AssistantMessage(contents=(called,)),
        ToolMessage.from_result(ToolResultContent(id="k", content="out " * 40)),
        AssistantMessage(content="twelve " * 20),
        UserMessage(content="Why?"),
    )
    view = seen(log)
    without, told = [], 0
    for tokens in range(sum(floor(view, Meter(COUNTER)).values()), size(view)):
        final = fitted(view, by, tokens).view
        told += any(exchange.derived for exchange in final.exchanges)
        without += [] if any(exchange.derived for exchange in final.exchanges) else [final]
    assert told
    assert without
    assert {gone.reason for final in without for gone in final.omissions} == {Reason.OVER_BUDGET}
