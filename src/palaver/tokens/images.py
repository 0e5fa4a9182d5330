"""What an image costs in tokens, by each provider's formula.

Providers charge by pixels, after scaling an image into a box of theirs. The formulas are pure functions of width and
height. They are what providers publish; where a provider's bills and its pages disagree, the larger figure is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Area", "Flat", "ImageRule", "Patches", "Tiles"]


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
    tile of 768 x 768. From Gemini 3 on the default is 1,120 tokens an image whatever its size ("Media resolution").

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
