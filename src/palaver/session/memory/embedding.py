"""Embedding: texts as vectors, by whatever the program has; and one that needs no model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Protocol

from palaver.errors import InvalidInput
from palaver.plurals import counted

__all__ = ["Embedder", "HashingEmbedder", "embedded"]

_WORD = re.compile(r"\w+")
_GRAM = 3


class Embedder(Protocol):
    """Makes vectors of texts: texts that mean something alike get vectors that point alike.

    Attributes:
        name: What makes its vectors comparable: another model, or another size, has another name.
        dimensions: How many numbers a vector has.
    """

    @property
    def name(self) -> str:
        """The name."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    async def __call__(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Give a vector for each text."""
        ...


class HashingEmbedder:
    """Needs no model and no network: each word, and each three letters in a row, counts in a place that its hash names.

    Finds what is spelt alike, not what means the same. The same text gives the same vector on every machine. (K. Weinberger et al.,
    "Feature Hashing for Large Scale Multitask Learning", ICML 2009: the sign keeps collisions from adding up.)

    Attributes:
        dimensions: How many numbers a vector has.
    """

    def __init__(self, dimensions: int = 256) -> None:
        """Make one.

        Raises:
            InvalidInput: It is to have fewer than 8 dimensions.
        """
        if dimensions < 8:  # noqa: PLR2004 - said in the error
            raise InvalidInput(f"A vector has 8 numbers or more, not {dimensions!r}.")
        self.dimensions = dimensions

    @property
    def name(self) -> str:
        """The name."""
        return f"hashing-{self.dimensions}"

    async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Give a vector for each text."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for feature in _features(text):
            number = int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            vector[(number >> 1) % self.dimensions] += 1.0 if number & 1 else -1.0
        return vector


def _features(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold()):
        yield word
        framed = f"<{word}>"
        yield from (framed[at : at + _GRAM] for at in range(len(framed) - _GRAM + 1))


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Have texts embedded, and hold the vectors to what was promised; each comes back with the length 1, or as nothing but zeros.

    What the embedder raises is its own: it is not caught here.

    Raises:
        InvalidInput: The embedder gave another number of vectors, or of numbers in one, or what is no number.
    """
    answer: object = await embedder(texts)
    try:
        given = [list(map(float, vector)) for vector in answer]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"The embedder {embedder.name!r} gave what are no vectors: {error}.") from error
    if len(given) != len(texts):
        raise InvalidInput(
            f"The embedder {embedder.name!r} gave {counted(len(given), 'vector')} for {counted(len(texts), 'text')}."
        )
    for vector in given:
        if len(vector) != embedder.dimensions:
            raise InvalidInput(
                f"The embedder {embedder.name!r} gave a vector of {counted(len(vector), 'number')}, not of {embedder.dimensions}."
            )
        if not all(map(math.isfinite, vector)):
            raise InvalidInput(f"The embedder {embedder.name!r} gave a vector with what is no number.")
    return [_unit(vector) for vector in given]


def _unit(vector: list[float]) -> list[float]:
    largest = max(map(abs, vector), default=0.0)
    if not largest:
        return vector
    scaled = [one / largest for one in vector]  # squares of huge numbers are infinite
    length = math.sqrt(math.fsum(one * one for one in scaled))
    return [one / length for one in scaled]
