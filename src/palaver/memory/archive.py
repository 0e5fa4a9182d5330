"""Archival memory: passages without a limit, outside every view, found by similarity.

(MemGPT, arXiv 2310.08560, section 2.2: archival storage, searched and paged by the model.)
"""

from __future__ import annotations

import math
import re
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from heapq import nlargest
from operator import mul
from typing import Protocol, TypeAlias

from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.memory.notes import Data, HasPlace, Note, Notebook
from palaver.messages.frozen import clean_text
from palaver.tools.portal import run_sync

LONGEST = 20_000
"""The maximum characters of a passage: a vector represents longer texts poorly."""

LONGEST_TAG, MOST_TAGS = 100, 32

_KIND = "palaver.archive"
_BATCH = 64
_WORD = re.compile(r"\w+")
_GRAM = 3
_LEAST_DIMENSIONS = 8

Vector: TypeAlias = "array[float]"


class Embedder(Protocol):
    """Turns texts into vectors, so that texts of similar meaning have vectors of similar direction.

    Attributes:
        name: Identifies comparable vectors: another model or size has another name.
        dimensions: The length of a vector.
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
        """Return a vector for each text."""
        ...


class HashingEmbedder:
    """An embedder without a model or a network: each word and each trigram counts at the index of its hash.

    Finds similar spelling, not similar meaning. The same text has the same vector on every machine. (K. Weinberger et al., "Feature Hashing
    for Large Scale Multitask Learning", ICML 2009: the sign keeps collisions from adding up.)

    Attributes:
        dimensions: The length of a vector.
    """

    def __init__(self, dimensions: int = 256) -> None:
        """Create an embedder.

        Raises:
            InvalidInput: `dimensions` is below 8.
        """
        if dimensions < _LEAST_DIMENSIONS:
            raise InvalidInput(f"dimensions is {dimensions!r}, but must be at least {_LEAST_DIMENSIONS}.")
        self.dimensions = dimensions

    @property
    def name(self) -> str:
        """The name."""
        return f"hashing-{self.dimensions}"

    async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
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


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage.

    Attributes:
        handle: The entry.
        text: Its text.
        tags: Additional words for finding it.
        at: When it was inserted, in seconds since 1970-01-01 UTC.
        by: Who inserted it, or empty.
        score: Its similarity to the query, -1 to 1; 0 without a query.
        vector: The name of the embedder that read it, and its vector, encoded.
    """

    handle: Handle
    text: str
    tags: tuple[str, ...] = ()
    at: float = 0.0
    by: str = ""
    score: float = 0.0
    vector: tuple[str, str] = field(default=("", ""), repr=False, compare=False)


class ArchivalMemory:
    """The passages in a dialog.

    A passage is an entry with a text and a vector, so forks, copies and erasures treat it like every entry. After a change of the embedder, old
    passages are embedded again when searched.
    """

    def __init__(self, dialog: HasPlace, embedder: Embedder | None = None) -> None:
        """Open the archive in a dialog, preferably a separate one (`session.new_dialog("archive")`).

        Args:
            dialog: The dialog.
            embedder: Makes vectors. Default: a `HashingEmbedder`.
        """
        self._notes = Notebook(dialog, _KIND, "passage", _passage)
        self.store, self.dialog_id = dialog.store, dialog.dialog_id
        self.embedder: Embedder = HashingEmbedder() if embedder is None else embedder
        self._vectors: dict[Handle, Vector] = {}  # of passages that another embedder made

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self._notes.in_force())

    def passages(self, limit: int = 100, offset: int = 0, *, tags: Collection[str] = ()) -> tuple[Passage, ...]:
        """Return a page of passages, the newest first; only those with all of `tags`."""
        begin = max(offset, 0)
        return tuple(self._tagged(tags)[::-1][begin : begin + max(limit, 0)])

    def _tagged(self, tags: Collection[str]) -> list[Passage]:
        return [passage for passage in self._notes.in_force().values() if set(tags) <= set(passage.tags)]

    def insert(self, text: str, tags: Iterable[str] = (), *, by: str = "") -> Passage:
        """Insert a passage; the synchronous form of `ainsert`."""
        return run_sync(partial(self.ainsert, text, tags, by=by))

    async def ainsert(self, text: str, tags: Iterable[str] = (), *, by: str = "") -> Passage:
        """Insert a passage.

        Raises:
            InvalidInput: It is empty or has more than 20,000 characters, has too many or too long tags, or the embedder returned no vector.
        """
        said, marks = clean_text(text, "text", []), tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        if not said.strip() or len(said) > LONGEST:
            raise InvalidInput(
                f"A passage has 1 to {LONGEST:,} characters, not {len(said):,}.", hint="Split it into several passages."
            )
        if len(marks) > MOST_TAGS or any(len(mark) > LONGEST_TAG for mark in marks):
            raise InvalidInput(f"A passage has at most {MOST_TAGS} tags of at most {LONGEST_TAG} characters.")
        (vector,) = await _embedded(self.embedder, [said])
        data: Data = {
            "text": said,
            "tags": list(marks),
            "by": by,
            "embedder": self.embedder.name,
            "vector": b64encode(vector.tobytes()).decode(),
        }
        return self._notes.write(lambda _: data)

    def delete(self, handle: Handle | str) -> Handle:
        """Remove a passage; its text stays in the log until it is erased there.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The passage does not exist.
        """
        wanted = Handle.parse(handle) if isinstance(handle, str) else handle
        return self._notes.delete(str(wanted._replace(block=None)), "passage")

    def search(
        self, query: str, limit: int = 10, offset: int = 0, *, tags: Collection[str] = ()
    ) -> tuple[Passage, ...]:
        """Find passages; the synchronous form of `asearch`."""
        return run_sync(partial(self.asearch, query, limit, offset, tags=tags))

    async def asearch(
        self, query: str, limit: int = 10, offset: int = 0, *, tags: Collection[str] = ()
    ) -> tuple[Passage, ...]:
        """Return a page of the passages most similar to a text, the most similar first; equals by age.

        Args:
            query: The text.
            limit: The maximum number of passages.
            offset: The number of passages to skip.
            tags: Tags, all of which a passage must have.

        Raises:
            InvalidInput: The text is longer than a passage can be.
        """
        if len(query) > LONGEST:
            raise InvalidInput(f"The query has {len(query):,} characters; the maximum is {LONGEST:,}.")
        passages = self._tagged(tags)  # tags first: only these need vectors
        begin, count = max(offset, 0), max(limit, 0)
        if not passages or not query.strip() or not count:
            return ()
        (wanted,) = await _embedded(self.embedder, [clean_text(query, "query", [])])
        vectors = await self._vectors_of(passages)
        scores = [math.fsum(map(mul, wanted, vector)) for vector in vectors]
        best = nlargest(begin + count, range(len(passages)), key=lambda index: (scores[index], -index))[begin:]
        return tuple(replace(passages[index], score=scores[index]) for index in best)

    async def _vectors_of(self, passages: Sequence[Passage]) -> list[Vector]:
        known = [self._recorded(passage) or self._vectors.get(passage.handle) for passage in passages]
        missing = [passage for passage, vector in zip(passages, known, strict=True) if vector is None]
        for begin in range(0, len(missing), _BATCH):
            part = missing[begin : begin + _BATCH]
            made = await _embedded(self.embedder, [passage.text for passage in part])
            self._vectors.update(zip((passage.handle for passage in part), made, strict=True))
        return [vector or self._vectors[passage.handle] for passage, vector in zip(passages, known, strict=True)]

    def _recorded(self, passage: Passage) -> Vector | None:
        """Return the vector recorded with a passage; None if another embedder made it, or it cannot be read."""
        name, encoded = passage.vector
        vector = array("f")
        try:
            vector.frombytes(b64decode(encoded, validate=True))
        except ValueError:
            return None
        return vector if name == self.embedder.name and len(vector) == self.embedder.dimensions else None


