"""The order of a conversation with the Messages API: roles, system messages, and the pairs of calls and results.

The texts are the API's own, as its users quoted them, and those of https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons (mixed and
paused turns) and …/agents-and-tools/tool-use/programmatic-tool-calling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from palaver.testing.strict.claude.fields import ClaudeRequest, blocks, refuse
from palaver.testing.strict.seal import Json

__all__ = ["PROGRAM_ID", "RoleRun", "check_turns", "compaction_at", "open_calls", "result_kind", "runs"]

PROGRAM_ID: Final = "toolu_program"
"""The beginning of the ids of calls that came from code: so the server sees when their `caller` was lost."""

_SEARCH: Final = "tool_search_tool_result"


@dataclass(frozen=True, slots=True)
class RoleRun:
    """Consecutive messages of one role: the API combines them into one turn. Each block has its path."""

    role: str
    first: int
    blocks: list[tuple[str, Json]] = field(default_factory=list)

    @property
    def only_results(self) -> bool:
        """Whether it has results of client tools, and nothing else."""
        return bool(self.blocks) and all(block["type"] == "tool_result" for _, block in self.blocks)


def compaction_at(messages: list[Json]) -> tuple[int, int]:
    """Return where the newest successful compaction block is: the API ignores what precedes it. (0, 0) where there is none."""
    places = [
        (at, number)
        for at, message in enumerate(messages)
        for number, block in enumerate(blocks(message))
        if block["type"] == "compaction" and block.get("content") is not None
    ]
    return places[-1] if places else (0, 0)


def runs(messages: list[Json], begin: tuple[int, int] = (0, 0)) -> list[RoleRun]:
    """Return the turns from a place on, without system messages."""
    out: list[RoleRun] = []
    for at, message in enumerate(messages):
        if at < begin[0] or message["role"] == "system":
            continue
        if not out or out[-1].role != message["role"]:
            out.append(RoleRun(message["role"], at))
        listed = enumerate(blocks(message))
        out[-1].blocks.extend((f"messages.{at}.content.{n}", block) for n, block in listed if (at, n) >= begin)
    return out


def result_kind(use: Json) -> str:
    """Return the kind of block that answers a call which the server runs."""
    if use["type"] == "mcp_tool_use":
        return "mcp_tool_result"
    name = str(use["name"])
    return _SEARCH if name.startswith("tool_search_tool") else f"{name}_tool_result"


def open_calls(turns: list[RoleRun]) -> dict[str, Json]:
    """Return the calls of server tools without results in the last turn of the assistant, by id."""
    waiting: dict[str, Json] = {}
    for run in turns:
        if run.role == "user":
            waiting = waiting if run.only_results else {}
            continue
        for _, block in run.blocks:
            if block["type"] in ("server_tool_use", "mcp_tool_use"):
                waiting[block["id"]] = block
            else:
                waiting.pop(str(block.get("tool_use_id")), None)
    return waiting


def check_turns(subject: ClaudeRequest) -> None:
    """Check roles, system messages, fallbacks, and the pairs of calls and results."""
    messages = subject.body["messages"]
    begin = compaction_at(messages)
    turns = runs(messages, begin)
    opening = blocks(messages[begin[0]])
    compacted = bool(opening) and opening[begin[1]]["type"] == "compaction"
    if turns and turns[0].role != "user" and not compacted:
        refuse('messages: first message must use the "user" role')
    _check_system(subject)
    ids = [block["id"] for run in turns for _, block in run.blocks if block["type"] == "tool_use"]
    if len(ids) != len(set(ids)):
        refuse("messages: `tool_use` ids must be unique")
    for at, run in enumerate(turns):
        if run.role == "assistant":
            _check_fallback(run)
            _check_results(subject, run, turns[at + 1] if at + 1 < len(turns) else RoleRun("user", 0))
        else:
            _check_strays(run, turns[at - 1] if at else RoleRun("assistant", 0))
    _check_programs(subject, turns)
    _check_server_tools(subject, turns)


# --- client tools --------------------------------------------------------------------------------------------------------


def _calls(run: RoleRun) -> dict[str, Json]:
    return {block["id"]: block for _, block in run.blocks if block["type"] == "tool_use"}


def _check_results(subject: ClaudeRequest, run: RoleRun, after: RoleRun) -> None:
    calls, leading = _calls(run), []
    for _, block in after.blocks:
        if block["type"] != "tool_result":
            break
        leading.append(block)
    answered = [block["tool_use_id"] for block in leading]
    missing = [call for call in calls if call not in answered]
    if missing:
        code = "compaction_incomplete_turn" if subject.body.get("compaction") and not after.blocks else ""
        refuse(
            f"messages.{run.first}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            code=code,
        )
    for block in leading:
        if answered.count(block["tool_use_id"]) > 1:
            refuse(
                f"messages.{after.first}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {block['tool_use_id']}"
            )
        call = calls.get(block["tool_use_id"], {})
        if call.get("toolset_name") != block.get("toolset_name"):
            refuse(f"messages.{after.first}: `toolset_name` of the `tool_result` must be that of its `tool_use`")


def _check_strays(run: RoleRun, before: RoleRun) -> None:
    calls = _calls(before)
    for where, block in run.blocks:
        if block["type"] == "tool_result" and block["tool_use_id"] not in calls:
            refuse(
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )


def _check_programs(subject: ClaudeRequest, turns: list[RoleRun]) -> None:
    """Check calls that came from code: their caller, their results, and the container in which the code waits."""
    code: set[str] = set()
    for at, run in enumerate(turns):
        for where, block in run.blocks:
            if block["type"] == "server_tool_use":
                code.add(block["id"])
            elif block["type"] == "tool_use":
                _check_caller(where, block, code)
        programs = {call for call, block in _calls(turns[at - 1]).items() if _from_code(block)} if at else set()
        if run.role == "user" and programs:
            _check_program_results(run, programs)
            if at == len(turns) - 1 and not subject.body.get("container"):
                refuse(
                    "container_id is required when there are pending tool uses generated by code execution with tools."
                )
    container = subject.body.get("container")
    name = container.get("id") if isinstance(container, dict) else container
    if name and subject.seal.open("container", str(name).removeprefix("container_")) is None:
        refuse(f"container: container `{name}` was not found", status=404)


def _from_code(call: Json) -> bool:
    return bool((call.get("caller") or {}).get("type", "direct") != "direct")


def _check_caller(where: str, block: Json, code: set[str]) -> None:
    caller = block.get("caller") or {}
    if _from_code(block) and caller.get("tool_id") not in code:
        refuse(f"{where}.tool_use.caller: no `code_execution` tool use with id `{caller.get('tool_id')}` was found")
    if block["id"].startswith(PROGRAM_ID) and not _from_code(block):
        refuse(f"{where}.tool_use.caller: Field required")


def _check_program_results(run: RoleRun, programs: set[str]) -> None:
    if not run.only_results:
        refuse(
            f"messages.{run.first}: when responding to programmatic tool calls, only `tool_result` blocks are permitted"
        )
    for where, block in run.blocks:
        content = block.get("content") or ""
        parts = [] if isinstance(content, str) else content
        if block["tool_use_id"] in programs and any(part["type"] != "text" for part in parts):
            refuse(
                f"{where}.tool_result.content: only `text` blocks are permitted in results of programmatic tool calls"
            )


# --- server tools --------------------------------------------------------------------------------------------------------


def _check_server_tools(subject: ClaudeRequest, turns: list[RoleRun]) -> None:
    waiting: dict[str, Json] = {}
    for run in turns:
        if run.role == "user":
            if not run.only_results:
                _check_none_waits(waiting)
            continue
        for where, block in run.blocks:
            _follow(where, block, waiting)
    offered = {tool.get("name") for tool in subject.body.get("tools") or ()}
    servers = {server["name"] for server in subject.body.get("mcp_servers") or ()}
    for call in waiting.values():
        known = servers if call["type"] == "mcp_tool_use" else offered
        name = call["server_name"] if call["type"] == "mcp_tool_use" else call["name"]
        if name.removeprefix("bash_").removeprefix("text_editor_") not in known and name not in known:
            refuse(f"`{name}` tool use with id `{call['id']}` was found but no `{name}` tool was provided")


def _follow(where: str, block: Json, waiting: dict[str, Json]) -> None:
    kind = block["type"]
    if kind in ("server_tool_use", "mcp_tool_use"):
        waiting[block["id"]] = block
    elif kind.endswith("_tool_result"):
        call = waiting.pop(block["tool_use_id"], None)
        if call is None or result_kind(call) != kind:
            use = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
            refuse(
                f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {block['tool_use_id']}. "
                f"Each `{kind}` block must have a corresponding `{use}` block before it."
            )


def _check_none_waits(waiting: dict[str, Json]) -> None:
    for call in waiting.values():
        refuse(
            f"`{call['name']}` tool use with id `{call['id']}` was found without a corresponding "
            f"`{result_kind(call)}` block"
        )


def _check_fallback(run: RoleRun) -> None:
    """Check that nothing before the last fallback stayed that the next model may not see (…/refusals-and-fallback, continuing the conversation)."""
    kinds = [block["type"] for _, block in run.blocks]
    if "fallback" not in kinds:
        return
    before = run.blocks[: len(kinds) - 1 - kinds[::-1].index("fallback")]
    answered = {block.get("tool_use_id") for _, block in before}
    for where, block in before:
        unpaired = block["type"] in ("server_tool_use", "mcp_tool_use") and block["id"] not in answered
        if unpaired or block["type"] in ("thinking", "redacted_thinking", "tool_use"):
            refuse(f"{where}: `{block['type']}` blocks before the final `fallback` block must be omitted")


# --- system messages -----------------------------------------------------------------------------------------------------

_PLACE: Final = (
    "a system message must immediately follow a user message or an assistant message ending in a server tool result, "
    "and must be last or be followed by an assistant message"
)


def _check_system(subject: ClaudeRequest) -> None:
    """Check the places of system messages (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages, limitations)."""
    numbered = list(enumerate(subject.body["messages"]))
    for role, grouped in groupby(numbered, key=lambda pair: pair[1]["role"]):
        group = list(grouped)
        if role != "system":
            continue
        for at, message in group:
            _check_turn_scoped(at, message)
        if any(message["content"] for _, message in group):
            _check_place(subject, group)


def _check_place(subject: ClaudeRequest, group: list[tuple[int, Json]]) -> None:
    messages, (first, last) = subject.body["messages"], (group[0][0], group[-1][0])
    if not subject.model.system:
        refuse(f"messages.{first}: role 'system' is not supported on this model")
    before = messages[first - 1] if first else {"role": "", "content": []}
    after = messages[last + 1]["role"] if last + 1 < len(messages) else "assistant"
    ends = blocks(before)[-1]["type"] if before["content"] else ""
    paused = before["role"] == "assistant" and ends.endswith("_tool_result")
    if not (before["role"] == "user" or paused) or after != "assistant":
        refuse(f"messages.{first}: {_PLACE}")
    changes = any(block["type"] != "text" for _, message in group for block in blocks(message))
    if paused and changes:
        refuse(f"messages.{first}: tool changes are not permitted immediately after a paused assistant message")


def _check_turn_scoped(at: int, message: Json) -> None:
    scope = message.get("clear_at")
    if scope not in (None, "next_user_message", "never"):
        refuse(f"messages.{at}.clear_at: Input should be 'next_user_message' or 'never'")
    if scope != "next_user_message":
        return
    suffix = "(clear_at: 'next_user_message')"
    if "output_config" in message:
        refuse(f"messages.{at}: output_config is not permitted on a turn-scoped system message {suffix}")
    for number, block in enumerate(blocks(message)):
        if block["type"] != "text":
            refuse(f"messages.{at}: a turn-scoped system message supports text blocks only {suffix}")
        if block.get("cache_control"):
            refuse(
                f"messages.{at}.content.{number}: cache_control is not permitted on a turn-scoped system message {suffix}"
            )


def tool_changes(messages: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the tool changes in system messages, with their paths."""
    for at, message in enumerate(messages):
        if message["role"] == "system":
            for number, block in enumerate(blocks(message)):
                if block["type"] in ("tool_addition", "tool_removal"):
                    yield f"messages.{at}.content.{number}", block
