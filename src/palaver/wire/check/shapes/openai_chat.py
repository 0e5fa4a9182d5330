"""Fields of a request to OpenAI's Chat Completions API (POST /v1/chat/completions).

After the specification in github.com/openai/openai-openapi and ``completion_create_params`` of the ``openai`` package.
The fields that tools replaced (``functions``, ``function_call``, role ``function``) are left out: palaver writes none,
and a history that has them is brought to tools first. A tool message may have a name, as the provider's older examples
write it; the reference no longer has it and the API still takes it.
"""

from __future__ import annotations

from typing import Final

from palaver.wire.check.shape import ANY, FLAG, TEXT, Choice, Either, Fields, Items, Kinds, Maybe, Number, Shape
from palaver.wire.violations import Rule

__all__ = ["MARK", "REQUEST", "RESPONSE_FORMAT_FIELDS", "SHARED"]

_OPEN = Fields(open=True)

# A cache breakpoint, on any part of content (guides/prompt-caching).
MARK: Final[Shape] = Fields({"mode": Choice(("explicit",))}, {"ttl": Choice(("30m", "12h"))})
_MARKED: dict[str, Shape] = {"prompt_cache_breakpoint": MARK}


def _part(kind: str, required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Fields:
    return Fields({"type": Choice((kind,)), **required}, optional or {})


_TEXT = _part("text", {"text": TEXT}, _MARKED)
_IMAGE = _part(
    "image_url",
    {"image_url": Fields({"url": TEXT}, {"detail": Choice(("auto", "low", "high", "original"))})},
    _MARKED,
)
_AUDIO = _part("input_audio", {"input_audio": Fields({"data": TEXT, "format": TEXT})}, _MARKED)
_FILE = _part("file", {"file": Fields(optional={"file_data": TEXT, "file_id": TEXT, "filename": TEXT})}, _MARKED)
_REFUSAL = _part("refusal", {"refusal": TEXT})
_PARTS: Final[dict[str, Shape]] = {
    "text": _TEXT,
    "image_url": _IMAGE,
    "input_audio": _AUDIO,
    "file": _FILE,
    "refusal": _REFUSAL,
}


def _content(*kinds: str) -> dict[str, Shape]:
    """Describe content that is a string or a list of parts of these kinds, at least one."""
    parts = Kinds({kind: _PARTS[kind] for kind in kinds}, elsewhere=frozenset(_PARTS) - set(kinds))
    return {"string": TEXT, "list": Items(parts, 1)}


_CALL = Kinds(
    {
        "function": Fields(
            {
                "id": TEXT,
                "type": TEXT,
                "function": Fields(
                    {"name": TEXT, "arguments": ANY}
                ),  # that arguments are a string is a rule of its own
            }
        ),
        "custom": Fields({"id": TEXT, "type": TEXT, "custom": Fields({"name": TEXT, "input": ANY})}),
    }
)


def _message(role: str, content: Shape) -> Fields:
    return Fields({"role": Choice((role,)), "content": content}, {"name": TEXT})


_MESSAGE = Kinds(
    {
        "system": _message("system", Either(_content("text"))),
        "developer": _message("developer", Either(_content("text"))),
        "user": _message("user", Either(_content("text", "image_url", "input_audio", "file"))),
        "assistant": Fields(
            {"role": Choice(("assistant",))},
            {
                "content": Maybe(Either(_content("text", "refusal"))),
                "name": TEXT,
                "refusal": Maybe(TEXT),
                "audio": Maybe(Fields({"id": TEXT})),
                "tool_calls": Items(_CALL, 1),
                "function_call": Either({"null": ANY}),  # clients write out the answers' empty fields
            },
        ),
        "tool": Fields(
            {"role": Choice(("tool",)), "tool_call_id": TEXT, "content": Either(_content("text"))}, {"name": TEXT}
        ),
    },
    key="role",
    rule=Rule.ROLE_UNKNOWN,
)

_TOOL = Kinds(
    {
        "function": Fields(
            {
                "type": TEXT,
                "function": Fields({"name": TEXT}, {"description": TEXT, "parameters": _OPEN, "strict": Maybe(FLAG)}),
            }
        ),
        "custom": Fields({"type": TEXT, "custom": Fields({"name": TEXT}, {"description": TEXT, "format": _OPEN})}),
    }
)
_NAMED = Fields({"name": TEXT})
_TOOL_CHOICE = Either(
    {
        "string": Choice(("none", "auto", "required")),
        "object": Kinds(
            {
                "function": Fields({"type": TEXT, "function": _NAMED}),
                "custom": Fields({"type": TEXT, "custom": _NAMED}),
                "allowed_tools": Fields(
                    {
                        "type": TEXT,
                        "allowed_tools": Fields({"mode": Choice(("auto", "required")), "tools": Items(_OPEN)}),
                    }
                ),
            }
        ),
    }
)
RESPONSE_FORMAT_FIELDS: Final[dict[str, Shape]] = {
    "name": TEXT,
    "description": TEXT,
    "schema": _OPEN,
    "strict": Maybe(FLAG),
}
_RESPONSE_FORMAT = Kinds(
    {
        "text": Fields({"type": TEXT}),
        "json_object": Fields({"type": TEXT}),
        "json_schema": Fields({"type": TEXT, "json_schema": Fields({"name": TEXT}, RESPONSE_FORMAT_FIELDS)}),
    }
)

# What both of OpenAI's APIs take.
SHARED: Final[dict[str, Shape]] = {
    "metadata": Maybe(_OPEN),
    "moderation": Maybe(_OPEN),
    "parallel_tool_calls": Maybe(FLAG),
    "prompt_cache_key": Maybe(TEXT),
    "prompt_cache_options": _OPEN,
    "prompt_cache_retention": Maybe(Choice(("in_memory", "24h"))),
    "safety_identifier": Maybe(TEXT),
    "service_tier": Maybe(Choice(("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"))),
    "store": Maybe(FLAG),
    "stream": Maybe(FLAG),
    "stream_options": Maybe(Fields(optional={"include_obfuscation": FLAG, "include_usage": FLAG})),
    "temperature": Maybe(Number(0, 2)),
    "top_logprobs": Maybe(Number(0, 20, whole=True)),
    "top_p": Maybe(Number(0, 1)),
    "user": TEXT,
}

REQUEST: Final = Fields(
    {"model": TEXT, "messages": Items(_MESSAGE, 1)},
    {
        **SHARED,
        "audio": Maybe(_OPEN),
        "frequency_penalty": Maybe(Number(-2, 2)),
        "logit_bias": Maybe(_OPEN),
        "logprobs": Maybe(FLAG),
        "max_completion_tokens": Maybe(Number(1, whole=True)),
        "max_tokens": Maybe(Number(1, whole=True)),
        "modalities": Maybe(Items(Choice(("text", "audio")))),
        "n": Maybe(Number(1, 128, whole=True)),
        "prediction": Maybe(_OPEN),
        "presence_penalty": Maybe(Number(-2, 2)),
        "reasoning_effort": Maybe(Choice(("none", "minimal", "low", "medium", "high", "xhigh", "max"))),
        "response_format": _RESPONSE_FORMAT,
        "seed": Maybe(Number(whole=True)),
        "stop": Maybe(Either({"string": TEXT, "list": Items(TEXT, 1, 4)})),
        "tool_choice": _TOOL_CHOICE,
        "tools": Items(_TOOL, 1),
        "verbosity": Maybe(Choice(("low", "medium", "high"))),
        "web_search_options": _OPEN,
    },
)
