"""The fields of a request of the Responses API, and the kinds of its items.

After the request types of the ``openai`` package 3.57 (``types/responses/response_create_params.py`` and ``response_input_item_param.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from palaver.testing.strict.openai.models import OpenAIModel
from palaver.testing.strict.seal import Json, Seal
from palaver.testing.strict.server import Refused

__all__ = ["CALLS", "KINDS", "ResponsesRequest", "check_fields", "error_body", "input_items", "refuse"]

_TOP: Final = frozenset(
    [
        "background",
        "context_management",
        "conversation",
        "client_metadata",  # undocumented; Codex sends it (codex-rs/codex-api/src/common.rs, ResponsesApiRequest)
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)

KINDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    name: (frozenset(required.split()), frozenset(optional.split()))
    for name, required, optional in (
        ("message", "role content", "id phase status"),
        ("reasoning", "summary", "id content encrypted_content status"),
        ("function_call", "arguments call_id name", "id async caller namespace status"),
        ("function_call_output", "call_id output", "id caller name namespace status"),
        ("custom_tool_call", "call_id input name", "id async caller namespace status"),
        ("custom_tool_call_output", "call_id output", "id caller status"),
        ("shell_call", "action call_id", "id caller environment status"),
        ("shell_call_output", "call_id output", "id caller max_output_length status"),
        ("local_shell_call", "id action call_id status", ""),
        ("local_shell_call_output", "output", "id call_id status"),
        ("apply_patch_call", "call_id operation status", "id caller"),
        ("apply_patch_call_output", "call_id status", "id caller output"),
        ("computer_call", "call_id id", "action actions pending_safety_checks status"),
        ("computer_call_output", "call_id output", "id acknowledged_safety_checks status"),
        ("tool_search_call", "arguments", "id call_id execution status"),
        ("tool_search_output", "tools", "id call_id execution status"),
        ("additional_tools", "role tools", "id"),
        ("configuration_update", "", "id reasoning text"),
        ("compaction", "encrypted_content", "id"),
        ("compaction_trigger", "", "id"),
        ("program", "id call_id code fingerprint", ""),
        ("program_output", "id call_id result status", ""),
        ("file_search_call", "id queries status", "results"),
        ("web_search_call", "id status", "action"),
        ("code_interpreter_call", "id container_id status", "code outputs"),
        (
            "image_generation_call",
            "id status",
            "result action background error output_format quality revised_prompt size svg_usage",
        ),
        ("mcp_list_tools", "id server_label tools", "error"),
        ("mcp_approval_request", "id arguments name server_label", ""),
        ("mcp_approval_response", "approval_request_id approve", "id reason"),
        ("mcp_call", "id arguments name server_label", "approval_request_id error output status"),
        ("item_reference", "id", ""),
    )
}
"""The kinds of items: their required and their optional fields."""

CALLS: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
"""The kinds of calls that the client runs, and those of their outputs."""


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A request that is checked: its body and items, the model, the organization that sends it, and the seal of the server."""

    body: Json
    items: list[Json]
    model: OpenAIModel
    organization: str
    seal: Seal


def error_body(status: int, message: str, param: str | None = None, code: str | None = None) -> Json:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004 - errors of the server
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refuse(message: str, param: str | None = None, code: str | None = None, *, status: int = 400) -> NoReturn:
    """Refuse the request."""
    raise Refused(status, error_body(status, message, param, code))


def input_items(body: Json) -> list[Json]:
    """Return the items of a request; a string is one message of the user. A message needs no `type`."""
    given = body.get("input") or []
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    return [item if "type" in item else {"type": "message"} | item for item in given]


