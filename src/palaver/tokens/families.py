"""Families of models that count alike: what one token of o200k_base is worth there, and what comes on top of text.

The factors, overheads and bounds of ``openai``, ``anthropic``, ``gemini`` and ``deepseek`` were measured on recorded sessions
(docs/explanation/tokens.md has the figures and the command). The others follow from published comparisons, named at each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from palaver.tokens.images import Area, Flat, ImageRule, Patches, Tiles

__all__ = ["FAMILIES", "Family", "family_of"]

_TILES = Tiles(85, 170)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How the models of one tokenizer count. All figures but factor and bound are tokens.

    A request is estimated as ``factor * (the o200k_base tokens of its text) + overheads + media``.

    Attributes:
        name: Such as ``anthropic``.
        factor: Tokens of this family for one of o200k_base, over the text of agents' requests: English, code, logs, JSON.
        bound: The stated error bound, a fraction of the estimate. It holds for 95 of 100 recorded requests of that sort
            from some thousand tokens on; other scripts, and requests of a few hundred tokens, can be further off.
        default_window: The window that is assumed for an unknown model of this family.
        exact: Whether the tokenizer is o200k_base itself, so that plain text counts exactly.
        per_request: Around a request.
        per_message: Around each message.
        per_call: Around each tool call, besides its name and arguments.
        json_arguments: Whether a tool call's arguments reach the model as JSON text; else as keys and plain values.
        per_result: Around each tool result, besides its message.
        per_tools: What comes with the first tool.
        per_tool: Around each tool's schema.
        schema_share: What the JSON of a schema counts in proportion to other text, as providers write it out more tersely.
        audio_per_second: For one second of sound.
        image: The formula for images.
    """

    name: str
    factor: float
    bound: float
    default_window: int
    exact: bool = False
    per_request: int = 3
    per_message: int = 4
    per_call: int = 12
    json_arguments: bool = True
    per_result: int = 0
    per_tools: int = 0
    per_tool: int = 8
    schema_share: float = 1.0
    audio_per_second: float = 10.0
    image: ImageRule = _TILES


# Overheads of OpenAI: three tokens a message, one for its role, three for the answer's start ("How to count tokens with
# tiktoken", OpenAI Cookbook). Sound: 10 tokens a second (OpenAI, "Realtime costs").
_OPENAI = Family(name="openai", factor=1.0, bound=0.05, default_window=128_000, exact=True)

_TABLE = (
    # OpenAI's models differ in what an image costs ("Images and vision", calculating costs).
    _OPENAI,
    replace(_OPENAI, name="openai-4o-mini", image=Tiles(2833, 5667)),
    replace(_OPENAI, name="openai-o", image=Tiles(75, 150)),
    replace(_OPENAI, name="openai-5", image=Tiles(70, 140)),
    replace(_OPENAI, name="openai-mini", image=Patches(1536, 1.72)),
    replace(_OPENAI, name="openai-nano", image=Patches(1536, 2.46)),
    replace(_OPENAI, name="openai-5.4", image=Patches(2500, 1.2)),
    # cl100k_base counts 0.98 to 1.00 of o200k_base on the recorded sessions; on other scripts far more.
    Family(name="openai-cl100k", factor=1.0, bound=0.1, default_window=8_192),
    # The tools preamble is Anthropic's own figure ("Tool use with Claude", pricing: 313 to 346 tokens).
    Family(
        name="anthropic",
        factor=1.23,
        bound=0.15,
        default_window=200_000,
        per_call=40,
        json_arguments=False,
        per_result=12,
        per_tools=346,
        per_tool=0,
        schema_share=0.79,
        image=Area(750, 1568, 1600),
    ),
    # Opus 4.7 brought another tokenizer: 1.0 to 1.35 times as many tokens ("What's new in Claude Opus 4.7"), 1.325 times over
    # real sessions (claudecodecamp.com, measured with the provider's counter), from 1.00 on Chinese to 1.46 on English prose.
    Family(
        name="anthropic-4.7",
        factor=1.6,
        bound=0.25,
        default_window=1_000_000,
        per_call=50,
        json_arguments=False,
        per_result=16,
        per_tools=346,
        per_tool=0,
        schema_share=0.79,
        image=Area(750, 2576, 4784),
    ),
    # Sound: 32 tokens a second (Google, "Understand and count tokens").
    Family(
        name="gemini",
        factor=1.12,
        bound=0.15,
        default_window=1_000_000,
        per_message=2,
        per_call=4,
        per_result=8,
        audio_per_second=32.0,
        image=Flat(258, 384),
    ),
    Family(
        name="gemini-3",
        factor=1.12,
        bound=0.15,
        default_window=1_000_000,
        per_message=2,
        per_call=4,
        per_result=8,
        audio_per_second=32.0,
        image=Flat(1120),
    ),
    Family(
        name="deepseek",
        factor=1.06,
        bound=0.05,
        default_window=128_000,
        per_message=6,
        per_call=20,
        json_arguments=False,
        per_result=20,
        per_tools=400,
    ),
    # Vocabularies of 100,000 to 250,000 tokens stay within some 15 % of o200k_base on English and code, older and smaller ones
    # do not. Not measured here.
    Family(name="other", factor=1.15, bound=0.3, default_window=32_768),
)

FAMILIES = {family.name: family for family in _TABLE}
"""Every family by its name."""

_NAMES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(gpt-4\.1|gpt-5)-nano", "openai-nano"),
        (r"(gpt-4\.1|gpt-5|o4)-mini", "openai-mini"),
        (r"gpt-4o-mini", "openai-4o-mini"),
        (r"o[134]($|-)", "openai-o"),
        (r"gpt-5($|-|\.[0-3])", "openai-5"),
        (r"gpt-([5-9]|\d\d)", "openai-5.4"),
        (r"(chat)?gpt-4o|gpt-4\.[15]|gpt-oss|codex", "openai"),
        (r"gpt-|text-davinci|davinci", "openai-cl100k"),
        (
            r"claude-(instant|v?[12]\b|3|opus-4($|[.-][0-6](?!\d)|-20)|(sonnet|haiku)-[34]|4([.-][0-6](?!\d))?-)",
            "anthropic",
        ),
        (r"claude", "anthropic-4.7"),
        (r"gemini-(1|2|pro|flash-1|exp)|gemma", "gemini"),
        (r"gemini", "gemini-3"),
        (r"deepseek", "deepseek"),
    )
)


def family_of(name: str) -> Family:
    """Return the family that a model counts like.

    Args:
        name: The model's bare name, lower case, without host or maker.

    Returns:
        The family its name suggests, ``other`` if it suggests none.
    """
    return next((FAMILIES[family] for pattern, family in _NAMES if pattern.match(name)), FAMILIES["other"])
