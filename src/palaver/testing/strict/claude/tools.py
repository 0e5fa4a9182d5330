"""The tools of a request of the Messages API: declared, deferred, referenced, added and removed on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from palaver.testing.strict.claude.fields import ClaudeRequest, blocks, refuse
from palaver.testing.strict.claude.turns import tool_changes
from palaver.testing.strict.seal import Json

__all__ = ["check_tools", "deferred", "references"]

_FIELDS: Final = frozenset(
    {"name", "description", "input_schema", "type", "cache_control", "strict", "defer_loading", "allowed_callers",
     "input_examples", "eager_input_streaming"}
)  # fmt: skip
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_NEWEST: Final = (5, 2)


def deferred(body: Json) -> dict[str, Json]:
    """Return the tools that are declared and not yet shown to the model, by name."""
    return {tool["name"]: tool for tool in body.get("tools") or () if tool.get("defer_loading")}


def references(block: Json) -> Iterator[str]:
    """Yield the names of tools that a block shows to the model."""
    content = block.get("content")
    if block["type"] == "tool_search_tool_result" and isinstance(content, dict):
        content = content.get("tool_references")
    if block["type"] in ("tool_search_tool_result", "tool_result") and isinstance(content, list):
        yield from (part["tool_name"] for part in content if part.get("type") == "tool_reference")
    if block["type"] == "tool_addition" and block["tool"]["type"] == "tool_reference":
        yield block["tool"]["name"]


def check_tools(subject: ClaudeRequest) -> None:
    """Check the declared tools, and that each reference names one."""
    tools = subject.body.get("tools") or []
    for at, tool in enumerate(tools):
        _check_declared(subject, f"tools.{at}", tool)
    names = [tool.get("name", tool.get("mcp_server_name")) for tool in tools]
    if len(names) != len(set(names)):
        refuse("tools: Tool names must be unique.")
    if tools and all(tool.get("defer_loading") for tool in tools):
        refuse("At least one tool must have defer_loading=false. All tools have defer_loading set.")
    _check_changes(subject, {tool["name"]: tool for tool in tools if "name" in tool})
    for at, message in enumerate(subject.body["messages"]):
        for block in blocks(message):
            for name in references(block) if message["role"] != "system" else ():
                if name not in names:
                    refuse(f"messages.{at}: Tool reference '{name}' not found in available tools")


def _check_declared(subject: ClaudeRequest, where: str, tool: Json) -> None:
    kind = tool.get("type") or "custom"
    if tool.get("defer_loading") and tool.get("cache_control"):
        # Wei-Shaw/sub2api#4990
        text = "cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching."
        refuse(f"{where}: Tool '{tool.get('name')}' {text}")
    offered = {"direct", *(str(other.get("type")) for other in subject.body.get("tools") or ())}
    for caller in tool.get("allowed_callers") or ():
        if caller not in offered:  # inferred from …/tool-use/programmatic-tool-calling: the tool must be there
            refuse(f"{where}: allowed_callers names '{caller}', which is not in tools")
    if kind == "custom":
        _check_custom(where, tool)
    elif kind == "computer_20251124" and subject.model.version >= _NEWEST:
        refuse(f"{where}: '{subject.model.name}' does not support tool types: {kind}.")
    elif kind == "mcp_toolset":
        servers = {server["name"] for server in subject.body.get("mcp_servers") or ()}
        if tool.get("mcp_server_name") not in servers:
            refuse(f"{where}: MCP server '{tool.get('mcp_server_name')}' not found in mcp_servers definitions")


def _check_custom(where: str, tool: Json) -> None:
    for name in ("name", "input_schema"):
        if name not in tool:
            refuse(f"{where}.custom.{name}: Field required")
    if not _NAME.fullmatch(tool["name"]):
        refuse(f"{where}.custom.name: String should match pattern '^{_NAME.pattern}$'")
    for name in tool:
        if name not in _FIELDS:
            refuse(f"{where}.custom.{name}: Extra inputs are not permitted")


def _check_changes(subject: ClaudeRequest, known: dict[str, Json]) -> None:
    """Check tool additions and removals (…/mid-conversation-system-messages): a reference names a tool, a definition keeps its type."""
    for where, block in tool_changes(subject.body["messages"]):
        tool = block["tool"]
        if tool["type"] == "tool_definition":
            definition = tool["definition"]
            _check_declared(subject, f"{where}.{block['type']}.tool.definition", definition)
            before = known.get(definition.get("name"), definition)
            if _family(before) != _family(definition):
                refuse(f"{where}: tool '{definition['name']}' has another type", code="tool_name_conflict")
            known[definition.get("name", "")] = definition
        elif tool["type"] == "tool_reference" and tool.get("name") not in known:
            refuse(
                f"{where}: tool reference '{tool.get('name')}' is not declared in `tools`",
                code="tool_reference_unresolved",
            )


def _family(tool: Json) -> str:
    return str(tool.get("type", "custom")).rpartition("_")[0] or "custom"
