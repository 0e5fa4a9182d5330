"""What OpenAI's Responses API accepts.

Where sources disagree, the profile has the stricter figure. What differs between models is in :mod:`palaver.providers.openai_chat.models`.
A figure that is only known from what the API answers cites a thread where the answer is quoted. Sources are cited by letter:

* [O1] OpenAI, API reference, and the specification in github.com/openai/openai-openapi (August 2026).
* [O2] developers.openai.com/api/docs/guides/images-vision.  [O3] …/guides/function-calling.
* [O4] …/guides/prompt-caching.  [O5] …/guides/audio.  [O6] …/guides/structured-outputs.

Tools that OpenAI runs itself: developers.openai.com/api/docs/guides/tools and the types of the ``openai`` package 3.57.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from palaver.messages.frozen import EMPTY
from palaver.providers.openai_chat.models import MODELS
from palaver.providers.openai_chat.profile import (
    BODY,
    CACHE,
    IMAGE_BYTES,
    IMAGE_COUNT,
    IMAGES,
    MOST_TOOLS,
    TEXT,
    TOOL_NAME,
)
from palaver.providers.openai_responses.check import CHECKS, REQUEST
from palaver.providers.openai_responses.items import BLOCKS
from palaver.providers.openai_responses.write import OWNED, head, provided, written
from palaver.wire.table import API, Answers, Calls, MediaLimits, Profile, Reasoning, Tools, Turns

_COMPACTS_FROM = 1_000
"""The least threshold of a compaction (guides/compaction; ResponseCompaction in [O1])."""

PROFILE = Profile(
    name="openai-responses",
    api=API(
        owned=OWNED,
        head=head,
        written=written,
        provided=provided,
        binding=("tools", "text"),
        blocks=BLOCKS,
        shape=REQUEST,
        checks=CHECKS,
    ),
    model="gpt-5",
    dialect="openai",
    request_bytes=BODY,
    conversation="input",
    provided={
        "web_search": {"type": "web_search"},
        "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
        "computer_use": {"type": "computer"},
        "shell": {"type": "shell", "environment": {"type": "local"}},
        "apply_patch": {"type": "apply_patch"},
        "mcp": {"type": "mcp"},
        "tool_search": {"type": "tool_search"},
        "code_calls": {"type": "programmatic_tool_calling"},
    },
    turns=Turns(
        system="field",
        system_inside=True,
        updates=True,
        text_characters=TEXT,
    ),
    calls=Calls(
        id=re.compile(r".{1,64}", re.DOTALL),  # [O1] call_id: minLength 1, maxLength 64
        unique="request",  # outputs find their call by id alone
        arguments="string",
        media=IMAGES,  # [O1] FunctionCallOutput: text, image or file
    ),
    tools=Tools(
        name=TOOL_NAME,
        most=MOST_TOOLS,
        text=True,
        native={"shell": "shell", "apply_patch": "apply_patch", "computer_use": "computer"},
    ),
    answers=Answers(native=False, loose=True, fields=("text.format",)),
    reasoning=Reasoning(form="items", maker="openai"),
    media=MediaLimits(
        images=IMAGES,
        documents=frozenset({"application/pdf"}),
        schemes=frozenset({"https", "http"}),
        image_bytes=IMAGE_BYTES,
        count=IMAGE_COUNT,
    ),
    cache=CACHE,
)


def for_model(model: str, columns: Mapping[str, Any] = EMPTY) -> Profile:
    """Return the profile for a model, from its row in the table.

    Args:
        model: The model.
        columns: What is known of it better than in the table.
    """
    row = MODELS.row(model, columns)
    return replace(
        PROFILE,
        turns=replace(PROFILE.turns, system="message" if row.system_first else "field"),
        answers=replace(PROFILE.answers, native=row.schema),
        tools=replace(
            PROFILE.tools,
            search="tool_search" if "search" in row.tooling else "",
            groups="search" in row.tooling,
            code="code_calls" if "code" in row.tooling else "",
            updates="added" if row.tools_inside else "",
        ),
        reasoning=replace(
            PROFILE.reasoning,
            efforts=row.efforts,
            sampling=row.samples,
            idle_sampling=row.sampling == "idle",
            bound=row.bound,
            reads=row.reads,
        ),
        columns=columns,
        compacts_from=_COMPACTS_FROM if row.compacts else 0,
    )
