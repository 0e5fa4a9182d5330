"""Archival memory: found by what it is about, the same with every index, and gone when it is taken out."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import ArchivalMemory, Dialog, HashingEmbedder, MemoryFull, NotFound
from palaver.errors import InvalidInput
from palaver.session.memory.embedding import embedded
from palaver.store import vectors as finding
from palaver.store.sqlite.vectors import near
from palaver.store.vectors import exact, nearest, stored_vector

FACTS = [
    "The user likes green tea.",
    "The database is PostgreSQL 16.",
    "Deploys happen on Tuesday.",
    "Tea is kept in the kitchen.",
]


def archive() -> ArchivalMemory:
    """Give an archive with a few passages."""
    made = ArchivalMemory(Dialog(owner="archive"))
    for number, fact in enumerate(FACTS):
        made.insert(fact, ["even"] if number % 2 == 0 else ["odd"], by="ada")
    return made


def test_the_likest_come_first_a_page_at_a_time() -> None:
    """Pages go on where the last one ended, without gap and without anything twice; scores fall."""
    made = archive()
    every = made.search("tea for the user", 10)
    assert every[0].text == FACTS[0]
    assert len(every) == len(FACTS)
    assert all(one.score >= other.score for one, other in pairwise(every))
    pages = [made.search("tea for the user", 2, offset) for offset in (0, 2, 4)]
    assert [one for page in pages for one in page] == list(every)
    assert [one.text for one in made.search("tea", tags=["odd"])] == [FACTS[3], FACTS[1]]
    assert made.search("   ") == made.search("tea", 0) == ()
    assert [one.text for one in made.passages(2, 1)] == [FACTS[2], FACTS[1]]


def test_what_is_taken_out_is_not_found_and_stays_in_the_log() -> None:
    """By its handle, whole or as it is printed; a handle of something else is none."""
    made = archive()
    first = made.search("green tea", 1)[0]
    made.delete(str(first.handle))
    assert FACTS[0] not in [one.text for one in made.search("green tea", 10)]
    assert len(made) == 3
    with pytest.raises(NotFound):
        made.delete(first.handle)
    assert b"green tea" in made.store.body(first.handle.dialog, first.handle.seq)


def test_another_reader_and_another_embedder_find_the_same_passages() -> None:
    """What was recorded is read, not made anew; with another embedder the old passages are embedded again."""
    asked: list[int] = []

    class Counted(HashingEmbedder):
        async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            asked.append(len(texts))
            return await super().__call__(texts)

    made = archive()
    again = ArchivalMemory(made, Counted())
    assert again.search("green tea", 4) == made.search("green tea", 4)
    assert asked == [1]
    other = ArchivalMemory(made, Counted(64))
    assert other.search("green tea", 1)[0].text == FACTS[0]
    assert asked == [1, 1, 4]
    other.search("green tea", 1)
    assert asked == [1, 1, 4, 1]


def test_forks_have_what_was_put_in_before() -> None:
    """An archive in an agent's own dialog forks with it."""
    dialog = Dialog(owner="a")
    mine = ArchivalMemory(dialog)
    mine.insert("before")
    theirs = ArchivalMemory(dialog.reload().fork())
    mine.insert("after")
    assert [one.text for one in theirs.passages()] == ["before"]


@pytest.mark.parametrize(
    "vector",
    [
        [[1.0, 2.0]],
        [[math.nan] * 8],
        [[math.inf] * 8],
        [],
        [[0.0] * 8] * 2,
        None,
        3,
        [3],
        ["text"],
        "text",
        [[10**400] * 8],
    ],
)
def test_an_embedder_is_held_to_what_it_promises(vector: Any) -> None:  # noqa: ANN401 - whatever it gives
    """Too few numbers, what is none, another number of vectors, no vectors: a typed error, and nothing is written."""

    class Wrong:
        name, dimensions = "wrong", 8

        async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            del texts
            given: Sequence[Sequence[float]] = vector
            return given

    made = ArchivalMemory(Dialog(owner="a"), Wrong())
    with pytest.raises(InvalidInput):
        made.insert("x")
    assert len(made) == 0


def test_an_embedder_that_is_down_writes_nothing() -> None:
    """Its error goes to the caller."""

    class Down:
        name, dimensions = "down", 8

        async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            raise ConnectionError(len(texts))

    made = ArchivalMemory(Dialog(owner="a"), Down())
    with pytest.raises(ConnectionError):
        made.insert("x")
    assert len(made) == 0


def test_passages_have_a_size_and_say_something() -> None:
    """Nothing, or too much: refused before anything is embedded."""
    made = archive()
    with pytest.raises(InvalidInput):
        made.insert("  ")
    with pytest.raises(MemoryFull):
        made.insert("x" * 20_001)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_vectors_have_the_length_one_and_are_the_same_for_the_same_text(texts: list[str]) -> None:
    """Whatever the text: every number is one, and the length is 1, or 0 where there is no word."""
    first = anyio.run(embedded, HashingEmbedder(16), texts)
    assert first == anyio.run(embedded, HashingEmbedder(16), texts)
    for vector in first:
        length = math.fsum(one * one for one in vector)
        assert length == 0 or math.isclose(length, 1.0)


def test_the_extension_finds_what_looking_at_each_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """sqlite-vec in SQLite as apsw brings it: the same passages in the same order as without it."""
    pytest.importorskip("sqlite_vec")
    texts = [f"passage {number} about {word}" for number in range(60) for word in ("tea", "rain", "trains", "stars")]
    made = [stored_vector(one) for one in anyio.run(embedded, HashingEmbedder(64), [*texts, "stars and trains"])]
    every, wanted = made[:-1], made[-1]
    assert near(every, wanted, 5) is not None
    monkeypatch.setattr(finding, "_WORTH", 1)
    for limit in (1, 7, 30):
        assert nearest(every, wanted, limit) == exact(every, wanted, limit)


def test_where_the_extension_cannot_be_used_each_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed, or of no use: the result is the same."""
    every = [stored_vector([1.0, 0.0]), stored_vector([0.0, 1.0]), stored_vector([0.6, 0.8])]
    monkeypatch.setattr(finding, "_WORTH", 1)
    monkeypatch.setattr(finding, "near", lambda *_: None)
    assert nearest(every, stored_vector([0.0, 1.0]), 2) == [1, 2]
    assert nearest(every, stored_vector([0.0, 1.0]), 0) == []
