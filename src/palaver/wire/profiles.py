"""What each provider accepts, as a table: the compiler keeps to it, and the validators enforce it.

A profile is data: every published rule that differs between providers, with its source. How a rule is checked is in
:mod:`palaver.wire.check`. Where sources or models disagree, the profile has the stricter figure; ``profile(name, model)`` relaxes it for
models that are known to accept more.

Sources are named once here and cited by letter:

* [A1] Anthropic, Messages API reference, and the request types of the ``anthropic`` package 2.12 made from it.
* [A2] platform.claude.com/docs/en/build-with-claude/vision.  [A3] …/build-with-claude/prompt-caching.
* [A4] …/build-with-claude/extended-thinking and adaptive-thinking.  [A5] …/api/errors.
* [A6] …/build-with-claude/mid-conversation-system-messages.  [A8] …/build-with-claude/structured-outputs.
* [A9] …/build-with-claude/preserved-thinking.
* [A7] the ``claude-api`` skill that Anthropic publishes in github.com/anthropics/skills (July 2026).
* [O1] OpenAI, API reference, and the specification in github.com/openai/openai-openapi (August 2026).
* [O2] developers.openai.com/api/docs/guides/images-vision.  [O3] …/guides/function-calling.
* [O4] …/guides/prompt-caching.  [O5] …/guides/audio.  [O6] …/guides/structured-outputs.
* [G1] ai.google.dev/api/generate-content, and the types of the ``google-genai`` package 3.4.
* [G2] ai.google.dev/gemini-api/docs/image-understanding.  [G3] …/docs/file-input-methods.
* [G4] …/docs/function-calling.  [G5] …/docs/thought-signatures.  [G6] …/docs/audio.  [G7] …/docs/structured-output.
* [G8] …/docs/tool-combination.

Tools that a provider runs itself: developers.openai.com/api/docs/guides/tools and the types of the ``openai`` package 2.54;
platform.claude.com/docs/en/agents-and-tools and the types of the ``anthropic`` package 2.12 (the oldest version of a tool, which all models
have); ai.google.dev/api/caching#Tool and the types of the ``google-genai`` package 3.4.

A figure that is only known from what the API answers cites a thread where the answer is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from palaver.errors import NotFound
from palaver.wire.table import Answers, Cache, Calls, Media, Profile, Reasoning, Tools, Turns

MB = 1_000_000  # providers write MB; the decimal reading is the stricter one
MIB = 1_048_576


_OPENAI_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})  # [O2]
_OPENAI_IMAGE_BYTES = 20 * MB  # [O2] «up to 20 MB per image»; also in the API's answer, CosmosShadow/gptpdf#6
_OPENAI_IMAGE_COUNT = 500  # [O2]; measured in earendil-works/pi#120
_OPENAI_BODY = 50 * MB  # [O2] payload of images in one request; no figure is published for the body without images
_OPENAI_TEXT = 10_485_760  # [O1] maxLength; the API's answer in FlowiseAI/Flowise#5085
_OPENAI_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # [O1] FunctionObject.name
_OPENAI_TOOLS = 128  # [O1] functions.maxItems; for tools in the API's answer, vishalmysore/Tools4AI#16
_OPENAI_CACHE = Cache(
    marks=4,  # [O4] «each request can write up to four breakpoints»; more are no error, they are not written
    field="prompt_cache_breakpoint",
    places=frozenset({"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"}),  # [O1]
)

OPENAI_CHAT = Profile(
    name="openai-chat",
    model="gpt-4o",
    dialect="openai",
    request_bytes=_OPENAI_BODY,
    conversation="messages",
    provided={"web_search": {}},  # a field of the body: web_search_options
    turns=Turns(
        name=re.compile(
            r"[a-zA-Z0-9_-]{1,64}"
        ),  # «that matches the pattern '^[a-zA-Z0-9_-]+$'»: FlowiseAI/Flowise#2948
        system="message",
        text_characters=_OPENAI_TEXT,
    ),
    calls=Calls(
        # «Expected a string with maximum length 40»: anomalyco/opencode#12653. Some models take 64; 40 fits all.
        id=re.compile(r".{1,40}", re.DOTALL),
        unique="turn",  # a tool message answers the calls of the assistant message before it, [O1] ToolMessage
        arguments="string",
        most=128,  # the API's answer in openai/openai-dotnet#317
    ),
    tools=Tools(name=_OPENAI_TOOL_NAME, most=_OPENAI_TOOLS),
    answers=Answers(native=False, loose=True, fields=("response_format",)),  # [O6]; models before gpt-4o have none
    reasoning=Reasoning(form="none"),
    media=Media(
        images=_OPENAI_IMAGES,
        audio=frozenset({"audio/wav", "audio/mp3"}),  # [O1] input_audio.format; [O5]
        documents=frozenset({"application/pdf"}),
        schemes=frozenset({"https", "http"}),  # [O2] «a fully qualified URL»
        image_bytes=_OPENAI_IMAGE_BYTES,
        count=_OPENAI_IMAGE_COUNT,
    ),
    cache=_OPENAI_CACHE,
)

OPENAI_RESPONSES = Profile(
    name="openai-responses",
    model="gpt-5",
    dialect="openai",
    request_bytes=_OPENAI_BODY,
    conversation="input",
    provided={
        "web_search": {"type": "web_search"},
        "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
        "computer_use": {"type": "computer"},
    },
    turns=Turns(
        system="field",
        system_inside=True,
        text_characters=_OPENAI_TEXT,
    ),
    calls=Calls(
        id=re.compile(r".{1,64}", re.DOTALL),  # [O1] call_id: minLength 1, maxLength 64
        unique="request",  # outputs find their call by id alone
        arguments="string",
        media=_OPENAI_IMAGES,  # [O1] FunctionCallOutput: text, image or file
    ),
    tools=Tools(name=_OPENAI_TOOL_NAME, most=_OPENAI_TOOLS),
    answers=Answers(native=False, loose=True, fields=("text.format",)),  # [O6]; models before gpt-4o have none
    reasoning=Reasoning(
        form="items", maker="openai", blocks=frozenset({"web_search_call", "file_search_call", "code_interpreter_call"})
    ),
    media=Media(
        images=_OPENAI_IMAGES,
        documents=frozenset({"application/pdf"}),
        schemes=frozenset({"https", "http"}),
        image_bytes=_OPENAI_IMAGE_BYTES,
        count=_OPENAI_IMAGE_COUNT,
    ),
    cache=_OPENAI_CACHE,
)

_ANTHROPIC_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})  # [A1] Base64ImageSource

# [A1] every block that has a field cache_control: all kinds but thinking; beside them system blocks and tools [A3].
_ANTHROPIC_MARKED = frozenset({
    "system", "tool", "text", "image", "document", "search_result", "tool_use", "tool_result", "tool_reference", "browser_state",
    "container_upload", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
})  # fmt: skip

ANTHROPIC = Profile(
    name="anthropic",
    model="claude-sonnet-4-5",
    dialect="anthropic",
    request_bytes=32 * MB,  # [A5] request size limits
    conversation="messages",
    pieces="content",
    provided={
        "web_search": {"type": "web_search_20250305", "name": "web_search"},
        "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
        "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
        "computer_use": {"type": "computer_toolset_20260801"},
    },
    turns=Turns(
        system="field",
        system_inside=False,  # [A6] some models only; the others answer «role 'system' is not supported on this model»
        first="user",  # «first message must use the "user" role»: langbot-app/LangBot#867
        # [A7] error codes: «roles must alternate». [A1] says neighbours are combined; alternating is right under both.
        alternate=True,
        assistant_last=False,  # [A1], [A5] «prefill not supported» by Claude 4.6 and later
        text="visible",  # «text content blocks must contain non-whitespace text»: anthropics/claude-code#23440
        text_characters=32 * MB,  # nothing but the body's limit is published
    ),
    calls=Calls(
        # «String should match pattern '^[a-zA-Z0-9_-]+$'»: maximhq/bifrost#5097. No length is published; 64 is what
        # Amazon Bedrock takes of the same ids (maximhq/bifrost#6300).
        id=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        unique="request",  # «`tool_use` ids must be unique»: anomalyco/opencode#1279
        arguments="object",
        media=_ANTHROPIC_IMAGES,  # [A1] ToolResultBlock.content
    ),
    tools=Tools(
        name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),  # the API's answer in home-assistant/core#147760
        # [A1] Tool.input_schema
        needed=True,  # «Requests which include tool_use or tool_result blocks must define tools»: anthropic-sdk-python#494
    ),
    answers=Answers(
        native=False,  # [A8], [A7] Claude Opus 4.1, and all models from 4.5 on
        fields=("output_config.format", "output_format"),
    ),
    reasoning=Reasoning(
        form="blocks",
        manual=False,  # [A7] this and the next refused by Claude 4.7 and later
        sampling=False,
        bound=True,  # [A9] Claude 5.1 and later
        maker="anthropic",
        blocks=frozenset({
            "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
            "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
        }),
    ),
    media=Media(
        images=_ANTHROPIC_IMAGES,
        documents=frozenset({"application/pdf"}),  # [A1] Base64PDFSource; plain text is a source of its own
        schemes=frozenset({"https"}),  # [A2]
        image_bytes=5 * MIB,  # «image exceeds 5 MB maximum: … bytes > 5242880 bytes»: anthropics/claude-code#10612
        count=100,  # [A2] for models with a window of 200,000 tokens; measured in earendil-works/pi#120
        side=8000,  # [A2]; the API's answer in anthropics/claude-code#4778
        crowd=20,  # [A2]
        crowd_side=2000,  # [A2]; the API's answer in anthropics/claude-code#13480
    ),
    cache=Cache(
        marks=4,  # [A3]; «A maximum of 4 blocks with cache_control may be provided»: griffinmartin/opencode-claude-auth#121
        field="cache_control",
        places=_ANTHROPIC_MARKED,
        choice=True,  # [A3] «What invalidates the cache»: changes to tool_choice invalidate the messages
    ),
)  # fmt: skip

GEMINI = Profile(
    name="gemini",
    model="gemini-2.5-pro",
    dialect="gemini",
    # [G3] 100 MB of inline data since January 2026 (20 MB before), blog.google «gemini-api-new-file-limits».
    request_bytes=100 * MB,
    conversation="contents",
    pieces="parts",
    provided={
        "web_search": {"googleSearch": {}},
        "web_fetch": {"urlContext": {}},
        "code_execution": {"codeExecution": {}},
        "computer_use": {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
    },
    turns=Turns(
        system="field",
        first="user",  # Google's own JavaScript client: «First content should be with role 'user'»
        assistant_last=False,  # «multiturn requests end with a user role or a function response»: songquanpeng/one-api#836
        text="filled",  # «required oneof field 'data' must have one initialized field»: CLIProxyAPI#1292
        text_characters=100 * MB,
    ),
    calls=Calls(
        id=re.compile(r".{1,128}", re.DOTALL),  # [G1] any string; the figure is ours, for what a client can echo
        unique="turn",
        arguments="object",
        media=frozenset({"image/png", "image/jpeg", "image/webp"}),  # [G4] multimodal function responses
    ),
    tools=Tools(
        name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"),  # [G1] FunctionDeclaration.name
        mixed=False,  # [G8] «Tool use with function calling is unsupported» before Gemini 3: symfony/ai#803
    ),
    answers=Answers(
        native=True,  # [G7]
        # «Function calling with a response mime type: 'application/json' is unsupported» before Gemini 3: python-genai#867
        beside_tools=False,
        fields=tuple(f"generationConfig.response{each}" for each in ("MimeType", "Schema", "JsonSchema", "Format")),
    ),
    reasoning=Reasoning(
        form="parts",
        signed_calls=True,  # [G5] Gemini 3 and later answer 400 without them
        maker="google",
        blocks=frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}),
    ),
    media=Media(
        images=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),  # [G2]
        audio=frozenset({"audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"}),  # [G6]
        documents=frozenset({"application/pdf", "text/plain"}),
        schemes=frozenset({"https", "gs"}),  # [G3]
        image_bytes=100 * MB,  # nothing but the body's limit is published
        count=3600,  # [G2]
    ),
    cache=Cache(),  # implicit; explicit caches are objects of their own, without marks
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {each.name: each for each in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, GEMINI)}
)


_SHORT = MappingProxyType({"openai": "openai-chat", "google": "gemini"})
"""Names of providers, for the profile that most of their users mean."""

# Which models take more than their provider's profile says. `4(?:-[0-5]…)?` reads Claude's minor number, not a date.
_CLAUDE_TO_45 = re.compile(r"claude-3|claude-[a-z]+-4(?:-[0-5](?!\d))?(?!-\d(?!\d))")
_CLAUDE_TO_46 = re.compile(r"claude-3|claude-[a-z]+-4(?:-[0-6](?!\d))?(?!-\d(?!\d))")
_CLAUDE_TO_50 = re.compile(r"claude-(?:v?[123]|instant)|claude-[a-z]+-(?:4|5(?![-.][1-9]\d?(?!\d)))(?!\d)")  # [A9]
_CLAUDE_SYSTEM_INSIDE = re.compile(r"claude-opus-4-8")  # [A6]
_GEMINI_TO_2 = re.compile(r"gemini-[12][.-]")
_CLAUDE_TO_40 = re.compile(r"claude-[23]|claude-instant|claude-[a-z]+-4(?:-0)?(?!-\d(?!\d))")  # [A8], [A7]
_OPENAI_OLD = re.compile(r"gpt-3|gpt-4(?![.o])|gpt-4o-2024-05-13|o1-(mini|preview)|davinci|babbage")  # [O6]
# «This response_format type is unavailable now»: llm-exe/llm-exe#662, BerriAI/litellm#31466
_JSON_MODE_ONLY = re.compile(r"deepseek", re.IGNORECASE)


def profile(name: str, model: str = "") -> Profile:
    """Return the profile called ``name``, relaxed for ``model`` where that model is known to accept more.

    An unknown model of another maker behind OpenAI's API counts as a new one: today's servers hold answers to schemas.

    Raises:
        NotFound: No profile has this name; the error lists close matches.
    """
    found = PROFILES.get(_SHORT.get(name, name))
    if found is None:
        close = get_close_matches(name, PROFILES, cutoff=0.4)
        raise NotFound(name, what="provider", close=close, hint=f"Providers: {', '.join(PROFILES)}.")
    if found is ANTHROPIC:
        return _for_claude(model)
    if found is GEMINI:
        return _for_gemini(model)
    loose = found is OPENAI_CHAT and _JSON_MODE_ONLY.search(model)
    if model and not loose and not _OPENAI_OLD.search(model):
        return replace(found, answers=replace(found.answers, native=True))
    return found


def _for_gemini(model: str) -> Profile:
    """Relax Gemini's profile: before Gemini 3 signatures are optional [G5] and responses text [G4]; since then tools mix [G7], [G8]."""
    if _GEMINI_TO_2.search(model):
        calls = replace(GEMINI.calls, media=frozenset())
        return replace(GEMINI, calls=calls, reasoning=replace(GEMINI.reasoning, signed_calls=False))
    if model:
        tools, answers = replace(GEMINI.tools, mixed=True), replace(GEMINI.answers, beside_tools=True)
        return replace(GEMINI, tools=tools, answers=answers)
    return GEMINI


def _for_claude(model: str) -> Profile:
    """Relax Anthropic's profile: prefill ended with 4.6, thinking budgets and sampling parameters with 4.7 [A7].

    Thinking is not bound to what precedes it before 5.1 [A9].
    """
    turns, reasoning, answers = ANTHROPIC.turns, ANTHROPIC.reasoning, ANTHROPIC.answers
    if model and not _CLAUDE_TO_40.search(model):
        answers = replace(answers, native=True)
    if _CLAUDE_TO_45.search(model):
        turns = replace(turns, assistant_last=True)
    if _CLAUDE_TO_46.search(model):
        reasoning = replace(reasoning, manual=True, sampling=True)
    if _CLAUDE_TO_50.search(model):
        reasoning = replace(reasoning, bound=False)
    if _CLAUDE_SYSTEM_INSIDE.search(model):
        turns = replace(turns, system_inside=True)
    return replace(ANTHROPIC, turns=turns, reasoning=reasoning, answers=answers)
