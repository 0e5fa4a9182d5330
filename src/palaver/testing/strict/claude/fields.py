"""The fields of a request of the Messages API, and the beta headers that some of them need.

After the request types of the ``anthropic`` package 2.14 (``types/beta/message_create_params.py`` and what it names): a field that is not in a type is
refused with `Extra inputs are not permitted`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from palaver.testing.strict.claude.models import ClaudeModel
from palaver.testing.strict.seal import Json, Seal
from palaver.testing.strict.server import Refused

__all__ = ["ClaudeRequest", "blocks", "check_fields", "error_body", "refuse"]

NEWEST_VERSION: Final = "2026-10-21"
_VERSIONS: Final = frozenset({"2023-01-01", "2023-06-01", NEWEST_VERSION})

BINDING: Final = "thinking-binding-controls-2026-08-01"
ON_DEMAND: Final = "compact-2026-09-04"
THRESHOLD: Final = "compact-2026-01-12"
EDITS: Final = "context-management-2025-06-27"
CLEAR_AT: Final = "mid-conversation-system-clear-at-2026-08-21"
INLINE_TOOLS: Final = "inline-tools-2026-09-15"
TOOL_CHANGES: Final = "mid-conversation-tool-changes-2026-07-01"
MESSAGE_EFFORT: Final = "mid-conversation-output-config-2026-07-01"
LISTING: Final = "mcp-client-2026-09-15"
UPDATES: Final = "thinking-display-updates-2026-08-18"
FALLBACKS: Final = ("server-side-fallback-2026-07-01", "server-side-fallback-2026-06-01")
CREDIT: Final = ("fallback-credit-2026-07-01", "fallback-credit-2026-06-01")
MCP: Final = (LISTING, "mcp-client-2025-11-20", "mcp-client-2025-04-04")

_TOP: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "stream", "stop_sequences", "metadata",
            "output_config", "service_tier", "container", "inference_geo", "cache_control", "temperature", "top_p", "top_k",
        ),
        (),
    ),
    "compaction": (ON_DEMAND,),
    "context_management": (EDITS, THRESHOLD),
    "mcp_servers": MCP,
    "output_format": ("structured-outputs-2025-11-13",),  # what `output_config.format` was called in the beta
    "fallbacks": FALLBACKS,
    "fallback_credit_token": CREDIT,
    "speed": ("fast-mode-2026-02-01",),
    "diagnostics": ("cache-diagnosis-2026-04-07",),
}  # fmt: skip
"""The top-level fields, and the betas of which each needs one."""

_MARK: Final = frozenset({"cache_control"})


def _kind(required: str, optional: str = "", roles: str = "assistant", *, marked: bool = True) -> _Kind:
    return _Kind(frozenset(required.split()), frozenset(optional.split()) | (_MARK if marked else set()), roles)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of block: its required and optional fields, and the roles whose messages may have it."""

    required: frozenset[str]
    optional: frozenset[str]
    roles: str


_RESULT: Final = _kind("tool_use_id content", "caller")
KINDS: Final[Mapping[str, _Kind]] = {
    "text": _kind("text", "citations", "user assistant system"),
    "image": _kind("source", "transformations", "user"),
    "document": _kind("source", "citations context title", "user assistant"),
    "search_result": _kind("content source title", "citations", "user assistant"),
    "tool_result": _kind("tool_use_id", "content is_error toolset_name", "user"),
    "container_upload": _kind("file_id", "", "user assistant"),
    "thinking": _kind("thinking signature", marked=False),
    "redacted_thinking": _kind("data", marked=False),
    "tool_use": _kind("id name input", "caller toolset_name"),
    "server_tool_use": _kind("id name input", "caller"),
    "web_search_tool_result": _RESULT,
    "web_fetch_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "advisor_tool_result": _RESULT,
    "mcp_tool_use": _kind("id name input server_name"),
    "mcp_tool_result": _kind("tool_use_id", "content is_error"),
    "mcp_tool_listing": _kind("mcp_server_name tools", marked=False),
    "compaction": _kind("", "content encrypted_content signature tool_changes", "user assistant"),
    "fallback": _kind("from to", "trigger", marked=False),
    "tool_addition": _kind("tool", "", "system"),
    "tool_removal": _kind("tool", "", "system"),
}
"""The kinds of blocks. A kind that is not here is one of the server's own making, or refused."""


