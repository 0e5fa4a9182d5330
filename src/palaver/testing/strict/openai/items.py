"""The tools and the order of items of the Responses API: ids, calls and outputs, and what stands after reasoning.

The texts are the API's own, as its users quoted them. An id of an item that followed reasoning names that reasoning, so the server sees when it was left out.
"""

from __future__ import annotations

import re
from typing import Final

from palaver.testing.strict.openai.fields import CALLS, ResponsesRequest, refuse
from palaver.testing.strict.seal import Json

__all__ = ["check_items", "item_id", "reasoning_of"]

_STEMS: Final = {
    "reasoning": "rs",
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "compaction": "cmp",
    "program": "prog",
    "program_output": "prog_out",
}
_AFTER: Final = "x"
"""Stands between the number of an item and that of its reasoning."""

_SAID: Final = frozenset(
    {"message", "program", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "tool_search_call",
     "mcp_list_tools", "mcp_approval_request", *CALLS}
)  # fmt: skip


def item_id(kind: str, serial: str, reasoning: str = "") -> str:
    """Return an id for an item; `reasoning` is the id of the reasoning that it follows."""
    after = _AFTER + reasoning.partition("_")[2] if reasoning else ""
    return f"{_STEMS.get(kind, kind)}_{serial}{after}"


def reasoning_of(name: str) -> str:
    """Return the id of the reasoning that an item followed, or empty."""
    _, _, after = name.partition("_")[2].partition(_AFTER)
    return f"rs_{after}" if after else ""


def check_items(subject: ResponsesRequest) -> None:
    """Check tools, ids, pairs, what follows reasoning, and the place of a compaction trigger."""
    _check_tools(subject)
    _check_outputs(subject.items)
    _check_ids(subject.items)
    _check_pairs(subject.items)
    _check_reasoning(subject.items)
    _check_programs(subject)
    triggers = [at for at, item in enumerate(subject.items) if item["type"] == "compaction_trigger"]
    if triggers and triggers != [len(subject.items) - 1]:
        refuse("A `compaction_trigger` must be the final input item.", f"input[{triggers[0]}]", "invalid_value")


_SEARCHING: Final = (5, 4)
"""«Only gpt-5.4 and later models support tool_search»: developers.openai.com/api/docs/guides/tools-tool-search."""


def _opened(subject: ResponsesRequest) -> list[Json]:
    """Return the tools of a request, with those of its groups after the groups (types/responses/namespace_tool_param.py)."""
    listed = subject.body.get("tools") or []
    version = re.match(r"gpt-(\d+)(?:\.(\d+))?", subject.model.name)
    old = version and (int(version[1]), int(version[2] or 0)) < _SEARCHING
    for kind in sorted({tool["type"] for tool in listed} & {"tool_search", "namespace"}) if old else ():
        refuse(f"Tool '{kind}' is not supported with {subject.model.name}.", "tools", "unsupported_value")
    groups = [tool for tool in listed if tool["type"] == "namespace"]
    for group in groups:
        if group.keys() != {"type", "name", "description", "tools"} or not group["tools"]:
            refuse("A namespace has a name, a description and tools.", "tools", "invalid_value")
    return [*listed, *(tool for group in groups for tool in group["tools"])]


def _check_tools(subject: ResponsesRequest) -> None:
    """Check what deferred tools, and those that programs call, need (types/responses/tool_param.py)."""
    tools = _opened(subject)
    kinds = {tool["type"] for tool in tools}
    for at, tool in enumerate(tools):
        if tool.get("defer_loading") and "tool_search" not in kinds:
            refuse("Deferred tools require the 'tool_search' tool.", f"tools[{at}].defer_loading", "invalid_value")
        if "programmatic" in (tool.get("allowed_callers") or ()) and "programmatic_tool_calling" not in kinds:
            text = "The caller 'programmatic' requires the 'programmatic_tool_calling' tool."
            refuse(text, f"tools[{at}].allowed_callers", "invalid_value")
        if tool["type"] == "computer" and len(tool) > 1:
            refuse("Unknown parameter: the tool 'computer' has only a type.", f"tools[{at}]", "unknown_parameter")
        if tool["type"] == "custom" and (tool.get("format") or {}).get("type", "text") not in ("text", "grammar"):
            refuse("Supported values are: 'text' and 'grammar'.", f"tools[{at}].format.type", "invalid_value")


