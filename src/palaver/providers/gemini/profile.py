"""What the Gemini API accepts.

Where sources disagree, the profile has the stricter figure. What differs between models is in :mod:`palaver.providers.gemini.models`.
A figure that is only known from what the API answers cites a thread where the answer is quoted. Sources are cited by letter:

* [G1] ai.google.dev/api/generate-content, and the types of the ``google-genai`` package 3.6.
* [G2] ai.google.dev/gemini-api/docs/image-understanding.  [G3] …/docs/file-input-methods.
* [G4] …/docs/function-calling.  [G6] …/docs/audio.  [G7] …/docs/structured-output.

Tools that Google runs itself: ai.google.dev/api/caching#Tool and the types of the ``google-genai`` package 3.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from palaver.messages.frozen import EMPTY
from palaver.providers.gemini.check import CHECKS, REQUEST
from palaver.providers.gemini.models import MODELS
from palaver.providers.gemini.write import OWNED, arguments, head, neighbours, provided, written
from palaver.wire.table import API, MB, Answers, Cache, Calls, MediaLimits, OwnBlocks, Profile, Reasoning, Tools, Turns

_SERVED: Mapping[str, Mapping[str, Any]] = {
    "web_search": {"googleSearch": {}},
    "web_fetch": {"urlContext": {}},
    "code_execution": {"codeExecution": {}},
    "computer_use": {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
}
_KEYS = frozenset(key for tool in _SERVED.values() for key in tool)


def _missing(kind: str, fields: Mapping[str, Any], tools: frozenset[str]) -> str:
    """Return what a part needs: that it is one, and that the request asks for a tool of Google's, such as the one that left it [G8]."""
    if kind not in fields:
        return "a step of the Interactions API"
    return "" if tools & _KEYS else "the request asks for no tool of the provider's own"


PROFILE = Profile(
    name="gemini",
    api=API(
        owned=OWNED,
        head=head,
        written=written,
        provided=provided,
        neighbours=neighbours,
        arguments=arguments,
        blocks=OwnBlocks(
            known=frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}),
            missing=_missing,
            resumes="continuationToken",
        ),
        shape=REQUEST,
        checks=CHECKS,
    ),
    model="gemini-2.5-pro",
    dialect="gemini",
    # [G3] 100 MB of inline data since January 2026 (20 MB before), blog.google «gemini-api-new-file-limits».
    request_bytes=100 * MB,
    conversation="contents",
    pieces="parts",
    provided=_SERVED,
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
        mixed=False,  # «Tool use with function calling is unsupported» before Gemini 3: symfony/ai#803
    ),
    answers=Answers(
        native=True,  # [G7]
        # «Function calling with a response mime type: 'application/json' is unsupported» before Gemini 3: python-genai#867
        beside_tools=False,
        fields=tuple(f"generationConfig.response{each}" for each in ("MimeType", "Schema", "JsonSchema", "Format")),
    ),
    reasoning=Reasoning(
        form="parts",
        maker="google",
    ),
    media=MediaLimits(
        images=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),  # [G2]
        audio=frozenset({"audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"}),  # [G6]
        documents=frozenset({"application/pdf", "text/plain"}),
        schemes=frozenset({"https", "gs"}),  # [G3]
        image_bytes=100 * MB,  # nothing but the body's limit is published
        count=3600,  # [G2]
    ),
    # implicit; explicit caches are objects of their own, without marks: ai.google.dev/api/caching
    cache=Cache(named="cachedContent", moved=("systemInstruction", "tools", "toolConfig"), made=True),
)


def for_model(model: str, columns: Mapping[str, Any] = EMPTY) -> Profile:
    """Return the profile for a model.

    Args:
        model: The model.
        columns: What is known of it better than in the table.
    """
    return of_model(PROFILE, model, columns)


def of_model(profile: Profile, model: str, columns: Mapping[str, Any]) -> Profile:
    """Return the profile of one of Google's APIs for a model, from its row in the table."""
    row = MODELS.row(model, columns)
    return replace(
        profile,
        calls=replace(profile.calls, media=profile.calls.media if row.result_media else frozenset()),
        tools=replace(profile.tools, mixed=row.mixed),
        answers=replace(profile.answers, beside_tools=row.mixed),
        reasoning=replace(
            profile.reasoning, signed_calls=row.signed_calls, efforts=row.efforts, sampling=row.samples, reads=row.reads
        ),
        columns=columns,
    )