@dataclass(frozen=True, slots=True)
class ClaudeRequest:
    """A request that is checked: its body, model and betas, the account that sends it, and the seal of the server."""

    body: Json
    model: ClaudeModel
    betas: frozenset[str]
    version: str
    account: str
    seal: Seal

    def needs(self, where: str, *betas: str) -> None:
        """Refuse a field that none of these betas allows."""
        if not self.betas.intersection(betas):
            refuse(f"{where}: Extra inputs are not permitted")


def error_body(status: int, message: str, code: str = "") -> Json:
    """Return the body of an error."""
    kinds = {401: "authentication_error", 404: "not_found_error", 529: "overloaded_error"}
    error: Json = {"type": kinds.get(status, "invalid_request_error"), "message": message}
    if code:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error, "request_id": "req_strict"}


def refuse(message: str, status: int = 400, code: str = "") -> NoReturn:
    """Refuse the request."""
    raise Refused(status, error_body(status, message, code))


def blocks(message: Json) -> list[Json]:
    """Return the blocks of a message; a string is one text."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_fields(subject: ClaudeRequest) -> None:
    """Check the names of all fields, their betas, and the kinds of blocks in each message."""
    body = subject.body
    if subject.version not in _VERSIONS:
        refuse(f'anthropic-version: "{subject.version}" is not a valid version' if subject.version else _NO_VERSION)
    for name in body:
        if name not in _TOP:
            refuse(f"{name}: Extra inputs are not permitted")
        if _TOP[name]:
            _check_beta(subject, name)
    if not isinstance(body.get("messages"), list):
        refuse("messages: Field required")
    if not body["messages"]:
        code = "compaction_nothing_to_summarize" if body.get("compaction") else ""
        refuse("messages: at least one message is required", code=code)
    for at, message in enumerate(body["messages"]):
        _check_message(subject, f"messages.{at}", message)
    _check_texts(body)
    _check_marks(body)


_NO_VERSION: Final = "anthropic-version: header is required"


def _check_beta(subject: ClaudeRequest, name: str) -> None:
    if name == "compaction" and ON_DEMAND not in subject.betas:
        refuse(f"compaction: requires anthropic-beta: {ON_DEMAND}")
    subject.needs(name, *_TOP[name])


def _check_message(subject: ClaudeRequest, where: str, message: Json) -> None:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        refuse(f"{where}.role: Input should be 'user', 'assistant' or 'system'")
    if "content" not in message:
        refuse(f"{where}.content: Field required")
    for name in message:
        if name not in ("role", "content"):
            _check_message_field(subject, f"{where}.{name}", role)
    for at, block in enumerate(blocks(message)):
        _check_block(subject, f"{where}.content.{at}", role, block)


def _check_message_field(subject: ClaudeRequest, where: str, role: str) -> None:
    name = where.rpartition(".")[2]
    if name == "clear_at" and CLEAR_AT in subject.betas:
        if role != "system":
            refuse(f"{where}: clear_at is only permitted on role 'system' messages")
    elif not (name == "output_config" and role == "system" and MESSAGE_EFFORT in subject.betas):
        refuse(f"{where}: Extra inputs are not permitted")


def _check_block(subject: ClaudeRequest, where: str, role: str, block: Json) -> None:
    kind = block.get("type")
    known = KINDS.get(str(kind))
    if known is None or (kind == "compaction" and not subject.betas.intersection({ON_DEMAND, THRESHOLD})):
        if "seal" in block and subject.seal.open("own", block["seal"]) == _without(block, "seal"):
            return  # a kind that only this server knows, as it was sent
        tags = ", ".join(f"'{name}'" for name in KINDS if name != kind)
        refuse(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}")
    for name in known.required:
        if name not in block:
            refuse(f"{where}.{kind}.{name}: Field required")
    for name in block:
        if name != "type" and name not in known.required | known.optional:
            refuse(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    _check_block_role(subject, where, role, str(kind))
    _check_values(where, block)
    _check_block_beta(subject, where, block)


_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_MEDIA: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_IN_RESULTS: Final = ("text", "image", "document", "search_result", "tool_reference", "browser_state")


def _check_values(where: str, block: Json) -> None:
    """Check ids, arguments, the types of images, and what is inside a result."""
    kind, place = block["type"], f"{where}.{block['type']}"
    for name in ("id", "tool_use_id"):
        if name in block and not _ID.fullmatch(str(block[name])):
            refuse(f"{place}.{name}: String should match pattern '^{_ID.pattern}$'")
    if "input" in block and not isinstance(block["input"], dict):
        refuse(f"{place}.input: Input should be a valid dictionary")
    if kind == "image" and block["source"].get("type") == "base64" and block["source"].get("media_type") not in _MEDIA:
        refuse(
            f"{place}.source.base64.media_type: Input should be {', '.join(map(repr, _MEDIA[:-1]))} or '{_MEDIA[-1]}'"
        )
    inner = block.get("content") if kind == "tool_result" else None
    for number, part in enumerate(inner if isinstance(inner, list) else ()):
        if part.get("type") not in _IN_RESULTS:
            tags = ", ".join(map(repr, _IN_RESULTS))
            refuse(
                f"{place}.content.{number}: Input tag '{part.get('type')}' found using 'type' does not match any of the expected tags: {tags}"
            )


def _check_block_role(subject: ClaudeRequest, where: str, role: str, kind: str) -> None:
    if role not in KINDS[kind].roles.split():
        allowed = KINDS[kind].roles.replace(" ", "` or `")
        refuse(f"{where.rpartition('.content')[0]}: `{kind}` blocks can only be in `{allowed}` messages")
    if kind == "document" and role == "assistant" and subject.version == NEWEST_VERSION:
        # https://platform.claude.com/docs/en/api/migration-2026-10-21
        refuse(f"{where}: `document` blocks are not permitted in `assistant` messages")


def _check_block_beta(subject: ClaudeRequest, where: str, block: Json) -> None:
    kind = block["type"]
    if kind in ("tool_addition", "tool_removal"):
        by_value = block["tool"].get("type") == "tool_definition"
        subject.needs(where, INLINE_TOOLS, *(() if by_value else (TOOL_CHANGES,)))
    elif kind == "mcp_tool_listing":
        subject.needs(where, LISTING)
    elif kind == "text" and block.get("citations") and subject.version == NEWEST_VERSION and where.count(".") == 3:  # noqa: PLR2004
        role = subject.body["messages"][int(where.split(".")[1])]["role"]
        if role == "user":
            refuse(f"{where}.text.citations: citations are not permitted on user text blocks")


def _without(block: Json, name: str) -> Json:
    return {key: value for key, value in block.items() if key not in (name, "cache_control")}


# --- texts and marks -----------------------------------------------------------------------------------------------------


def _check_texts(body: Json) -> None:
    system = body.get("system") or []
    if any(not block.get("text") for block in (system if isinstance(system, list) else [])):
        refuse("system: text content blocks must be non-empty")
    last = len(body["messages"]) - 1
    for at, message in enumerate(body["messages"]):
        content = message["content"]
        empty_allowed = (at == last and message["role"] == "assistant") or "output_config" in message
        if not content and not empty_allowed:
            refuse("messages: all messages must have non-empty content except for the optional final assistant message")
        for block in blocks(message) if content else ():
            if block["type"] == "text" and not block["text"].strip():
                what = "non-empty" if not block["text"] else "contain non-whitespace text"
                refuse(f"messages: text content blocks must be {what}".replace("be contain", "contain"))
    final = body["messages"][last]
    text = blocks(final)[-1] if final["role"] == "assistant" and final["content"] else {}
    if text.get("type") == "text" and text["text"] != text["text"].rstrip():
        refuse("messages: final assistant content cannot end with trailing whitespace")


def _check_marks(body: Json) -> None:
    marks = sum(1 for _ in _marked(body))
    if marks > 4:  # noqa: PLR2004 - the limit of the API
        refuse(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    read = [
        str(mark.get("ttl") or "5m") for part in ("tools", "system", "messages") for mark in _marked(body.get(part))
    ]
    if read != sorted(read):
        text = "Note that blocks are processed in the following order: `tools`, `system`, `messages`."  # cnighswonger/claude-code-cache-fix#44
        refuse(
            f"cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. {text}"
        )


def _marked(value: Any) -> Iterator[Json]:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        if value.get("cache_control"):
            yield value["cache_control"]
        for key, inner in value.items():
            if key not in ("input", "input_schema"):
                yield from _marked(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marked(inner)
