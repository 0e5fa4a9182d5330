"""What OpenAI's Chat Completions API accepts, and the figures that both of OpenAI's APIs share.

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
from palaver.providers.openai_chat.check import CHECKS, REQUEST
from palaver.providers.openai_chat.models import MODELS
from palaver.providers.openai_chat.servers import as_served, server_of
from palaver.providers.openai_chat.write import OWNED, head, provided, written
from palaver.wire.table import API, MB, Answers, Cache, Calls, MediaLimits, Profile, Reasoning, Tools, Turns

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})  # [O2]
IMAGE_BYTES = 20 * MB  # [O2] «up to 20 MB per image»; also in the API's answer, CosmosShadow/gptpdf#6
IMAGE_COUNT = 500  # [O2]; measured in earendil-works/pi#120
BODY = 50 * MB  # [O2] payload of images in one request; no figure is published for the body without images
TEXT = 10_485_760  # [O1] maxLength; the API's answer in FlowiseAI/Flowise#5085
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # [O1] FunctionObject.name
MOST_TOOLS = 128  # [O1] functions.maxItems; for tools in the API's answer, vishalmysore/Tools4AI#16
CACHE = Cache(
    marks=4,  # [O4] «each request can write up to four breakpoints»; more are no error, they are not written
    field="prompt_cache_breakpoint",
    places=frozenset({"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"}),  # [O1]
)

PROFILE = Profile(
    name="openai-chat",
    api=API(owned=OWNED, head=head, written=written, provided=provided, shape=REQUEST, checks=CHECKS),
    model="gpt-4o",
    dialect="openai",
    request_bytes=BODY,
    conversation="messages",
    provided={"web_search": {}},  # a field of the body: web_search_options
    turns=Turns(
        name=re.compile(
            r"[a-zA-Z0-9_-]{1,64}"
        ),  # «that matches the pattern '^[a-zA-Z0-9_-]+$'»: FlowiseAI/Flowise#2948
        system="message",
        text_characters=TEXT,
    ),
    calls=Calls(
        # «Expected a string with maximum length 40»: anomalyco/opencode#12653. Some models take 64; 40 fits all.
        id=re.compile(r".{1,40}", re.DOTALL),
        unique="turn",  # a tool message answers the calls of the assistant message before it, [O1] ToolMessage
        arguments="string",
        most=128,  # the API's answer in openai/openai-dotnet#317
    ),
    tools=Tools(
        name=TOOL_NAME,
        most=MOST_TOOLS,
    ),
    answers=Answers(native=False, loose=True, fields=("response_format",)),
    reasoning=Reasoning(form="none"),
    media=MediaLimits(
        images=IMAGES,
        audio=frozenset({"audio/wav", "audio/mp3"}),  # [O1] input_audio.format; [O5]
        documents=frozenset({"application/pdf"}),
        schemes=frozenset({"https", "http"}),  # [O2] «a fully qualified URL»
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
    profile = replace(
        PROFILE,
        tools=replace(PROFILE.tools, served=row.served, functions=row.functions),
        answers=replace(PROFILE.answers, native=row.schema),
        reasoning=replace(
            PROFILE.reasoning, efforts=row.efforts, sampling=row.samples, idle_sampling=row.sampling == "idle"
        ),
        columns=columns,
    )
    return as_served(profile, server_of(model, row.server))
