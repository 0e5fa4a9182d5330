"""palaver acp: an agent for editors that speak the Agent Client Protocol, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, Any

import typer

from palaver.agent import Agent
from palaver.agent.events import CallEnded, CallStarting
from palaver.cli.chat.setup import agent_of, tools_of
from palaver.cli.options import BudgetOption, StoreOption, store_url
from palaver.cli.terminal import complain
from palaver.errors import DISTRIBUTION, AgentFailure, InvalidInput, MissingExtra, PalaverError
from palaver.ids import DialogId, unchosen_name
from palaver.messages import (
    Content,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UserMessage,
    thaw,
    words_of,
)
from palaver.providers import TextDelta, ThinkingDelta
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.store.connect import open_for_user
from palaver.store.titles import title
from palaver.tools import Toolbox, run_in_worker
from palaver.view import fold

try:
    import acp
    from acp import schema
except ImportError as error:
    raise MissingExtra("`palaver acp`", "acp", package="agent-client-protocol") from error

_PAGE = 50
"""Sessions of a page of the list."""

_ALIAS = "editor"
_CHOICES = (
    ("allow_once", "Allow"),
    ("allow_always", "Allow always in this session"),
    ("reject_once", "Refuse"),
    ("reject_always", "Refuse always in this session"),
)

_Text = str | None
_Chunk = Any  # one of the protocol's updates of a session


def run(
    model: Annotated[str, typer.Option("--model", "-m", help="The model, such as openai/gpt-5-mini.")],
    system: Annotated[_Text, typer.Option("--system", help="The system prompt of new sessions, or @FILE.")] = None,
    tools: Annotated[
        list[Path] | None, typer.Option("--tools", metavar="FILE", help="Offer every @tool of a Python file.")
    ] = None,
    policy: Annotated[str, typer.Option("--policy", help="What shapes each request.")] = "palaver",
    budget: BudgetOption = None,
    store: StoreOption = None,
) -> None:
    """Serve an agent to an editor over standard input and output. Needs the extra `acp`.

    The editor lists, loads, resumes and forks sessions of the store. Calls that need a decision ask in the editor.
    """
    functions = Toolbox([function for path in tools or () for function in tools_of(path)])
    with closing(open_for_user(store_url(store))) as source:

        def made() -> Agent:
            agent = agent_of(source, model, system, policy, budget, None)
            agent.tools = tuple(functions)
            return agent

        made()  # a wrong model or policy is reported before the editor waits
        if any(S_ISREG(os.fstat(stream.fileno()).st_mode) for stream in (sys.stdin, sys.stdout)):
            raise InvalidInput(
                "An editor talks to `palaver acp` through pipes; this is a file.", hint="Start it from the editor."
            )
        served: Any = EditorAgent(source, made, keeps=system is None)  # it lacks the methods of what it does not offer
        asyncio.run(acp.run_agent(served, use_unstable_protocol=True))


class EditorAgent:
    """The protocol's agent. A session of the protocol is a dialog: its id is the dialog's."""

    def __init__(self, store: Store, made: Callable[[], Agent], *, keeps: bool) -> None:
        """Serve a store.

        Args:
            store: The store.
            made: Makes the agent of a session.
            keeps: Whether a session that is opened again keeps its own instructions.
        """
        self._store, self._made, self._keeps = store, made, keeps
        self._agents: dict[str, Agent] = {}
        self._running: dict[str, asyncio.Task[str]] = {}
        self._editor: Any = None

    def on_connect(self, conn: Any) -> None:  # noqa: ANN401 - the protocol's client
        """Remember the editor."""
        self._editor = conn

    async def initialize(self, protocol_version: int, **_more: object) -> schema.InitializeResponse:
        """Say what this agent can do."""
        sessions = schema.SessionCapabilities(
            list=schema.SessionListCapabilities(),
            fork=schema.SessionForkCapabilities(),
            resume=schema.SessionResumeCapabilities(),
        )
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="palaver", title="palaver", version=version(DISTRIBUTION)),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=sessions,
            ),
        )

    # --- sessions -------------------------------------------------------------------------------------------------------------

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: object
    ) -> schema.NewSessionResponse:
        """Begin a session."""
        _unused(mcp_servers)
        dialog = await run_in_worker(partial(self._begun, cwd))
        return schema.NewSessionResponse(session_id=dialog.dialog_id)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None = None, **_more: object
    ) -> schema.LoadSessionResponse:
        """Open a session again, and show its conversation to the editor."""
        del cwd
        _unused(mcp_servers)
        dialog = await run_in_worker(partial(self._opened, session_id))
        for update in await run_in_worker(lambda: list(_replayed(self._store, dialog))):
            await self._editor.session_update(session_id=session_id, update=update)
        return schema.LoadSessionResponse()

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: object
    ) -> schema.ResumeSessionResponse:
        """Open a session again that the editor still shows."""
        del cwd
        _unused(mcp_servers)
        await run_in_worker(partial(self._opened, session_id))
        return schema.ResumeSessionResponse()

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: object
    ) -> schema.ForkSessionResponse:
        """Fork a session: both go on from here by themselves."""
        del cwd
        _unused(mcp_servers)
        child = await run_in_worker(partial(self._forked, session_id))
        return schema.ForkSessionResponse(session_id=child.dialog_id)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: object
    ) -> schema.ListSessionsResponse:
        """List the sessions, the newest activity first; with a folder, those that worked in it."""
        return await run_in_worker(partial(self._listed, cwd, cursor))

    # --- in a worker thread, so that no turn waits for a disk or a database ---------------------------------------------------

    def _listed(self, cwd: str | None, cursor: str | None) -> schema.ListSessionsResponse:
        after = self._store.session(self._store.node(DialogId(cursor)).session_id) if cursor else None
        records = (
            record
            for record in self._store.sessions(after=after)
            if record.root is not None and (cwd is None or record.workdir == cwd)
        )
        page = list(islice(records, _PAGE + 1))
        rows = [
            schema.SessionInfo(
                session_id=str(record.root),
                cwd=record.workdir or "/",
                title=title(self._store, record) or record.name,
                updated_at=datetime.fromtimestamp(record.updated_at, UTC).isoformat(),
            )
            for record in page[:_PAGE]
        ]
        return schema.ListSessionsResponse(
            sessions=rows, next_cursor=rows[-1].session_id if len(page) > _PAGE else None
        )

    def _dialog(self, session_id: str) -> Dialog:
        """Return a dialog.

        Raises:
            RequestError: The store has none with this id.
        """
        try:
            node = self._store.node(DialogId(session_id))
        except PalaverError as error:
            raise acp.RequestError.resource_not_found(session_id) from error
        return Session.open(self._store, node.session_id).dialog(node.dialog_id)

    def _begun(self, cwd: str) -> Dialog:
        agent = self._made().open(_ALIAS)
        dialog = agent.current_dialog
        name = unchosen_name(_ALIAS, dialog.session_id)  # so that its first message is its title
        self._store.update_session(dialog.session_id, workdir=cwd, name=name)
        self._agents[dialog.dialog_id] = agent
        return dialog

    def _forked(self, session_id: str) -> Dialog:
        child = self._dialog(session_id).fork()
        self._adopt(child)
        return child

    def _opened(self, session_id: str) -> Dialog:
        if session_id not in self._agents:
            self._adopt(self._dialog(session_id))
        return self._agents[session_id].current_dialog

    def _adopt(self, dialog: Dialog) -> None:
        said = "dialog" if self._keeps else "own"
        self._agents[dialog.dialog_id] = self._made().adopt(_ALIAS, dialog, instructions=said)  # type: ignore[arg-type]

    # --- turns ----------------------------------------------------------------------------------------------------------------

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_more: object) -> schema.PromptResponse:
        """Answer, and show the editor what happens meanwhile."""
        dialog = await run_in_worker(partial(self._opened, session_id))
        if session_id in self._running:
            raise acp.RequestError.invalid_params({"message": "A turn of this session is running. Cancel it first."})
        task = asyncio.create_task(self._answer(session_id, dialog, [_content(block) for block in prompt]))
        self._running[session_id] = task
        try:
            return schema.PromptResponse(stop_reason=await task)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()  # the connection ends
                raise
            return schema.PromptResponse(stop_reason="cancelled")
        except AgentFailure as error:
            raise acp.RequestError.internal_error({"message": str(error)}) from error
        finally:
            del self._running[session_id]

    async def cancel(self, session_id: str, **_more: object) -> None:
        """Interrupt the turn of a session. What was said and done stays in the log."""
        if task := self._running.get(session_id):
            task.cancel()

    async def _answer(self, session_id: str, dialog: Dialog, contents: Sequence[Content]) -> str:
        """Answer until no call waits for a decision; return the protocol's reason for the end."""
        agent = self._agents[session_id]
        if all(isinstance(content, TextContent) for content in contents):  # while a call waits, texts go to the inbox
            await agent.areceive("\n\n".join(map(words_of, contents)))
        else:
            await dialog.aappend(UserMessage(tuple(contents)))
        while True:
            async with agent.stream() as stream:
                async for update in _shown(stream):
                    await self._editor.session_update(session_id=session_id, update=update)
            if stream.trace.state != "waiting":
                return "end_turn"
            for call in await run_in_worker(lambda: agent.waiting):
                if not await self._decided(session_id, agent, call):
                    return "cancelled"

    async def _decided(self, session_id: str, agent: Agent, call: ToolCallContent) -> bool:
        """Ask a person about a call; return whether there was a decision."""
        asked = schema.ToolCallUpdate(
            tool_call_id=call.id, title=call.name, status="pending", kind="other", raw_input=thaw(call.args)
        )
        options = [schema.PermissionOption(option_id=kind, name=name, kind=kind) for kind, name in _CHOICES]  # type: ignore[arg-type]
        said = await self._editor.request_permission(session_id=session_id, tool_call=asked, options=options)
        if not isinstance(said.outcome, schema.AllowedOutcome):
            return False
        choice, always = said.outcome.option_id, said.outcome.option_id.endswith("_always")
        decide = agent.approve if choice.startswith("allow") else agent.deny
        await run_in_worker(partial(decide, call.id, always=always))
        return True


