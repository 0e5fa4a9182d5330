"""The models of OpenAI, from the newest to the oldest, for both of its APIs.

Besides the page of each row (developers.openai.com/api/docs, November 2026): reasoning is read within one family (guides/reasoning); GPT-5.6 and
later take no sampling parameters, and functions in chat completions only with the effort `none`, which not all of them take (guides/latest-model). Tools
among the turns: guides/keep-prefix-unchanged.
"""

from __future__ import annotations

from typing import Final

from palaver.wire.models import ModelRow, ModelTable, Reach

_DOCS: Final = "https://developers.openai.com/api/docs"
_EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh", "max")
_WITH_NONE: Final = ("none", *_EFFORTS)

_ROWS: Final = (
    ModelRow(
        line="gpt",
        floor=(6, 2),
        source=f"{_DOCS}/guides/latest-model/gpt-6.2-astra",
        efforts=_EFFORTS,
        functions=False,
        system_first=True,
        tools_inside=True,
        bound=True,
        reads=(Reach((), (6, 2), (6, 2)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        families=("sol", "astra"),
        floor=(6, 1),
        source=f"{_DOCS}/guides/latest-model",
        efforts=_EFFORTS,
        functions=False,
        reads=(Reach((), (6, 1), (6, 1)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        floor=(6, 1),
        source=f"{_DOCS}/guides/latest-model",
        efforts=_WITH_NONE,
        functions=False,
        reads=(Reach((), (6, 1), (6, 1)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        families=("astra",),
        floor=(6, 0),
        source=f"{_DOCS}/guides/latest-model",
        efforts=_EFFORTS,
        functions=False,
        reads=(Reach((), (6, 0), (6, 0)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        floor=(6, 0),
        source=f"{_DOCS}/guides/latest-model",
        efforts=_WITH_NONE,
        functions=False,
        reads=(Reach((), (6, 0), (6, 0)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        floor=(5, 6),
        source=f"{_DOCS}/guides/latest-model",
        efforts=_WITH_NONE,
        functions=False,
        reads=(Reach((), (5, 6), (5, 6)),),
        served=False,
    ),
    ModelRow(
        line="gpt",
        families=("search-api",),
        floor=(5, 0),
        source=f"{_DOCS}/guides/tools-web-search",
        sampling="yes",
        tooling=(),
    ),
    ModelRow(
        line="gpt",
        families=("chat",),
        floor=(5, 0),
        source="https://github.com/BerriAI/litellm/issues/13781",
        sampling="yes",
        reads=(Reach((), (5, 0), (5, 5)),),
        served=False,
        tooling=(),
    ),
    ModelRow(
        line="gpt",
        floor=(5, 4),
        source=f"{_DOCS}/guides/tools-tool-search",
        sampling="idle",
        reads=(Reach((), (5, 0), (5, 5)),),
        served=False,
        tooling=("search",),
    ),
    ModelRow(
        line="gpt",
        floor=(5, 1),
        source="https://github.com/vercel/ai/issues/10932",
        sampling="idle",
        reads=(Reach((), (5, 0), (5, 5)),),
        served=False,
        tooling=(),
    ),
    ModelRow(
        line="gpt",
        floor=(5, 0),
        source=f"{_DOCS}/guides/reasoning",
        reads=(Reach((), (5, 0), (5, 5)),),
        served=False,
        tooling=(),
    ),
    ModelRow(
        line="gpt",
        floor=(4, 1),
        source=f"{_DOCS}/guides/structured-outputs",
        sampling="yes",
        served=False,
        tooling=(),
    ),
    ModelRow(
        line="gpt",
        source=f"{_DOCS}/guides/structured-outputs",
        sampling="yes",
        schema=False,
        served=False,
        tooling=(),
    ),
    ModelRow(
        names=("gpt-4o-2024-05-13", "o1-mini", "o1-preview", "davinci-002", "babbage-002"),
        source=f"{_DOCS}/guides/structured-outputs",
        sampling="yes",
        schema=False,
        served=False,
        tooling=(),
    ),
    ModelRow(
        line="gpt-4o",
        families=("search-preview", "mini-search-preview"),
        floor=(4, 0),
        source=f"{_DOCS}/guides/tools-web-search",
        sampling="yes",
        tooling=(),
    ),
    ModelRow(
        line="gpt-4o",
        floor=(4, 0),
        source=f"{_DOCS}/guides/structured-outputs",
        sampling="yes",
        served=False,
        tooling=(),
    ),
    ModelRow(line="o", floor=(4, 0), source=f"{_DOCS}/guides/reasoning", served=False, tooling=()),
    ModelRow(line="o", source=f"{_DOCS}/guides/reasoning", served=False, tooling=()),
    # «This response_format type is unavailable now»: llm-exe/llm-exe#662, BerriAI/litellm#31466
    ModelRow(
        line="deepseek",
        source="https://github.com/BerriAI/litellm/issues/31466",
        sampling="yes",
        schema=False,
        served=False,
        tooling=(),
    ),
)

MODELS: Final = ModelTable(
    api="openai",
    rows=_ROWS,
    strictest=ModelRow(source="the strictest of the rows", sampling="yes", schema=False, served=False, tooling=()),
    # Today's servers of other makers' models follow schemas of answers.
    other=ModelRow(source="models of other makers", sampling="yes", served=False, tooling=()),
)
"""The table."""
