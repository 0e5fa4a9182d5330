"""Families of models that count alike: what one token of o200k_base is worth there, and what comes on top of text.

The factors, overheads and bounds of ``openai``, ``anthropic``, ``gemini`` and ``deepseek`` were measured on recorded sessions
(docs/explanation/tokens.md has the figures and the command). The others follow from published comparisons, named at each.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

BYTES_PER_TOKEN = 3.6
"""Recorded bytes for one o200k_base token, over the recorded sessions (median of sessions; `bench/` has the command)."""

# Providers charge by pixels, after scaling an image into a box of theirs. The formulas are what providers publish; where a
# provider's bills and its pages disagree, the larger figure is used.


@dataclass(frozen=True, slots=True)
class Area:
    """Tokens in proportion to the pixels, after scaling into a longest edge and a cap (Anthropic).

    Source: Anthropic, "Vision": tokens = width * height / 750; scaled down before when the long edge exceeds 1568
    pixels or the image 1,600 tokens; from Opus 4.7 on 2576 pixels and 4,784 tokens.

    Attributes:
        pixels_per_token: Pixels that make one token.
        long_edge: The longest edge, in pixels, that is not scaled down.
        cap: The most tokens one image counts.
    """

    pixels_per_token: float
    long_edge: int
    cap: int

    @property
    def unknown(self) -> int:
        """The cap."""
        return self.cap

    def tokens(self, width: int, height: int) -> int:
        """Scale the long edge into its limit, then divide the area."""
        scale = min(1.0, self.long_edge / max(width, height))
        return max(1, min(self.cap, math.ceil(width * scale * height * scale / self.pixels_per_token)))


@dataclass(frozen=True, slots=True)
class Tiles:
    """A base and a price for each tile the scaled image touches (OpenAI up to GPT-5, high detail).

    Source: OpenAI, "Images and vision": scaled to fit 2048 x 2048, then so that the short edge is at most 768 pixels;
    the tiles are 512 pixels wide and high.

    Attributes:
        base: Tokens of every image.
        tile: Tokens of one tile.
    """

    base: int
    tile: int

    @property
    def unknown(self) -> int:
        """An image of 2048 x 768 pixels: eight tiles, the most there can be."""
        return self.tokens(2048, 768)

    def tokens(self, width: int, height: int) -> int:
        """Scale twice, then count tiles."""
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        across, down = math.ceil(width * scale / 512), math.ceil(height * scale / 512)
        return self.base + self.tile * max(1, across) * max(1, down)


@dataclass(frozen=True, slots=True)
class Patches:
    """A price for each patch of 32 x 32 pixels, up to a number of them (OpenAI's smaller and newer models).

    Source: OpenAI, "Images and vision": patches needed to cover the image, capped, times a factor of the model.

    Attributes:
        cap: The most patches one image has; larger images are scaled down.
        factor: Tokens of one patch.
    """

    cap: int
    factor: float

    @property
    def unknown(self) -> int:
        """An image that fills the cap."""
        return math.ceil(self.cap * self.factor)

    def tokens(self, width: int, height: int) -> int:
        """Count patches."""
        patches = math.ceil(width / 32) * math.ceil(height / 32)
        return math.ceil(min(patches, self.cap) * self.factor)


@dataclass(frozen=True, slots=True)
class Flat:
    """One price for a small image, or for each tile of a larger one (Gemini).

    Source: Google, "Understand and count tokens": 258 tokens when both edges are at most 384 pixels, else 258 for each
    tile of 768 x 768. From Gemini 3 on the default is 1,120 tokens an image of any size ("Media resolution").

    Attributes:
        each: Tokens of one image or tile.
        small: The longest edge, in pixels, of an image that counts once; 0 when every image counts once.
        tile: Width and height of a tile in pixels.
        most: Tiles that are assumed when the size is not known.
    """

    each: int
    small: int = 0
    tile: int = 768
    most: int = 4

    @property
    def unknown(self) -> int:
        """One image, or as many tiles as assumed."""
        return self.each * (self.most if self.small else 1)

    def tokens(self, width: int, height: int) -> int:
        """Count tiles."""
        if not self.small or (width <= self.small and height <= self.small):
            return self.each
        return self.each * math.ceil(width / self.tile) * math.ceil(height / self.tile)


ImageRule = Area | Flat | Patches | Tiles
"""How one provider turns pixels into tokens; `unknown` is what an image of unknown size counts: as much as any can."""


_TILES = Tiles(85, 170)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How the models of one tokenizer count. All figures but factor and bound are tokens.

    A request is estimated as ``factor * (the o200k_base tokens of its text) + overheads + media``.

    Attributes:
        name: Such as ``anthropic``.
        factor: Tokens of this family for one of o200k_base, over the text of agents' requests: English, code, logs, JSON.
        bound: The stated error bound, a fraction of the estimate. It was right for 95 of 100 recorded requests of some thousand tokens and more. Other
            scripts, and requests of a few hundred tokens, can be further off.
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

# The tools preamble is Anthropic's own figure ("Tool use with Claude", pricing: 313 to 346 tokens).
_ANTHROPIC = Family(
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
)

# Sound: 32 tokens a second (Google, "Understand and count tokens").
_GEMINI = Family(
    name="gemini",
    factor=1.12,
    bound=0.15,
    default_window=1_000_000,
    per_message=2,
    per_call=4,
    per_result=8,
    audio_per_second=32.0,
    image=Flat(258, 384),
)

_TABLE = (
    # OpenAI's models differ in what an image costs ("Images and vision", calculating costs).
    _OPENAI,
    replace(_OPENAI, name="openai-4o-mini", image=Tiles(2833, 5667)),
    replace(_OPENAI, name="openai-o", image=Tiles(75, 150)),
    replace(_OPENAI, name="openai-5", image=Tiles(70, 140)),
    replace(_OPENAI, name="openai-mini", image=Patches(1536, 1.72)),
    replace(_OPENAI, name="openai-nano", image=Patches(1536, 2.46)),
    # Of the window of GPT-5.4 and later, 922,000 tokens are input.
    replace(_OPENAI, name="openai-5.4", default_window=922_000, image=Patches(2500, 1.2)),
    # cl100k_base counts 0.98 to 1.00 of o200k_base on the recorded sessions; on other scripts far more.
    Family(name="openai-cl100k", factor=1.0, bound=0.1, default_window=8_192),
    _ANTHROPIC,
    # Opus 4.7 brought another tokenizer: 1.0 to 1.35 times as many tokens ("What's new in Claude Opus 4.7"), 1.325 times over
    # real sessions (claudecodecamp.com, measured with the provider's counter), from 1.00 on Chinese to 1.46 on English prose.
    replace(
        _ANTHROPIC,
        name="anthropic-4.7",
        factor=1.6,
        bound=0.25,
        default_window=1_000_000,
        per_call=50,
        per_result=16,
        image=Area(750, 2576, 4784),
    ),
    _GEMINI,
    replace(_GEMINI, name="gemini-3", image=Flat(1120)),
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
