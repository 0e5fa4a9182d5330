"""What Anthropic's Messages API accepts.

Where sources disagree, the profile has the stricter figure. What differs between models is in :mod:`palaver.providers.anthropic.models`.
A figure that is only known from what the API answers cites a thread where the answer is quoted. Sources are cited by letter:

* [A1] Anthropic, Messages API reference, and the request types of the ``anthropic`` package 2.14 made from it.
* [A2] platform.claude.com/docs/en/build-with-claude/vision.  [A3] …/build-with-claude/prompt-caching.
* [A5] …/api/errors.
* [A7] the ``claude-api`` skill that Anthropic publishes in github.com/anthropics/skills (July 2026).

Tools that Anthropic runs itself: platform.claude.com/docs/en/agents-and-tools and the types of the ``anthropic`` package 2.14 (the oldest
version of a tool, which all models have).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from palaver.messages.frozen import EMPTY
from palaver.providers.anthropic.betas import arguments, headers
from palaver.providers.anthropic.blocks import BLOCKS
from palaver.providers.anthropic.check import CHECKS, REQUEST
from palaver.providers.anthropic.models import MODELS
from palaver.providers.anthropic.write import OWNED, finished, head, neighbours, provided, written
from palaver.wire.table import API, MB, Answers, Cache, Calls, MediaLimits, Profile, Reasoning, Tools, Turns

_MIB = 1_048_576

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})  # [A1] Base64ImageSource

# [A1] every block that has a field cache_control: all kinds but thinking; beside them system blocks and tools [A3].
_MARKED = frozenset({
    "system", "tool", "text", "image", "document", "search_result", "tool_use", "tool_result", "tool_reference", "browser_state",
    "container_upload", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
})  # fmt: skip

_COMPACTS_FROM = 50_000
"""The least trigger of a compaction (build-with-claude/compaction-threshold)."""

PROFILE = Profile(
    name="anthropic",
    api=API(
        owned=OWNED,
        head=head,
        written=written,
        provided=provided,
        neighbours=neighbours,
        finished=finished,
        binding=("system", "tools"),
        blocks=BLOCKS,
        arguments=arguments,
        headers=headers,
        shape=REQUEST,
        checks=CHECKS,
    ),
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
        "browser": {"type": "browser_toolset_20260801"},
        "bash": {"type": "bash_20250124", "name": "bash"},
        "text_editor": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        "memory": {"type": "memory_20250818", "name": "memory"},
        "mcp": {"type": "mcp_toolset"},
        "tool_search": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    },
    turns=Turns(
        system="field",
        first="user",  # «first message must use the "user" role»: langbot-app/LangBot#867
        # [A7] error codes: «roles must alternate». [A1] says neighbours are combined; alternating is right under both.
        alternate=True,
        text="visible",  # «text content blocks must contain non-whitespace text»: anthropics/claude-code#23440
        text_characters=32 * MB,  # nothing but the body's limit is published
    ),
    calls=Calls(
        # «String should match pattern '^[a-zA-Z0-9_-]+$'»: maximhq/bifrost#5097. No length is published; 64 is what
        # Amazon Bedrock takes of the same ids (maximhq/bifrost#6300).
        id=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        unique="request",  # «`tool_use` ids must be unique»: anomalyco/opencode#1279
        arguments="object",
        media=_IMAGES,  # [A1] ToolResultBlock.content
    ),
    tools=Tools(
        name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),  # the API's answer in home-assistant/core#147760
        needed=True,  # «Requests which include tool_use or tool_result blocks must define tools»: anthropic-sdk-python#494
        native={"bash": "bash", "text_editor": "str_replace_based_edit_tool", "memory": "memory", "computer_use": "computer", "browser": "browser"},
    ),
    answers=Answers(
        native=False,
        after_words=False,
        fields=("output_config.format", "output_format"),
    ),
    reasoning=Reasoning(
        form="blocks",
        maker="anthropic",
    ),
    media=MediaLimits(
        images=_IMAGES,
        documents=frozenset({"application/pdf"}),  # [A1] Base64PDFSource; plain text is a source of its own
        schemes=frozenset({"https"}),  # [A2]
        image_bytes=5 * _MIB,  # «image exceeds 5 MB maximum: … bytes > 5242880 bytes»: anthropics/claude-code#10612
        count=100,  # [A2] for models with a window of 200,000 tokens; measured in earendil-works/pi#120
        side=8000,  # [A2]; the API's answer in anthropics/claude-code#4778
        crowd=20,  # [A2]
        crowd_side=2000,  # [A2]; the API's answer in anthropics/claude-code#13480
    ),
    cache=Cache(
        marks=4,  # [A3]; «A maximum of 4 blocks with cache_control may be provided»: griffinmartin/opencode-claude-auth#121
        field="cache_control",
        places=_MARKED,
        choice=True,  # [A3] «What invalidates the cache»: changes to tool_choice invalidate the messages
    ),
)  # fmt: skip


def for_model(model: str, columns: Mapping[str, Any] = EMPTY) -> Profile:
    """Return the profile for a model, from its row in the table.

    Args:
        model: The model.
        columns: What is known of it better than in the table.
    """
    row = MODELS.row(model, columns)
    return replace(
        PROFILE,
        turns=replace(
            PROFILE.turns, assistant_last=row.prefill, system_inside=row.system_inside, updates=row.system_inside
        ),
        answers=replace(PROFILE.answers, native=row.schema),
        tools=replace(
            PROFILE.tools,
            served=row.served,
            forced=row.forced,
            search="tool_search" if "search" in row.tooling else "",
            code="code_execution" if "code" in row.tooling else "",
            updates="any" if row.tools_inside else "",
        ),
        reasoning=replace(
            PROFILE.reasoning,
            thinking=row.thinking,
            thinks=row.thinks,
            efforts=row.efforts,
            quiet_effort=row.quiet_effort,
            sampling=row.samples,
            bound=row.bound,
            reads=row.reads,
        ),
        columns=columns,
        compacts_from=_COMPACTS_FROM if row.compacts else 0,
    )
