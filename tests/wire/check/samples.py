"""Rich requests that every provider takes: the positive corpus, and what the negative corpus spoils."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from palaver.wire.profiles import Profile, profile
from tests.wire.check.pictures import HEIC, JPEG, PDF, PNG, WAV, data_url, png

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where it lies."},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "mode": {"type": "string", "enum": ["text", "bytes"]},
    },
    "required": ["path"],
}
OPENAPI_SCHEMA = {
    "type": "OBJECT",
    "properties": {
        "path": {"type": "STRING", "description": "Where it lies."},
        "lines": {"type": "ARRAY", "items": {"type": "INTEGER"}},
        "mode": {"type": "STRING", "enum": ["text", "bytes"]},
    },
    "required": ["path"],
}
STRICT_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"bird": {"type": "string"}, "places": {"type": "array", "items": {"type": "string"}}},
    "required": ["bird", "places"],
    "additionalProperties": False,
}
SIGNATURE = "RXJJQkNrZ0lDeEFDR0FJaVFB"

ANTHROPIC: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 4096,
    "system": [
        {"type": "text", "text": "You are careful."},
        {"type": "text", "text": "Files lie in src.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
    "tools": [
        {
            "name": "read_file",
            "description": "Reads a file.",
            "input_schema": SCHEMA,
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {"name": "screenshot", "input_schema": NO_PARAMETERS},
        {"type": "web_search_20260209", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    "thinking": {"type": "adaptive", "display": "summarized"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What does the logo show?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": SIGNATURE},
                {"type": "redacted_thinking", "data": SIGNATURE},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "logo.svg"}},
                {"type": "tool_use", "id": "toolu_2", "name": "screenshot", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": ""},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [
                        {"type": "text", "text": "The screen."},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG}},
                    ],
                },
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_3", "name": "read_file", "input": {"path": "gone"}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_3",
                    "is_error": True,
                    "content": [{"type": "text", "text": "No such file."}],
                }
            ],
        },
        {"role": "assistant", "content": "It shows a heron. "},
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "url", "url": "https://example.org/heron.png"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
                {"type": "text", "text": "And these?"},
            ],
        },
    ],
    "stop_sequences": ["END"],
    "metadata": {"user_id": "u-1"},
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
    "service_tier": "auto",
    "stream": False,
}

# Claude 4.5: prefill, thinking with a budget, sampling parameters.
ANTHROPIC_PREFILL: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Name a bird."}, {"role": "assistant", "content": "The bird is ("}],
    "temperature": 0.2,
    "top_k": 40,
}
ANTHROPIC_BUDGET: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "temperature": 1,
    "tools": [{"name": "look", "input_schema": NO_PARAMETERS}],
    "messages": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": SIGNATURE},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
        # Within one turn, later steps need not think.
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "A heron."}]},
    ],
}
ANTHROPIC_INSIDE: dict[str, Any] = {
    "model": "claude-opus-4-8",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Name a bird."},
        {"role": "system", "content": "Answer in French."},
        {"role": "assistant", "content": "Héron."},
        {"role": "user", "content": "Another."},
        {"role": "system", "content": [{"type": "text", "text": "Answer in German."}]},
    ],
}
ANTHROPIC_HISTORY: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Name a bird."}, {"role": "assistant", "content": "Heron.\n"}],
}

CHAT: dict[str, Any] = {
    "model": "gpt-5.4",
    "messages": [
        {"role": "system", "content": "You are careful."},
        {"role": "developer", "content": [{"type": "text", "text": "Files lie in src."}]},
        {
            "role": "user",
            "name": "ada",
            "content": [
                {
                    "type": "text",
                    "text": "What does the logo show? Answer in JSON.",
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
                {"type": "image_url", "image_url": {"url": data_url(png()), "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/heron.png"}},
                {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path": "logo.svg"}'},
                },
                # What a model wrote goes back as it came, also when it is no JSON.
                {"id": "call_2", "type": "function", "function": {"name": "screenshot", "arguments": '{"side": '}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "could not be read"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": ""}]},
        {"role": "assistant", "content": "It shows a heron."},
        {"role": "user", "content": "And now?"},
        {
            "role": "assistant",
            "content": "I look again.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "<svg/>"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "read_file", "description": "Reads.", "parameters": STRICT_SCHEMA, "strict": True},
        },
        {"type": "function", "function": {"name": "screenshot", "parameters": SCHEMA}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "read_file"}},
    "parallel_tool_calls": True,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": ANSWER_SCHEMA, "strict": True},
    },
    "max_completion_tokens": 1000,
    "temperature": 0.5,
    "stop": ["END"],
    "prompt_cache_key": "session-1",
    "store": False,
    "stream": False,
}

RESPONSES: dict[str, Any] = {
    "model": "gpt-5.4",
    "instructions": "You are careful.",
    "input": [
        {"role": "developer", "content": "Files lie in src."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What does the logo show? Answer in JSON."},
                {"type": "input_image", "image_url": data_url(png()), "detail": "auto"},
                {"type": "input_image", "image_url": "https://example.org/heron.png", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "I should look."}],
            "encrypted_content": "gAAAAA==",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "read_file",
            "arguments": '{"path": "logo.svg"}',
            "status": "completed",
        },
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "run", "input": "ls"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "A picture."},
                {"type": "input_image", "image_url": data_url(png())},
            ],
        },
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": ""},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAAB=="},
        {"type": "function_call", "call_id": "call_3", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_3", "output": "no path given"},
        {"role": "assistant", "content": "It shows a heron."},
        {"role": "user", "content": "Sure?"},
    ],
    "tools": [
        {"type": "function", "name": "read_file", "parameters": STRICT_SCHEMA, "strict": True},
        {"type": "custom", "name": "run", "description": "Runs a command."},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read_file"}]},
    "parallel_tool_calls": True,
    "text": {
        "format": {"type": "json_schema", "name": "answer", "schema": ANSWER_SCHEMA, "strict": True},
        "verbosity": "low",
    },
    "reasoning": {"effort": "high", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "max_output_tokens": 1000,
    "truncation": "disabled",
    "stream": False,
}

GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "You are careful."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "What does the logo show?"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"inlineData": {"mimeType": "audio/wav", "data": WAV}},
                {"inlineData": {"mimeType": "image/heic", "data": HEIC}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/heron.png"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "I should look.", "thought": True},
                {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c2", "name": "screenshot", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": ""}}},
                {
                    "functionResponse": {
                        "id": "c2",
                        "name": "screenshot",
                        "response": {"output": "The screen."},
                        "parts": [{"inlineData": {"mimeType": "image/jpeg", "data": JPEG}}],
                    }
                },
            ],
        },
        {"role": "model", "parts": [{"text": "A heron."}, {"text": "", "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"text": "Sure?"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "read_file", "args": {"path": "b"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "read_file", "args": {"path": "c"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read_file", "response": {"error": "gone"}}},
                {"functionResponse": {"name": "read_file", "response": {"output": "<svg/>"}}},
            ],
        },
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "read_file", "description": "Reads.", "parameters": OPENAPI_SCHEMA},
                {"name": "screenshot", "parametersJsonSchema": {**NO_PARAMETERS, "additionalProperties": False}},
            ]
        }
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}},
    "generationConfig": {
        "temperature": 1,
        "maxOutputTokens": 1000,
        "stopSequences": ["END"],
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
        "responseMimeType": "application/json",
        "responseJsonSchema": ANSWER_SCHEMA,
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
}
GEMINI_HISTORY: dict[str, Any] = {
    "contents": [{"parts": [{"text": "Name a bird."}]}, {"role": "model", "parts": [{"text": "Heron."}]}]
}


RESPONSES_STORED: dict[str, Any] = {
    "model": "gpt-5.2",
    "input": [
        {"type": "message", "role": "user", "content": "Name a bird."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "message", "role": "user", "content": "And another."},
    ],
}


@dataclass(frozen=True)
class Sample:
    """A request that is taken: by which profile, and whether only as the record of a conversation."""

    profile: Profile
    body: dict[str, Any]
    as_history: bool = False

    def request(self) -> dict[str, Any]:
        """Give the body as a copy to spoil."""
        return deepcopy(self.body)


SAMPLES = {
    "anthropic": Sample(profile("anthropic", "claude-opus-5-5"), ANTHROPIC),
    "anthropic, prefill": Sample(profile("anthropic", "claude-haiku-4-5"), ANTHROPIC_PREFILL),
    "anthropic, budget": Sample(profile("anthropic", "claude-haiku-4-5"), ANTHROPIC_BUDGET),
    "anthropic, system inside": Sample(profile("anthropic", "claude-opus-4-8"), ANTHROPIC_INSIDE),
    "anthropic, history": Sample(profile("anthropic"), ANTHROPIC_HISTORY, as_history=True),
    "openai-chat": Sample(profile("openai-chat", CHAT["model"]), CHAT),
    "openai-responses": Sample(profile("openai-responses", RESPONSES["model"]), RESPONSES),
    "openai-responses, stored": Sample(profile("openai-responses", "gpt-5.2"), RESPONSES_STORED),
    "gemini": Sample(profile("gemini", "gemini-3-pro"), GEMINI),
    "gemini, history": Sample(profile("gemini"), GEMINI_HISTORY, as_history=True),
}
