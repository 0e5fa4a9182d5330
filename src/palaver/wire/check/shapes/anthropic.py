"""Fields of a request to Anthropic's Messages API (POST /v1/messages).

After the API reference and the request types of the ``anthropic`` package 2.12 (``message_create_params`` and what it
names). Sampling parameters have left those types and are still taken by older models; the profile decides.
"""

from __future__ import annotations

from typing import Final

from palaver.wire.check.shape import (
    ANY,
    FLAG,
    TEXT,
    WHOLE,
    Choice,
    Either,
    Fields,
    Items,
    Kinds,
    Maybe,
    Number,
    Shape,
)
from palaver.wire.violations import Rule

__all__ = ["REQUEST"]

_OPEN = Fields(open=True)
_CACHE = Maybe(Fields({"type": Choice(("ephemeral",))}, {"ttl": Choice(("5m", "1h"))}))


def _fixed(kind: str) -> Shape:
    return Choice((kind,))


def _block(kind: str, required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Fields:
    """Describe a block. Every kind but thinking may carry a cache mark; which may be one is a rule of its own."""
    return Fields({"type": _fixed(kind), **required}, {"cache_control": _CACHE, **(optional or {})})


_TEXT = _block("text", {"text": TEXT}, {"citations": Maybe(Items(_OPEN))})

_FILE = Fields({"type": _fixed("file"), "file_id": TEXT})
_URL = Fields({"type": _fixed("url"), "url": TEXT})
# The media types are the profile's.
_BASE64 = Fields({"type": _fixed("base64"), "media_type": TEXT, "data": TEXT})
_IMAGE = _block(
    "image",
    {"source": Kinds({"base64": _BASE64, "url": _URL, "file": _FILE})},
    {"transformations": Maybe(Fields(optional={"oversized_image": Choice(("downsize", "error"))}))},
)
_DOCUMENT = _block(
    "document",
    {
        "source": Kinds(
            {
                "base64": _BASE64,
                "text": Fields({"type": _fixed("text"), "media_type": _fixed("text/plain"), "data": TEXT}),
                "content": Fields({"type": _fixed("content"), "content": ANY}),
                "url": _URL,
                "file": _FILE,
            }
        )
    },
    {"citations": Maybe(_OPEN), "context": Maybe(TEXT), "title": Maybe(TEXT)},
)
_SEARCH_RESULT = _block("search_result", {"content": Items(_TEXT), "source": TEXT, "title": TEXT}, {"citations": _OPEN})

# Signatures may be missing here and are asked for by a rule of its own.
_THINKING = Fields({"type": _fixed("thinking"), "thinking": TEXT}, {"signature": TEXT, "cache_control": _CACHE})
_REDACTED = Fields({"type": _fixed("redacted_thinking"), "data": TEXT}, {"cache_control": _CACHE})
_TOOL_USE = _block(
    "tool_use",
    {"id": TEXT, "name": TEXT, "input": ANY},  # that the input is an object is a rule of its own
    {"caller": _OPEN, "toolset_name": Maybe(TEXT)},
)
_RESULT_CONTENT = Kinds(
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH_RESULT,
        "tool_reference": _block("tool_reference", {"tool_name": TEXT}),
        "browser_state": _OPEN,
    },
    elsewhere=frozenset({"thinking", "redacted_thinking", "tool_use", "tool_result"}),
)
_TOOL_RESULT = _block(
    "tool_result",
    {"tool_use_id": TEXT},
    {
        "content": Either({"string": TEXT, "list": Items(_RESULT_CONTENT)}),
        "is_error": FLAG,
        "toolset_name": Maybe(TEXT),
    },
)

# What the provider's own tools leave in an assistant message. It goes back as it came; its inside is theirs.
_SERVER_CALL = Fields({"id": TEXT, "name": TEXT, "input": _OPEN}, open=True)
_SERVER_RESULT = Fields({"tool_use_id": TEXT, "content": ANY}, open=True)
_SERVER_RESULTS: Final[dict[str, Shape]] = dict.fromkeys(
    (
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
    ),
    _SERVER_RESULT,
)
_USER_BLOCKS: Final[dict[str, Shape]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "tool_result": _TOOL_RESULT,
    "container_upload": _block("container_upload", {"file_id": TEXT}),
}
_ASSISTANT_BLOCKS: Final[dict[str, Shape]] = {
    "text": _TEXT,
    "thinking": _THINKING,
    "redacted_thinking": _REDACTED,
    "tool_use": _TOOL_USE,
    "server_tool_use": _SERVER_CALL,
    **_SERVER_RESULTS,
}
_ALL = frozenset(_USER_BLOCKS | _ASSISTANT_BLOCKS)


