"""Tools of MCP servers in a turn: a server that others wrote, declared by the prompt."""

import pytest

from palaver import Prompt
from palaver.errors import PalaverError
from palaver.tools import tool
from palaver.tools.servers import MCP
from tests.agent.helper import calling, kinds, roles, scripted, sent
from tests.tools.everything import over_stdio, why_missing

pytestmark = pytest.mark.skipif(why_missing() is not None, reason=why_missing() or "")


@tool
def own(text: str) -> str:
    """Say it."""
    return f"own {text}"


def test_a_prompts_server_is_at_hand_for_the_turn() -> None:
    """Its tools are declared behind the prompt's own, called like them, and the server ends with the turn."""
    server = over_stdio(allowed_tools=["echo"])
    prompt = Prompt(path="t/m", prompt="Go.", function_list=[own], mcp_servers_list=[server])
    agent, provider = scripted([calling("echo", message="hello"), "done"], prompt)
    agent.receive("go")
    assert agent.respond().content == "done"
    declared = [one["function"]["name"] for one in provider.requests[0].body["tools"]]
    assert declared == ["own", "echo"]
    assert "hello" in str(sent(provider.requests[1])[-1][1])
    assert roles(agent.current_dialog) == ["system", "user", "tool_call", "tool", "assistant"]


def test_a_server_that_is_not_there_fails_before_the_turn_begins() -> None:
    """Nothing is written, and the error says which server."""
    server = MCP(server_label="nowhere", command="/does/not/exist")
    agent, _ = scripted([], Prompt(path="t/m", prompt="Go.", mcp_servers_list=[server]))
    agent.receive("go")
    with pytest.raises(PalaverError, match="nowhere"):
        agent.respond()
    assert "turn_started" not in kinds(agent.current_dialog)
    assert agent.last_call is not None
    assert agent.last_call.state == "failure"
