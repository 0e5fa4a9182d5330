"""palaver acp: an editor, played by the protocol's own client over a pipe, talks to the agent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import acp
import pytest
from acp import schema

from palaver import Session, SqliteStore
from palaver.messages import ImageContent
from tests.transcripts.test_exporting import PIXEL

Part: TypeAlias = Any
"""What the protocol passes."""

TOOLS = '''
import asyncio

from palaver import tool

@tool
def weigh(parcel: str) -> str:
    """Weigh."""
    return "12 kg"

@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"paid {amount}"

@tool
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(60)
    return "late"
'''


class Editor:
    """An editor that keeps what it is shown, and decides as it is told."""

    def __init__(self, *choices: str) -> None:
        """Decide in this order; an empty choice cancels."""
        self.updates: list[tuple[str, Part]] = []
        self.asked: list[str] = []
        self._choices = iter(choices)
        self.seen = asyncio.Event()

    async def session_update(self, session_id: str, update: Part, **_more: object) -> None:
        """Keep an update."""
        self.updates.append((session_id, update))
        self.seen.set()

    async def request_permission(self, session_id: str, tool_call: Part, options: Part, **_more: object) -> Part:
        """Decide."""
        del session_id, options
        self.asked.append(tool_call.title)
        choice = next(self._choices)
        denied = schema.DeniedOutcome(outcome="cancelled")
        chosen = schema.AllowedOutcome(outcome="selected", option_id=choice) if choice else denied
        return schema.RequestPermissionResponse(outcome=chosen)

    def on_connect(self, conn: Part) -> None:
        """Do nothing."""

    def said(self, kind: str, session: str) -> str:
        """Return the texts of chunks of a kind."""
        return "".join(
            update.content.text
            for place, update in self.updates
            if place == session and update.session_update == f"{kind}_chunk"
        )

    def calls(self) -> list[tuple[str, str | None]]:
        """Return the calls and how they went."""
        return [
            (update.tool_call_id, update.status)
            for _, update in self.updates
            if update.session_update in {"tool_call", "tool_call_update"}
        ]


def call(name: str, number: int, **arguments: object) -> dict[str, object]:
    """Return a scripted answer with a call."""
    return {"tool_calls": [{"name": name, "id": f"c{number}", "arguments": arguments}]}


def talked(folder: Path, script: Sequence[object], editor: Editor, talk: Callable[[Part], Awaitable[None]]) -> None:
    """Start the agent on a script, initialize it, and talk."""
    (folder / "script.json").write_text(json.dumps(script))
    (folder / "tools.py").write_text(TOOLS)
    command = (
        "-m",
        "palaver",
        "acp",
        "--model",
        f"scripted:{folder / 'script.json'}",
        "--tools",
        str(folder / "tools.py"),
    )

    async def run() -> None:
        async with asyncio.timeout(90):
            started = acp.spawn_agent_process(
                editor,  # type: ignore[arg-type]
                sys.executable,
                *command,
                "--store",
                str(folder / "log.db"),
                use_unstable_protocol=True,
            )
            async with started as (agent, _process):
                said = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
                assert said.agent_capabilities is not None
                assert said.agent_capabilities.load_session
                await talk(agent)

    asyncio.run(run())


def test_editor_prompts_decides_and_loads(tmp_path: Path) -> None:
    """A prompt streams texts and calls; a call that needs a decision asks the editor; the session is listed, loaded with its conversation, and forked."""
    editor = Editor("allow_once", "reject_once")
    script = [
        call("weigh", 1, parcel="lamp"),
        "12 kg.",
        call("refund", 2, amount=5),
        "Paid.",
        call("refund", 3, amount=9),
        "No.",
        "Here.",
    ]

    async def talk(agent: Part) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        ended = await agent.prompt(
            session_id=session, prompt=[acp.text_block("How heavy?"), acp.image_block(PIXEL, "image/png")]
        )
        assert ended.stop_reason == "end_turn"
        assert editor.said("agent_message", session) == "12 kg."
        assert editor.calls() == [("c1", "in_progress"), ("c1", "completed")]
        await agent.prompt(session_id=session, prompt=[acp.text_block("Pay 5.")])
        await agent.prompt(session_id=session, prompt=[acp.text_block("Pay 9.")])
        assert editor.asked == ["refund", "refund"]
        assert ("c2", "completed") in editor.calls()
        assert ("c3", "failed") in editor.calls()
        (row,) = (await agent.list_sessions(cwd=str(tmp_path))).sessions
        assert (row.session_id, row.cwd, row.title) == (session, str(tmp_path), "How heavy?")
        assert (await agent.list_sessions(cwd="/elsewhere")).sessions == []
        child = (await agent.fork_session(session_id=session, cwd=str(tmp_path))).session_id
        await agent.prompt(session_id=child, prompt=[acp.text_block("And?")])
        assert editor.said("agent_message", child) == "12 kg.", "the agent of a branch begins its script anew"
        editor.updates.clear()
        await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert editor.said("user_message", session) == "How heavy?Pay 5.Pay 9."
        assert editor.said("agent_message", session) == "12 kg.Paid.No."
        with pytest.raises(acp.RequestError):
            await agent.load_session(cwd=str(tmp_path), session_id="f" * 32, mcp_servers=[])

    talked(tmp_path, script, editor, talk)
    with SqliteStore(tmp_path / "log.db") as store:
        (record,) = store.sessions()
        root = Session.open(store, record.session_id).root
        assert any(isinstance(content, ImageContent) for content in root.messages[1].contents)


def test_resumed_session_goes_on_where_a_decision_was_cancelled(tmp_path: Path) -> None:
    """An editor that cancels the question ends the turn as cancelled; another process resumes the session, asks again, and the call runs once."""

    async def begin(agent: Part) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        ended = await agent.prompt(session_id=session, prompt=[acp.text_block("Pay 5.")])
        assert ended.stop_reason == "cancelled"

    first, second = Editor(""), Editor("allow_always")
    talked(tmp_path, [call("refund", 1, amount=5)], first, begin)

    async def resume(agent: Part) -> None:
        (row,) = (await agent.list_sessions()).sessions
        await agent.resume_session(session_id=row.session_id, cwd=str(tmp_path))
        ended = await agent.prompt(session_id=row.session_id, prompt=[acp.text_block("Go on.")])
        assert ended.stop_reason == "end_turn"
        assert second.asked == ["refund"]
        assert second.calls() == [("c1", "in_progress"), ("c1", "completed")]

    talked(tmp_path, ["Paid.", "Gone on."], second, resume)


def test_cancel_interrupts_the_turn(tmp_path: Path) -> None:
    """A cancelled turn ends as cancelled, and the next prompt is answered."""
    editor = Editor()

    async def talk(agent: Part) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        turn = asyncio.create_task(agent.prompt(session_id=session, prompt=[acp.text_block("Wait.")]))
        await editor.seen.wait()
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        ended = await agent.prompt(session_id=session, prompt=[acp.text_block("And now?")])
        assert ended.stop_reason == "end_turn"
        assert editor.said("agent_message", session).endswith("Here.")

    talked(tmp_path, [call("wait", 1), "Here."], editor, talk)