def _passage(note: Note) -> Passage:
    data = note.data
    if not isinstance(data.get("text"), str):
        raise TypeError(f"{note.handle} has no passage.")
    tags, vector = tuple(map(str, data.get("tags", ()))), (str(data.get("embedder")), str(data.get("vector", "")))
    return Passage(note.handle, data["text"], tags, note.at, str(data.get("by", "")), vector=vector)


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """Return unit vectors of texts. Exceptions of the embedder are not caught.

    Raises:
        InvalidInput: The embedder returned another number of vectors, or a vector without `dimensions` finite numbers.
    """
    answer: object = await embedder(texts)
    try:
        vectors = [list(map(float, vector)) for vector in answer]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"The embedder {embedder.name!r} returned no vectors: {error}.") from error
    sizes = {len(vector) for vector in vectors} - {embedder.dimensions}
    if len(vectors) != len(texts) or sizes or not all(math.isfinite(number) for vector in vectors for number in vector):
        raise InvalidInput(
            f"The embedder {embedder.name!r} returned {len(vectors)} vectors for {len(texts)} texts, or one without "
            f"{embedder.dimensions} finite numbers."
        )
    return [_unit(vector) for vector in vectors]


def _unit(vector: list[float]) -> Vector:
    largest = max(map(abs, vector), default=0.0) or 1.0
    scaled = [one / largest for one in vector]  # squares of huge numbers are infinite
    length = math.sqrt(math.fsum(one * one for one in scaled)) or 1.0
    return array("f", [one / length for one in scaled])
