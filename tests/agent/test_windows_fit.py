"""A branch that keeps a window of the messages goes on as any other: it is compacted by itself, and where a request was too long."""

from __future__ import annotations

from typing import Any

import pytest

from palaver import AutoCompact, ScriptedProvider
from palaver.agent import Agent
from palaver.context.triggers import Tokens
from palaver.errors import ContextOverflow
from palaver.session.calls.composing import tokens_of
from palaver.wire import Request
from tests.agent.helper import MODEL, kinds, scripted
from tests.agent.test_overflow import talkative

LIMIT = 4_000

WAYS: dict[str, dict[str, Any]] = {
    "a trigger": {"compact": AutoCompact(triggers=(Tokens(limit=LIMIT),))},
    "an overflow": {},
    "palaver": {"context_manager": "palaver"},
    "openhands": {"compact": AutoCompact(policy="openhands")},
}


def branched(window: tuple[int, int], **options: Any) -> tuple[Agent, ScriptedProvider, list[int]]:  # noqa: ANN401 - what an agent takes
    """Give an agent in a window of a long dialog that has grown long again, its provider, and the sizes of what it sends."""
    sizes: list[int] = []

    def answer(request: Request) -> object:
        assert request.view is not None
        sizes.append(tokens_of(request.view, MODEL))
        return ContextOverflow("Too long.", limit=LIMIT, asked=sizes[-1]) if sizes[-1] > LIMIT else "fine"

    agent, provider = scripted(answer, **options)
    talkative(agent)
    last_n, first_k = window
    agent.adopt("branch", agent.current_dialog.fork(last_n=last_n, first_k=first_k))
    talkative(agent)
    return agent, provider, sizes


@pytest.mark.parametrize("window", [(4, 1), (5, 2), (3, 4), (4, 0)], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a2_an_agent_in_a_window_goes_on(way: str, window: tuple[int, int]) -> None:
    """Whatever compacts, the branch is not dead: its turns are answered, by requests that the model reads, and its log says what left."""
    agent, provider, sizes = branched(window, **WAYS[way])
    for turn in range(3):
        assert agent.respond(input=f"go on {turn}").content == "fine"
    assert sizes[-1] <= LIMIT
    assert "compaction" in kinds(agent.current_dialog)
    assert agent.current_dialog.invocations[-1].request().data == provider.requests[-1].data
