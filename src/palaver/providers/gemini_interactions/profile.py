"""What Gemini's Interactions API accepts: the figures of generateContent, whose models it serves, in steps.

What only this API has is cited by letter:

* [I1] ai.google.dev/gemini-api/docs/interactions-overview and …/migrate-to-interactions.
* [I2] The types of the ``google-genai`` package 3.6, `interactions`.
* [I3] docs.cloud.google.com/gemini-enterprise-agent-platform/models/thinking/thought-signatures: thoughts of another Gemini model are accepted, and left out of
  what the model reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from palaver.messages.frozen import EMPTY
from palaver.providers.gemini.profile import PROFILE as GEMINI
from palaver.providers.gemini.profile import of_model
from palaver.providers.gemini_interactions.check import CHECKS, REQUEST, SERVED
from palaver.providers.gemini_interactions.write import OWNED, head, provided, written
from palaver.wire.table import API, Cache, OwnBlocks, Profile

_TOOLS: Mapping[str, Mapping[str, Any]] = {
    "web_search": {"type": "google_search"},
    "web_fetch": {"type": "url_context"},
    "code_execution": {"type": "code_execution"},
    "computer_use": {"type": "computer_use", "environment": "browser"},
}
_TYPES = frozenset(tool["type"] for tool in _TOOLS.values())


def _missing(kind: str, fields: Mapping[str, Any], tools: frozenset[str]) -> str:
    """Return what a step needs: that it is one, and where a tool of Google's left it, that the request asks for such tools."""
    if kind in fields:
        return "a part of generateContent"
    return "the request asks for no tool of the provider's own" if kind in SERVED and not tools & _TYPES else ""


PROFILE = replace(
    GEMINI,
    name="gemini-interactions",
    api=API(
        owned=OWNED,
        head=head,
        written=written,
        provided=provided,
        blocks=OwnBlocks(
            known=SERVED | {"model_output"},
            missing=_missing,
            calls=dict.fromkeys((kind for kind in SERVED if kind.endswith("_call")), "id"),
            results=re.compile("|".join(kind for kind in SERVED if kind.endswith("_result"))),
            answers="call_id",
            resumes="continuation_token",
        ),
        shape=REQUEST,
        checks=CHECKS,
    ),
    conversation="input",
    pieces="",
    provided=_TOOLS,
    # results find their call by id
    calls=replace(GEMINI.calls, unique="request"),
    answers=replace(GEMINI.answers, fields=("response_format", "response_mime_type")),
    # the API makes no caches; generateContent does
    cache=Cache(named="cached_content", moved=("system_instruction", "tools")),
    reasoning=replace(GEMINI.reasoning, form="steps"),
)


def for_model(model: str, columns: Mapping[str, Any] = EMPTY) -> Profile:
    """Return the profile for a model.

    Args:
        model: The model.
        columns: What is known of it better than in the table.
    """
    return of_model(PROFILE, model, columns)
