"""The items of OpenAI's own tools: what each needs to go back, and how calls that the caller runs are answered.

After the types of the `openai` package 3.57 (`types/responses/response_input_item_param.py`) and the guides under developers.openai.com/api/docs/guides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from palaver.ids import derive_id
from palaver.messages import ToolCallContent, thaw
from palaver.wire.script import CallPart, ProviderPart, ResultPart
from palaver.wire.table import Body, OwnBlocks

OWN = frozenset({
    "additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "computer_call",
    "computer_call_output", "configuration_update", "file_search_call", "image_generation_call", "local_shell_call",
    "local_shell_call_output", "mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools", "program", "program_output",
    "shell_call", "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call",
})  # fmt: skip
"""Items of the provider's own tools, and of its compactions."""

CUSTOM, CUSTOM_OUTPUT = "custom_tool_call", "custom_tool_call_output"

COMPUTER = "computer_call"
RUN: Mapping[str, tuple[str, str]] = {
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    COMPUTER: ("computer", "action"),
}
"""The kinds of calls of the provider's own tools that a tool of the caller's may run: the name of the tool, and the field of its arguments."""

_BLANK = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAADklEQVR42mP4/5+BFAQA/U4f4d7IdZcAAAAASUVORK5CYII="
"""A white picture, where there is no screenshot: a call of the computer takes no other answer."""

CONSENT, CONSENTED = "mcp_approval_request", "mcp_approval_response"

CALLED: Mapping[str, str] = {
    "apply_patch_call": "call_id", "computer_call": "call_id", "shell_call": "call_id", "tool_search_call": "call_id",
}  # fmt: skip
"""The kinds of calls of the provider's own tools that the caller runs, each with the field of its id: «No tool output found for shell call»."""

_FREE = frozenset({
    "apply_patch_call", "apply_patch_call_output", "additional_tools", "compaction", "computer_call_output", "configuration_update", "shell_call",
    "shell_call_output", "tool_search_call", "tool_search_output",
})  # fmt: skip
"""Kinds of items that may go without an id. With one, an item that reasoning led to is refused without that reasoning."""

LED_TO = re.compile(r"\w+_call|program|mcp_list_tools|mcp_approval_request")
"""The kinds of items that may follow reasoning: «provided without its required following item»."""

_ID_DIGITS = 24
_ID_KIND = re.compile(r"[a-zA-Z0-9-]{1,16}_")
"""How ids of items begin, which the provider checks."""

_OF_ANSWERS = frozenset({"created_by", "internal_chat_message_metadata_passthrough"})
"""Fields that items have in answers and in Codex's logs, and not in requests."""

_UNNAMED = {"web_search_call": "ws_", "image_generation_call": "ig_"}
"""Kinds of items that Codex logs without their ids, which requests must have, and how such ids begin."""


def missing(kind: str, fields: Mapping[str, Any], _tools: frozenset[str]) -> str:
    """Return what an item needs and a request does not have, or an empty text."""
    return "it says nothing" if kind == "compaction" and not fields.get("encrypted_content") else ""


BLOCKS = OwnBlocks(
    known=OWN,
    missing=missing,
    calls=CALLED,
    results=re.compile(r"(?:apply_patch|computer|shell)_call_output|tool_search_output"),
    answers="call_id",
    ours=True,
    code={"program": "call_id"},
    led_to=LED_TO,
    compaction="encrypted_content",
    trigger="compaction_trigger",
    window=True,
    carried=frozenset({"caller", "namespace", "async"}),
)


