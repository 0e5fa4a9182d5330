"""What operations cost over a network: journeys to the server, statements and commits, counted between a client and a real server."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import pytest

from palaver import AssistantMessage, Session, UserMessage, tool
from palaver.agent import Agent
from palaver.providers.scripted import ScriptedProvider
from palaver.store import open_store
from palaver.store.protocol import Store
from tests import postgres
from tests.journeys import Traffic, counted

T = TypeVar("T")

MESSAGES = 100
NAME = "counted"


@dataclass
class Counted:
    """A store behind the counter, with a session of a hundred messages in it."""

    store: Store
    traffic: Traffic

    def within(self, journeys: int, statements: int, commits: int, work: Callable[[], T]) -> T:
        """Do something that may cost so much and no more."""
        self.traffic.clear()
        done = work()
        assert self.traffic.journeys <= journeys, self.traffic
        assert self.traffic.statements <= statements, self.traffic
        assert self.traffic.commits <= commits, self.traffic
        return done

    def agent(self, *answers: object) -> Agent[str]:
        """Return an agent of this store, whose one tool adds."""
        return Agent("adder", "Add.", "m", ScriptedProvider(answers), store=self.store, tools=[add])


@tool
def add(number: int) -> str:
    """Add one."""
    return str(number + 1)


CALL = {"tool_calls": [{"name": "add", "arguments": {"number": 1}}]}


@pytest.fixture
def server(postgres_server: postgres.Server) -> Iterator[Counted]:
    """A store with a session, behind a counter."""
    with counted(postgres_server.folder) as (folder, traffic):
        url = postgres_server.url().replace(str(postgres_server.folder), str(folder))
        with closing(open_store(url)) as store:
            dialog = Session.create(store, NAME).root
            for number in range(MESSAGES // 2):
                dialog.append(UserMessage(content=f"question {number}"))
                dialog.append(AssistantMessage(content=f"answer {number}"))
            yield Counted(store, traffic)


def test_a_plain_turn_takes_three_journeys(server: Counted) -> None:
    """Opening by name takes two journeys, an append one with all that it writes, a request of a dialog that was just opened one."""
    dialog = server.within(2, 3, 0, lambda: Session.open(server.store, NAME).root)
    server.within(1, 7, 1, lambda: dialog.append(UserMessage(content="one more")))
    request = server.within(1, 1, 0, lambda: dialog.request("openai", "gpt-5.6"))
    assert len(request.body["messages"]) == MESSAGES + 1
    server.within(1, 7, 1, lambda: dialog.append(AssistantMessage(content="an answer")))
    again = server.within(3, 4, 0, lambda: Session.open(server.store, NAME, create=True).root)
    assert len(again.messages) == MESSAGES + 2


def test_making_takes_few_journeys(server: Counted) -> None:
    """A session with its dialog, a fork, and a first message: what is asked together travels together."""
    made = server.within(6, 16, 1, lambda: Session.create(server.store, "new").root)
    server.within(1, 7, 1, lambda: made.append(UserMessage(content="first")))
    server.within(5, 13, 1, made.fork)


def test_an_agents_turn_takes_few_journeys(server: Counted) -> None:
    """A turn without tools takes at most 6 journeys, in a new process as in an old one, and each round of tools at most 4 more."""
    agent = server.agent("hello", CALL, "two", CALL, CALL, "three")
    server.within(7, 24, 1, lambda: agent.open("main"))
    server.within(6, 36, 4, lambda: agent.respond("Hello"))
    server.within(10, 57, 7, lambda: agent.respond("Add 1"))
    server.within(14, 86, 11, lambda: agent.respond("Add 1 twice"))
    later = server.agent("later")
    server.within(8, 9, 0, lambda: later.resume("adder_main"))
    server.within(6, 36, 4, lambda: later.respond("And now?"))


def test_another_writer_costs_a_look(server: Counted) -> None:
    """A writer that others overtook outside the turn finds that out by its write, looks, and writes again."""
    mine, others = (Session.open(server.store, NAME).root for _ in range(2))
    others.marks.label(others.messages.handle(0), "note")
    server.within(4, 18, 2, lambda: mine.append(UserMessage(content="after the label")))
    assert len(mine.messages) == MESSAGES + 1
    assert mine.opened.last.seq == MESSAGES + 1