def _message(role: str, blocks: dict[str, Shape]) -> Fields:
    content = Either({"string": TEXT, "list": Items(Kinds(blocks, elsewhere=_ALL - blocks.keys()))})
    return Fields({"role": _fixed(role), "content": content})


_MESSAGE = Kinds(
    {
        "user": _message("user", _USER_BLOCKS),
        "assistant": _message("assistant", _ASSISTANT_BLOCKS),
        "system": _message("system", {"text": _TEXT}),
    },
    key="role",
    rule=Rule.ROLE_UNKNOWN,
)

_TOOL = Kinds(
    {
        "custom": Fields(
            {"name": TEXT, "input_schema": _OPEN},
            {
                "type": Maybe(TEXT),
                "description": TEXT,
                "cache_control": _CACHE,
                "strict": FLAG,
                "allowed_callers": Items(TEXT),
                "defer_loading": FLAG,
                "eager_input_streaming": Maybe(FLAG),
                "input_examples": Items(_OPEN),
            },
        ),
        # The provider's own tools, each a version of its own with its own settings.
        **dict.fromkeys(
            (
                "bash_20250124",
                "browser_toolset_20260801",
                "code_execution_20250522",
                "code_execution_20250825",
                "code_execution_20260120",
                "code_execution_20260521",
                "computer_toolset_20260801",
                "memory_20250818",
                "text_editor_20250124",
                "text_editor_20250429",
                "text_editor_20250728",
                "tool_search_tool_bm25_20251119",
                "tool_search_tool_regex_20251119",
                "web_fetch_20250910",
                "web_fetch_20260209",
                "web_fetch_20260309",
                "web_fetch_20260318",
                "web_search_20250305",
                "web_search_20260209",
                "web_search_20260318",
            ),
            _OPEN,
        ),
    },
    default="custom",
)
_PARALLEL: dict[str, Shape] = {"disable_parallel_tool_use": FLAG}
_TOOL_CHOICE = Kinds(
    {
        "auto": Fields({"type": TEXT}, _PARALLEL),
        "any": Fields({"type": TEXT}, _PARALLEL),
        "tool": Fields({"type": TEXT, "name": TEXT}, _PARALLEL),
        "none": Fields({"type": TEXT}),
    }
)
_DISPLAY: dict[str, Shape] = {"display": Maybe(Choice(("summarized", "omitted")))}
_THINKING_CONFIG = Kinds(
    {
        "enabled": Fields({"type": TEXT, "budget_tokens": WHOLE}, _DISPLAY),
        "adaptive": Fields({"type": TEXT}, _DISPLAY),
        "disabled": Fields({"type": TEXT}),
        "between_tools": Fields({"type": TEXT}),
    }
)
_OUTPUT = Fields(
    optional={
        "effort": Maybe(Choice(("low", "medium", "high", "xhigh", "max"))),
        "format": Maybe(Fields({"type": _fixed("json_schema"), "schema": _OPEN})),
    }
)

REQUEST: Final = Fields(
    {
        "model": TEXT,
        "max_tokens": Number(0, whole=True),  # 0 fills the cache and answers nothing
        "messages": Items(_MESSAGE, 1, 100_000),
    },
    {
        "cache_control": _CACHE,
        "container": Maybe(ANY),
        "diagnostics": Maybe(Fields(optional={"previous_message_id": Maybe(TEXT)})),
        "inference_geo": Maybe(TEXT),
        "metadata": Fields(optional={"user_id": Maybe(TEXT)}),
        "output_config": _OUTPUT,
        "service_tier": Choice(("auto", "standard_only")),
        "speed": Maybe(Choice(("standard", "fast"))),
        "stop_sequences": Items(TEXT),
        "stream": FLAG,
        "system": Either({"string": TEXT, "list": Items(_TEXT)}),
        "thinking": _THINKING_CONFIG,
        "tool_choice": _TOOL_CHOICE,
        "tools": Items(_TOOL),
        "temperature": Number(0, 1),
        "top_k": Number(0, whole=True),
        "top_p": Number(0, 1),
    },
)
