"""A process that goes on with a dialog sees and sends what a fresh process would, whatever happened in between."""

import json
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import AssistantMessage, Dialog, Message, Session, ToolCallContent, ToolMessage, ToolResultContent
from palaver.context.triggers import Figures
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.log.entries import Instructions, Toolset
from palaver.log.values import Section
from palaver.store import MemoryStore
from palaver.wire import Request
from tests.wire.scenes import BASH, MODELS

POLICIES = ("palaver", "default", "openhands", "opencode", "full")
BUDGET = 2_000


def rounds(start: int, count: int, *, large: bool) -> list[Message]:
    """Give tool rounds; now and then one uses an id again, or fails."""
    said: list[Message] = []
    for number in range(start, start + count):
        call = ToolCallContent(id=f"call_{number % 11}", name="bash", args={"command": f"cat {number % 5}.py"})
        text = f"{number} " + "word " * (200 if large else 5)
        result = ToolResultContent(id=call.id, name="bash", content=text, is_error=number % 7 == 3)
        said += [AssistantMessage(contents=(call,), response_id=f"r{number}"), ToolMessage.from_result(result)]
    return said


def told(request: Request) -> tuple[object, ...]:
    """Give everything that a request says."""
    return json.dumps(request.body), request.digest, request.report, dict(request.tool_names), request.history


def asked(dialog: Dialog, name: str, policy: str | None) -> object:
    """Give what a dialog sends, or why it cannot."""
    budget = None if policy in {None, "full"} else BUDGET
    try:
        return told(dialog.request(name, MODELS[name], policy=policy, budget=budget))
    except InfeasibleBudget as error:
        return str(error)


def figures(dialog: Dialog) -> Figures:
    """Give what triggers look at."""
    return dialog.figures(at=0.0, model="gpt-5.2")


class Life:
    """A dialog that one process goes on with, and what may happen to it."""

    def __init__(self) -> None:
        """Begin."""
        self.store = MemoryStore()
        self.dialog = Session.create(self.store, "life").root
        self.dialog.record(Toolset(tools=(BASH,)))
        self.number = 0

    def fresh(self) -> Dialog:
        """Give the dialog as a process has it that has read nothing yet."""
        return Session.open(self.dialog.session_id, store=self.store).dialog(self.dialog.dialog_id)

    def happens(self, what: str, data: st.DataObject) -> None:
        """Let something happen."""
        dialog = self.dialog
        if what == "asks":
            self.number += 1
            dialog.put_text(f"Question {self.number}: you must keep {self.number}.py.")
        elif what in {"works", "reads"}:
            count = data.draw(st.integers(1, 5))
            dialog.append(rounds(self.number, count, large=what == "reads"))
            self.number += count
        elif what == "answers":
            dialog.append(AssistantMessage(content="Done.", response_id=f"a{self.number}"))
        elif what == "forks":
            self.dialog = dialog.fork(data.draw(st.sampled_from([0, 3])))
        elif what == "instructs":
            dialog.record(Instructions(sections=(Section(name="careful", text=f"Be careful {self.number}."),)))
        elif what == "commits":
            self._commit(data)
        elif len(dialog.view().exchanges):
            self._marks(what, data)

    def _commit(self, data: st.DataObject) -> None:
        policy = data.draw(st.sampled_from(POLICIES[:-1]))
        with suppress(InvalidInput, InfeasibleBudget):  # there may be nothing to be made smaller
            self.dialog.commit(self.dialog.compose(policy, BUDGET, model="gpt-5.2"), margin=0.0)

    def _marks(self, what: str, data: st.DataObject) -> None:
        exchange = data.draw(st.sampled_from(self.dialog.view().exchanges))
        place = exchange.first
        if place is None:
            return
        if what == "pins":
            self.dialog.pin(place)
        elif what == "quarantines":
            block = data.draw(st.sampled_from([b.origin for b in exchange.blocks() if b.origin is not None] or [place]))
            self.dialog.quarantine(block)


HAPPENINGS = (
    "asks",
    "works",
    "works",
    "reads",
    "reads",
    "answers",
    "forks",
    "instructs",
    "commits",
    "pins",
    "quarantines",
)


@settings(max_examples=settings().max_examples // 8, deadline=None)
@given(data=st.data())
def test_law_what_is_sent_is_what_a_fresh_process_sends(data: st.DataObject) -> None:
    """Growth, forks, compactions, pins, quarantines, other providers, policies: every byte and note is the same as without what was kept."""
    life = Life()
    for _ in range(data.draw(st.integers(3, 10))):
        life.happens(data.draw(st.sampled_from(HAPPENINGS)), data)
        name = data.draw(st.sampled_from(["anthropic", "anthropic", *MODELS]))
        policy = data.draw(st.sampled_from([None, None, *POLICIES]))
        assert asked(life.dialog, name, policy) == asked(life.fresh(), name, policy)
    assert figures(life.dialog) == figures(life.fresh())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_turn_more_compiles_what_is_new_however_long_the_log(policy: str) -> None:
    """Under every policy few rounds are compiled for a turn more, at five times the length, too: what is shown as before is kept."""
    for length in (60, 300):
        life = Life()
        life.dialog.put_text("Read all of it.")
        life.dialog.append(rounds(0, length, large=True))
        made = [_compiled(life.dialog, policy)]
        for number in range(5):
            life.dialog.append(rounds(1000 + number, 1, large=False))
            made.append(_compiled(life.dialog, policy))
        new = sorted(after - before for before, after in pairwise(made))
        assert (
            new[len(new) // 2] <= 8
        )  # in the middle: a policy may make the view smaller at one of the turns, and then all of it is new


def _compiled(dialog: Dialog, policy: str) -> int:
    """Compile, and give how many rounds were compiled in all."""
    budget = None if policy == "full" else 20_000
    request = dialog.request("openai-chat", "gpt-5.2", policy=policy, budget=budget)
    return dialog._compiled.shelf(request.profile, "gpt-5.2", "", asked=False).made  # what is counted is counted inside