def _check_outputs(items: list[Json]) -> None:
    """Check the shapes of outputs, and that each approval answers a request (types/responses/response_input_item_param.py)."""
    requests = {item["id"] for item in items if item["type"] == "mcp_approval_request"}
    warned = {
        item["call_id"]: item.get("pending_safety_checks") or () for item in items if item["type"] == "computer_call"
    }
    for at, item in enumerate(items):
        if item["type"] == "shell_call_output":
            chunks = item["output"]
            if not isinstance(chunks, list) or any({"stdout", "stderr", "outcome"} - set(chunk) for chunk in chunks):
                refuse(
                    "Expected an array of objects with outcome, stdout and stderr.",
                    f"input[{at}].output",
                    "invalid_type",
                )
        elif item["type"] == "apply_patch_call_output" and item["status"] not in ("completed", "failed"):
            refuse("Supported values are: 'completed' and 'failed'.", f"input[{at}].status", "invalid_value")
        elif item["type"] == "computer_call_output":
            _check_screenshot(f"input[{at}]", item, [check["id"] for check in warned.get(item["call_id"], ())])
        elif item["type"] == "mcp_approval_response" and item["approval_request_id"] not in requests:
            refuse(f"MCP approval request '{item['approval_request_id']}' not found.", f"input[{at}]", "invalid_value")


def _check_screenshot(where: str, item: Json, warned: list[str]) -> None:
    """Check the answer to a call of the computer: one screenshot, and the checks that it acknowledges (…/docs/guides/tools-computer-use)."""
    output = item["output"]
    if not isinstance(output, dict) or output.get("type") != "computer_screenshot":
        refuse("Invalid value. Supported values are: 'computer_screenshot'.", f"{where}.output", "invalid_value")
    if not str(output.get("image_url") or output.get("file_id") or ""):
        refuse(f"Missing required parameter: '{where}.output.image_url'.", f"{where}.output.image_url")
    missing = set(warned) - {check["id"] for check in item.get("acknowledged_safety_checks") or ()}
    if missing:
        text = f"Computer call {item['call_id']} has safety checks that were not acknowledged: {', '.join(sorted(missing))}."
        refuse(text, f"{where}.acknowledged_safety_checks", "invalid_value")


def _check_ids(items: list[Json]) -> None:
    ids = [item["id"] for item in items if item.get("id")]
    for name in ids:
        if ids.count(name) > 1:
            text = "Remove duplicate items from your input and try again."
            refuse(f"Duplicate item found with id {name}. {text}", "input", "duplicate_item")


def _check_pairs(items: list[Json]) -> None:
    waiting: dict[str, Json] = {}
    for item in items:
        kind, call = item["type"], item.get("call_id")
        if kind in CALLS:
            waiting[str(call)] = item
        elif kind in CALLS.values() and call is not None:
            made = waiting.pop(str(call), None)
            if made is None or CALLS[made["type"]] != kind:
                what = kind.removesuffix("_output").replace("_", " ")
                refuse(f"No tool call found for {what} output with call_id {call}.", "input")
            if (made.get("caller") or {}).get("type", "direct") != "direct" and item.get("caller") != made["caller"]:
                refuse(
                    f"The `caller` of the output with call_id {call} must be that of its call.",
                    "input",
                    "invalid_value",
                )
    for call, item in waiting.items():
        if (item.get("execution") or "client") == "client":
            refuse(f"No tool output found for {item['type'].replace('_', ' ')} {call}.", "input")


def _check_reasoning(items: list[Json]) -> None:
    """Check that reasoning and the items that followed it come together."""
    for at, item in enumerate(items):
        name = item.get("id") or ""
        if item["type"] == "reasoning":
            following = items[at + 1] if at + 1 < len(items) else {"type": ""}
            if following["type"] not in (*_SAID, "reasoning") or following.get("role", "assistant") != "assistant":
                refuse(f"Item '{name}' of type 'reasoning' was provided without its required following item.", "input")
        elif reasoning_of(name) and not any(reasoning_of(name) == before.get("id") for before in items[:at]):
            refuse(
                f"Item '{name}' of type '{item['type']}' was provided without its required 'reasoning' item: '{reasoning_of(name)}'.",
                "input",
            )


def _check_programs(subject: ResponsesRequest) -> None:
    """Check calls that a program made: the program is there, as it was sent."""
    programs: set[str] = set()
    for at, item in enumerate(subject.items):
        if item["type"] == "program":
            if subject.seal.open("program", item["fingerprint"]) != {"code": item["code"]}:
                refuse(
                    "The program's fingerprint is not valid.", f"input[{at}].fingerprint", "invalid_program_fingerprint"
                )
            programs.add(item["call_id"])
        caller = item.get("caller") or {}
        if caller.get("type") == "program" and caller.get("caller_id") not in programs:
            refuse(f"No program found with call_id {caller.get('caller_id')}.", f"input[{at}].caller", "invalid_value")