def own_item(part: ProviderPart, *, after_reasoning: bool) -> Body:
    """Write an item of the provider's own. Where the reasoning that led to it is not before it, it gets another id.

    «Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item: 'rs_…'»: LionSR/TeXRA#1775.
    """
    out: Body = {"type": part.kind, **{key: value for key, value in part.fields.items() if key not in _OF_ANSWERS}}
    name = out.get("id")
    if name is None and part.kind in _UNNAMED:
        return out | {"id": f"{_UNNAMED[part.kind]}{derive_id(str(part.origin))[:_ID_DIGITS]}"}
    if not isinstance(name, str) or after_reasoning or part.kind not in OWN:
        return out
    if part.kind in _FREE:
        del out["id"]
    elif part.kind != "mcp_approval_request":  # its answer names it
        kind = _ID_KIND.match(name)
        out["id"] = f"{kind[0] if kind else 'item_'}{derive_id(name)[:_ID_DIGITS]}"
    return out


def consent_call(item: Mapping[str, Any]) -> ToolCallContent:
    """Read a request to approve a call that the provider makes of an MCP server. Nothing of the caller's has its name."""
    known = {name: str(item.get(name) or "") for name in ("id", "server_label", "name", "arguments")}
    name, args = f"{known['server_label']}_{known['name']}", known["arguments"]
    return ToolCallContent(known["id"], name, args=args, artefact=item, consent=True)


def run_with(item: Mapping[str, Any]) -> Body:
    """Return the arguments with which a tool of the caller's runs a call. Older models use the computer one action at a time."""
    given = item.get(RUN[item["type"]][1])
    if item["type"] == COMPUTER:
        return {"actions": item.get("actions") or ([given] if given else [])}
    return {key: value for key, value in given.items() if value is not None} if isinstance(given, Mapping) else {}


def called(part: CallPart) -> Body:
    """Write a call that the caller runs: of a function, or of a tool with free text, as its item came."""
    own = {name: value for name, value in part.carried.items() if value is not None}
    kind = part.artefact.get("type")
    if kind not in {CUSTOM, CONSENT, *RUN}:
        return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.raw, **own}
    said = {name: value for name, value in thaw(part.artefact).items() if name not in {"id", "status"} | _OF_ANSWERS}
    if kind == CONSENT:
        return {**said, "id": part.id}  # its answer names it
    if kind == COMPUTER:  # one of the few calls that must have an id
        said = {"id": f"cu_{derive_id(part.id)[:_ID_DIGITS]}", "pending_safety_checks": [], **said}
    if kind != CUSTOM:
        return {**said, "call_id": part.id, "status": "completed"}
    free = said.get("input")
    return {**said, "call_id": part.id, "name": part.name, "input": free if isinstance(free, str) else part.raw}


def output(part: ResultPart, content: str | list[Body]) -> Body:
    """Write the output of a call, of the kind of the call; it repeats which program made the call."""
    call = part.call
    made = call.artefact.get("type") if call is not None else None
    carried = {} if call is None else call.artefact if made == CUSTOM or made in RUN else call.carried
    caller = {"caller": thaw(carried["caller"])} if carried.get("caller") else {}
    said = {"call_id": part.id, "output": content, **caller}
    if made == CONSENT:
        why = {"reason": part.text} if part.error and part.text else {}
        return {"type": CONSENTED, "approval_request_id": part.id, "approve": not part.error, **why}
    if made == "shell_call":
        outcome = {"type": "exit", "exit_code": int(part.error)}
        return {
            "type": "shell_call_output",
            **said,
            "output": [{"stdout": part.text, "stderr": "", "outcome": outcome}],
        }
    if made == COMPUTER:
        seen = [piece["image_url"] for piece in content if isinstance(piece, dict) and "image_url" in piece]
        shot = {"type": "computer_screenshot", "image_url": (seen or [f"data:image/png;base64,{_BLANK}"])[-1]}
        checks = thaw(carried.get("pending_safety_checks") or ())
        return {
            "type": "computer_call_output",
            **said,
            "output": shot,
            **({"acknowledged_safety_checks": checks} if checks else {}),
        }
    if made == "apply_patch_call":
        status = "failed" if part.error else "completed"
        return {"type": "apply_patch_call_output", **said, "output": part.text, "status": status}
    return {"type": CUSTOM_OUTPUT if made == CUSTOM else "function_call_output", **said}
