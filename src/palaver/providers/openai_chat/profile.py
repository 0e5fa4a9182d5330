"""What OpenAI's Chat Completions API accepts, and the figures that both of OpenAI's APIs share.

Where sources or models disagree, the profile has the stricter figure; ``for_model`` relaxes it for models that are known to accept more.
A figure that is only known from what the API answers cites a thread where the answer is quoted. Sources are cited by letter:

* [O1] OpenAI, API reference, and the specification in github.com/openai/openai-openapi (August 2026).
* [O2] developers.openai.com/api/docs/guides/images-vision.  [O3] …/guides/function-calling.
* [O4] …/guides/prompt-caching.  [O5] …/guides/audio.  [O6] …/guides/structured-outputs.

Tools that OpenAI runs itself: developers.openai.com/api/docs/guides/tools and the types of the ``openai`` package 2.54.
"""

from __future__ import annotations

import re
from dataclasses import replace

from palaver.providers.openai_chat.check import CHECKS, REQUEST
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
        served=re.compile(r".*search"),  # only these accept web_search_options (guides/tools-web-search)
    ),
    answers=Answers(native=False, loose=True, fields=("response_format",)),  # [O6]; models before gpt-4o have none
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

_OLD = re.compile(r"gpt-3|gpt-4(?![.o])|gpt-4o-2024-05-13|o1-(mini|preview)|davinci|babbage")  # [O6]
# «This response_format type is unavailable now»: llm-exe/llm-exe#662, BerriAI/litellm#31466
_JSON_MODE_ONLY = re.compile(r"deepseek", re.IGNORECASE)


def for_model(model: str, server: str = "") -> Profile:
    """Return the profile for a model, at a server where that is named.

    An unknown model of another maker counts as new: today's servers follow schemas of answers.
    """
    profile = PROFILE if _JSON_MODE_ONLY.search(model) else with_schemas(PROFILE, model)
    return as_served(profile, server_of(model, server))


def with_schemas(profile: Profile, model: str) -> Profile:
    """Return the profile of one of OpenAI's APIs, with schemas of answers where the model is named and not an old one."""
    if not model or _OLD.search(model):
        return profile
    return replace(profile, answers=replace(profile.answers, native=True))