# --- what the editor shows ------------------------------------------------------------------------------------------------


async def _shown(events: AsyncIterator[Any]) -> AsyncIterator[_Chunk]:
    """Yield the updates for the events of a turn."""
    async for event in events:
        match event:
            case TextDelta(text=text) if text:
                yield acp.update_agent_message_text(text)
            case ThinkingDelta(text=text) if text:
                yield acp.update_agent_thought_text(text)
            case CallStarting(call=call):
                yield _started(call, "in_progress")
            case CallEnded(call=call, result=result):
                yield _ended(call.id, result)
            case _:
                pass


def _started(call: ToolCallContent, status: Any) -> _Chunk:  # noqa: ANN401 - a literal of the protocol
    return acp.start_tool_call(call.id, call.name, kind="other", status=status, raw_input=thaw(call.args))


def _ended(call_id: str, result: ToolResultContent) -> _Chunk:
    said = [acp.tool_content(acp.text_block(result.text()))]
    return acp.update_tool_call(call_id, status="failed" if result.is_error else "completed", content=said)


def _replayed(store: Store, dialog: Dialog) -> Iterator[_Chunk]:
    """Yield the updates that show a whole conversation."""
    view = fold(store, dialog.dialog_id, whole=True)
    view.load()
    for turn in (turn for exchange in view.exchanges for turn in exchange.turns):
        for block in turn.blocks:
            match block.content:
                case TextContent(content=text) if turn.role.value == "assistant":
                    yield acp.update_agent_message_text(text)
                case TextContent(content=text) if turn.role.value == "user":
                    yield acp.update_user_message_text(text)
                case ThinkingContent(content=text) if text:
                    yield acp.update_agent_thought_text(text)
                case ToolCallContent() as call:
                    yield _started(call, "pending")
                case ToolResultContent() as result:
                    yield _ended(result.id, result)
                case _:
                    pass


def _content(block: Any) -> Content:  # noqa: ANN401 - a block of the protocol
    """Return what the editor sends as a block of a message. A file that it names or encloses is a text."""
    match block:
        case schema.TextContentBlock(text=text):
            return TextContent(text)
        case schema.ImageContentBlock(data=data, mime_type=kind):
            return ImageContent([Media.from_text(data, "image", kind)])
        case schema.ResourceContentBlock(name=name, uri=uri):
            return TextContent(f"[{name}]({uri})")
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents(uri=uri, text=text)):
            return TextContent(f"{uri}\n\n{text}")
        case _:
            raise acp.RequestError.invalid_params({"message": f"This agent reads no {block.type} in a prompt."})


def _unused(servers: Sequence[object] | None) -> None:
    if servers:
        complain("The editor's MCP servers are not used. Offer tools with --tools.", "yellow")
