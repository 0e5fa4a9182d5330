"""Which header each beta feature of Anthropic's needs, and what of a body its client's stable method does not name.

The names are those of the `anthropic` package 2.14 (`types/beta`) and of the pages under platform.claude.com/docs/en/build-with-claude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from palaver.wire.request import Call
from palaver.wire.table import Body

_Json: TypeAlias = Mapping[str, Any]

HEADER = "anthropic-beta"
"""The header that names betas, separated by commas."""

_FIELDS = frozenset({"compaction", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers", "thread"})
"""Fields of a body that `client.messages.create` does not name, and `client.beta.messages.create` does."""


def _within(body: _Json, *path: str) -> Any:  # noqa: ANN401 - any JSON value
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _edits(body: _Json) -> frozenset[str]:
    """Return the kinds of the edits that a body asks for."""
    edits = _within(body, "context_management", "edits")
    return frozenset(str(edit.get("type")) for edit in edits or () if isinstance(edit, Mapping))


def _said(body: _Json, role: str) -> Iterator[_Json]:
    """Yield the blocks of the messages of a role."""
    for message in body["messages"]:
        if message["role"] == role and not isinstance(message["content"], str):
            yield from message["content"]


def _compacted(body: _Json, *, signed: bool) -> bool:
    """Return whether a body has the block of a compaction on demand, which is signed, or of one at a threshold."""
    blocks = (block for block in _said(body, "assistant") if block["type"] == "compaction")
    return any(bool(block.get("signature")) == signed for block in blocks)


def _has(body: _Json, *kinds: str) -> bool:
    """Return whether the assistant's words have a block whose kind begins so."""
    return any(block["type"].startswith(kinds) for block in _said(body, "assistant"))


_BETAS: tuple[tuple[str, Callable[[_Json], object]], ...] = (
    ("thinking-binding-controls-2026-08-01", lambda body: _within(body, "thinking", "block_binding")),
    ("thinking-display-updates-2026-08-18", lambda body: _within(body, "thinking", "display") == "updates"),
    ("context-management-2025-06-27", lambda body: _edits(body) - {"compact_20260112"}),
    ("compact-2026-01-12", lambda body: "compact_20260112" in _edits(body) or _compacted(body, signed=False)),
    ("compact-2026-09-04", lambda body: "compaction" in body or _compacted(body, signed=True)),
    ("mcp-client-2026-09-15", lambda body: "mcp_servers" in body or _has(body, "mcp_")),
    ("server-side-fallback-2026-07-01", lambda body: "fallbacks" in body or _has(body, "fallback")),
    ("advisor-tool-2026-03-01", lambda body: _has(body, "advisor_")),
    ("inline-tools-2026-09-15", lambda body: any(block["type"].startswith("tool_") for block in _said(body, "system"))),
    (
        "mid-conversation-system-clear-at-2026-08-21",
        lambda body: any(block.get("clear_at") for block in _said(body, "system")),
    ),
    (
        "mid-conversation-output-config-2026-07-01",
        lambda body: any(message["role"] == "system" and message.get("output_config") for message in body["messages"]),
    ),
)
"""Each beta, and whether a body uses it."""


_CREDIT = "fallback-credit-2026-07-01"
"""A refusal of a request with it brings a token, with which the same question to another model costs what it would have cost there from the start
(build-with-claude/fallback-credit)."""


def headers(body: _Json, call: Call | None) -> Mapping[str, str]:
    """Return the headers that a body and its call need besides those of every request."""
    names = [name for name, used in _BETAS if used(body)]
    if "fallback_credit_token" in body or (call is not None and call.fallback is not None):
        names.append(_CREDIT)
    return {HEADER: ",".join(names)} if names else {}


def arguments(body: Body, _model: str) -> Body:
    """Return the arguments of `client.messages.create`: fields of betas are not among those that it names."""
    more = {name: value for name, value in body.items() if name in _FIELDS}
    named = {name: value for name, value in body.items() if name not in _FIELDS}
    return named | ({"extra_body": more} if more else {})