def check_fields(subject: ResponsesRequest) -> None:
    """Check the names of fields, and the kinds of items."""
    for name in subject.body:
        if name not in _TOP:
            refuse(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    for name in ("previous_response_id", "conversation"):
        if subject.body.get(name):
            known = f"{'Previous response' if name.startswith('p') else 'Conversation'} with id"
            refuse(f"{known} '{subject.body[name]}' not found.", name, f"{name}_not_found")
    for at, item in enumerate(subject.items):
        _check_item(subject, f"input[{at}]", item)
    _check_parameters(subject)


def _check_item(subject: ResponsesRequest, where: str, item: Json) -> None:
    kind = item["type"]
    if kind not in KINDS:
        plain = {name: value for name, value in item.items() if name != "seal"}
        if "seal" in item and subject.seal.open("own", item["seal"]) == plain:
            return  # a kind that only this server knows, as it was sent
        refuse(f"Invalid value: '{kind}'. Supported values are: {', '.join(map(repr, KINDS))}.", where, "invalid_value")
    required, optional = KINDS[kind]
    for name in sorted(required - item.keys()):
        refuse(f"Missing required parameter: '{where}.{name}'.", f"{where}.{name}", "missing_required_parameter")
    for name in item:
        if name != "type" and name not in required | optional:
            refuse(f"Unknown parameter: '{where}.{name}'.", f"{where}.{name}", "unknown_parameter")
    _check_ids(where, item)
    if kind == "item_reference":
        text = "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        refuse(f"Item with id '{item['id']}' not found. {text}", "input", status=404)
    if kind == "message":
        _check_message(where, item)


_ID_LENGTH: Final = 64
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def _check_ids(where: str, item: Json) -> None:
    """Check the lengths of ids, and the names of functions."""
    for name in ("id", "call_id"):
        length = len(str(item.get(name) or ""))
        if length > _ID_LENGTH:
            text = f"Expected a string with maximum length {_ID_LENGTH}, but got a string with length {length} instead."
            refuse(f"Invalid '{where}.{name}': string too long. {text}", f"{where}.{name}", "string_above_max_length")
    if item["type"] == "function_call" and not _NAME.fullmatch(item["name"]):
        text = f"Expected a string that matches the pattern '^{_NAME.pattern}$'."
        refuse(f"Invalid '{where}.name': string does not match pattern. {text}", f"{where}.name", "invalid_value")


_PARTS: Final = {
    "assistant": ("output_text", "refusal"),
    **dict.fromkeys(("user", "system", "developer"), ("input_text", "input_image", "input_file", "input_audio")),
}


def _check_message(where: str, item: Json) -> None:
    role = item["role"]
    if role not in _PARTS:
        refuse(
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            where,
            "invalid_value",
        )
    if isinstance(item["content"], str):
        return
    for number, part in enumerate(item["content"]):
        if part.get("type") not in _PARTS[role]:
            allowed = " and ".join(map(repr, _PARTS[role]))
            place = f"{where}.content[{number}]"
            refuse(f"Invalid value: '{part.get('type')}'. Supported values are: {allowed}.", place, "invalid_value")


def _check_choice(subject: ResponsesRequest) -> None:
    """Check that a choice of tools names tools of the request, those of `additional_tools` included, each once."""
    items = [item for item in subject.items if item["type"] == "additional_tools"]
    if any(item["role"] != "developer" for item in items):
        refuse("Invalid value: only 'developer' may add tools.", "input", "invalid_value")
    listed = [*(subject.body.get("tools") or ()), *(tool for item in items for tool in item["tools"])]
    grouped = [tool for group in listed if group["type"] == "namespace" for tool in group["tools"]]
    names = [tool["name"] for tool in (*listed, *grouped) if tool.get("name")]
    if len(names) != len(set(names)):
        refuse("Tool names must be unique.", "tools", "invalid_value")
    choice = subject.body.get("tool_choice")
    for asked in (choice, *(choice.get("tools") or ())) if isinstance(choice, dict) else ():
        if asked.get("name") and asked["name"] not in names:
            refuse(f"Tool choice '{asked['name']}' not found in 'tools' parameter.", "tool_choice")


def _check_parameters(subject: ResponsesRequest) -> None:
    body, model = subject.body, subject.model
    _check_choice(subject)
    if not model.family:
        return
    for name in ("temperature", "top_p", "top_logprobs"):
        if body.get(name) is not None and not model.samples((body.get("reasoning") or {}).get("effort")):
            refuse(f"Unsupported parameter: '{name}' is not supported with this model.", name, "unsupported_parameter")
    updates = [item.get("reasoning") for item in subject.items if item["type"] == "configuration_update"]
    for asked in (body.get("reasoning"), *updates):
        effort = (asked or {}).get("effort")
        if effort is not None and effort not in model.efforts:
            allowed = ", ".join(map(repr, model.efforts))
            refuse(
                f"Unsupported value: '{effort}' is not supported with the '{model.name}' model. Supported values are: {allowed}.",
                "reasoning.effort",
                "unsupported_value",
            )
