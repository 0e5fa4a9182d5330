"""The models of Google, from the newest to the oldest.

Besides the page of each row (ai.google.dev/gemini-api/docs, November 2026): signatures are required from Gemini 3 on (generate-content/thought-signatures);
since then tools mix (tool-combination) and results may have media (function-calling). Sampling parameters are ignored by the models that do not support
them, and later ones are to refuse them (BerriAI/litellm, `model_prices_and_context_window`).
"""

from __future__ import annotations

from typing import Final

from palaver.wire.models import ModelRow, ModelTable

_DOCS: Final = "https://ai.google.dev/gemini-api/docs"
_LEVELS: Final = ("low", "medium", "high")

_ROWS: Final = (
    ModelRow(
        names=("gemini-4-hydrogen",),
        source=f"{_DOCS}/generate-content/latest-model",
        efforts=(*_LEVELS, "xhigh"),
        signed_calls=True,
    ),
    ModelRow(
        line="gemini", floor=(4, 0), source=f"{_DOCS}/generate-content/latest-model", efforts=_LEVELS, signed_calls=True
    ),
    ModelRow(
        line="gemini", floor=(3, 7), source=f"{_DOCS}/generate-content/thinking", efforts=_LEVELS, signed_calls=True
    ),
    ModelRow(
        line="gemini",
        floor=(3, 6),
        source=f"{_DOCS}/generate-content/thinking",
        efforts=("minimal", *_LEVELS),
        signed_calls=True,
    ),
    ModelRow(
        line="gemini",
        families=("flash-lite",),
        floor=(3, 5),
        source=f"{_DOCS}/generate-content/thinking",
        efforts=("minimal", *_LEVELS),
        signed_calls=True,
    ),
    ModelRow(
        line="gemini",
        floor=(3, 0),
        source=f"{_DOCS}/generate-content/thought-signatures",
        efforts=("minimal", *_LEVELS),
        sampling="yes",
        signed_calls=True,
    ),
    ModelRow(
        line="gemini",
        source=f"{_DOCS}/generate-content/function-calling",
        sampling="yes",
        mixed=False,
        result_media=False,
    ),
)

MODELS: Final = ModelTable(
    api="gemini",
    rows=_ROWS,
    strictest=ModelRow(source="the strictest of the rows", sampling="yes", signed_calls=True, mixed=False),
    other=ModelRow(source="models of other names", sampling="yes", signed_calls=True),
)
"""The table."""
