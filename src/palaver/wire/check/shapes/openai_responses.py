"""Fields of a request to OpenAI's Responses API (POST /v1/responses).

After the specification in github.com/openai/openai-openapi and ``response_create_params`` of the ``openai`` package.
"""

from __future__ import annotations

from typing import Final

from palaver.wire.check.shape import ANY, FLAG, TEXT, Choice, Either, Fields, Items, Kinds, Maybe, Number, Shape
from palaver.wire.check.shapes.openai_chat import MARK, RESPONSE_FORMAT_FIELDS, SHARED
from palaver.wire.violations import Rule

__all__ = ["REQUEST"]

_OPEN = Fields(open=True)
_MARKED: dict[str, Shape] = {"prompt_cache_breakpoint": MARK}
_DETAIL: dict[str, Shape] = {"detail": Choice(("auto", "low", "high", "original"))}
_STATUS: dict[str, Shape] = {"status": Maybe(Choice(("in_progress", "completed", "incomplete")))}
_PHASE: dict[str, Shape] = {"phase": Maybe(Choice(("commentary", "final_answer")))}


def _part(kind: str, required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Fields:
    return Fields({"type": Choice((kind,)), **required}, optional or {})


_INPUT: Final[dict[str, Shape]] = {
    "input_text": _part("input_text", {"text": TEXT}, _MARKED),
    "input_image": _part("input_image", {}, {"image_url": Maybe(TEXT), "file_id": Maybe(TEXT), **_DETAIL, **_MARKED}),
    "input_file": _part(
        "input_file",
        {},
        {"file_data": TEXT, "file_id": Maybe(TEXT), "file_url": TEXT, "filename": TEXT, **_DETAIL, **_MARKED},
    ),
}
# The reference asks for annotations; the API takes text without them (langchain-ai/langchainjs#11169).
_OUTPUT: Final[dict[str, Shape]] = {
    "output_text": _part("output_text", {"text": TEXT}, {"annotations": Items(_OPEN), "logprobs": Items(_OPEN)}),
    "refusal": _part("refusal", {"refusal": TEXT}),
}
_ALL = frozenset(_INPUT | _OUTPUT)


def _parts(kinds: dict[str, Shape]) -> Items:
    return Items(Kinds(kinds, elsewhere=_ALL - kinds.keys()))


def _message(role: str, kinds: dict[str, Shape], optional: dict[str, Shape]) -> Fields:
    content = Either({"string": TEXT, "list": _parts(kinds)})
    return Fields({"role": Choice((role,)), "content": content}, {"type": Choice(("message",)), **_STATUS, **optional})


_MESSAGE = Kinds(
    {
        "user": _message("user", _INPUT, {}),
        "system": _message("system", _INPUT, {}),
        "developer": _message("developer", _INPUT, {}),
        "assistant": _message("assistant", _OUTPUT, {"id": TEXT, **_PHASE}),
    },
    key="role",
    rule=Rule.ROLE_UNKNOWN,
)


def _item(kind: str, required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Fields:
    return Fields(
        {"type": Choice((kind,)), **required},
        {"id": Maybe(TEXT), "caller": Maybe(_OPEN), **_STATUS, **(optional or {})},
    )


_RESULT = Either({"string": TEXT, "list": _parts(_INPUT)})
_ITEMS: Final[dict[str, Shape]] = {
    "message": _MESSAGE,
    "function_call": _item(
        "function_call",
        {"call_id": TEXT, "name": TEXT, "arguments": ANY},  # that arguments are a string is a rule of its own
        {"namespace": TEXT, "async": FLAG},
    ),
    "function_call_output": _item(
        "function_call_output",
        {"call_id": TEXT, "output": _RESULT},
        {"name": Maybe(TEXT), "namespace": Maybe(TEXT)},
    ),
    "custom_tool_call": _item(
        "custom_tool_call", {"call_id": TEXT, "name": TEXT, "input": ANY}, {"namespace": TEXT, "async": FLAG}
    ),
    "custom_tool_call_output": _item("custom_tool_call_output", {"call_id": TEXT, "output": _RESULT}),
    "reasoning": _item(
        "reasoning",
        {
            "id": TEXT,
            "summary": Items(Fields({"type": Choice(("summary_text",)), "text": TEXT})),
        },
        {
            "content": Maybe(Items(Fields({"type": Choice(("reasoning_text",)), "text": TEXT}))),
            "encrypted_content": Maybe(TEXT),
        },
    ),
    "item_reference": Fields({"type": TEXT, "id": TEXT}),
    "compaction": Fields({"type": TEXT, "encrypted_content": TEXT}, {"id": Maybe(TEXT)}),
    # What the provider's own tools leave. It goes back as it came; its inside is theirs.
    **dict.fromkeys(
        (
            "additional_tools",
            "apply_patch_call",
            "apply_patch_call_output",
            "code_interpreter_call",
            "computer_call",
            "computer_call_output",
            "file_search_call",
            "image_generation_call",
            "local_shell_call",
            "local_shell_call_output",
            "mcp_approval_request",
            "mcp_approval_response",
            "mcp_call",
            "mcp_list_tools",
            "program",
            "program_output",
            "shell_call",
            "shell_call_output",
            "tool_search_call",
            "tool_search_output",
            "web_search_call",
        ),
        _OPEN,
    ),
}
_INPUT_ITEMS = Items(Kinds(_ITEMS, default="message"))

_FUNCTION = Fields(
    {"type": TEXT, "name": TEXT, "parameters": Maybe(_OPEN)},
    {
        "description": Maybe(TEXT),
        "strict": Maybe(FLAG),
        "async": FLAG,
        "allowed_callers": Maybe(Items(TEXT)),
        "defer_loading": FLAG,
        "output_schema": Maybe(_OPEN),
    },
)
_TOOL = Kinds(
    {
        "function": _FUNCTION,
        "custom": Fields({"type": TEXT, "name": TEXT}, {"description": TEXT, "format": _OPEN}, open=True),
        **dict.fromkeys(
            (
                "apply_patch",
                "code_interpreter",
                "computer",
                "computer_use_preview",
                "file_search",
                "image_generation",
                "local_shell",
                "mcp",
                "namespace",
                "programmatic_tool_calling",
                "shell",
                "tool_search",
                "web_search",
                "web_search_2025_08_26",
                "web_search_preview",
                "web_search_preview_2025_03_11",
            ),
            _OPEN,
        ),
    }
)
_TOOL_CHOICE = Either(
    {
        "string": Choice(("none", "auto", "required")),
        "object": Kinds(
            {
                "function": Fields({"type": TEXT, "name": TEXT}),
                "custom": Fields({"type": TEXT, "name": TEXT}),
                "allowed_tools": Fields({"type": TEXT, "mode": Choice(("auto", "required")), "tools": Items(_OPEN)}),
                **dict.fromkeys(
                    (
                        "apply_patch",
                        "code_interpreter",
                        "computer_use_preview",
                        "file_search",
                        "image_generation",
                        "mcp",
                        "programmatic_tool_calling",
                        "shell",
                        "web_search_preview",
                    ),
                    _OPEN,
                ),
            }
        ),
    }
)
_FORMAT = Kinds(
    {
        "text": Fields({"type": TEXT}),
        "json_object": Fields({"type": TEXT}),
        "json_schema": Fields({"type": TEXT, "name": TEXT, "schema": _OPEN}, RESPONSE_FORMAT_FIELDS),
    }
)

REQUEST: Final = Fields(
    {"model": TEXT, "input": Either({"string": TEXT, "list": _INPUT_ITEMS})},
    {
        **SHARED,
        "access_programs": _OPEN,
        "background": Maybe(FLAG),
        "background_options": _OPEN,
        "context_management": Maybe(Items(_OPEN, 1)),
        "conversation": Maybe(Either({"string": TEXT, "object": Fields({"id": TEXT})})),
        "image": _OPEN,
        "include": Maybe(
            Items(
                Choice(
                    (
                        "file_search_call.results",
                        "web_search_call.results",
                        "web_search_call.action.sources",
                        "message.input_image.image_url",
                        "computer_call_output.output.image_url",
                        "code_interpreter_call.outputs",
                        "reasoning.encrypted_content",
                        "message.output_text.logprobs",
                    )
                )
            )
        ),
        "instructions": Maybe(TEXT),
        "max_output_tokens": Maybe(Number(16, whole=True)),
        "max_tool_calls": Maybe(Number(1, whole=True)),
        "previous_response_id": Maybe(TEXT),
        "prompt": Maybe(_OPEN),
        "reasoning": Maybe(
            Fields(
                optional={
                    "context": Maybe(Choice(("auto", "current_turn", "all_turns"))),
                    "effort": Maybe(Choice(("none", "minimal", "low", "medium", "high", "xhigh", "max"))),
                    "generate_summary": Maybe(Choice(("auto", "concise", "detailed"))),
                    "mode": TEXT,
                    "summary": Maybe(Choice(("auto", "concise", "detailed"))),
                }
            )
        ),
        "text": Fields(optional={"format": _FORMAT, "verbosity": Maybe(Choice(("low", "medium", "high")))}),
        "tool_choice": _TOOL_CHOICE,
        "tools": Items(_TOOL),
        "truncation": Maybe(Choice(("auto", "disabled"))),
    },
)
