"""Ids as chance draws them seldom."""

import os
from itertools import islice
from pathlib import Path

import pytest

from palaver.store.records import SHORT_DIGITS
from tests import chance

HERE = Path(__file__)


def drawn(name: str, test: str = "") -> list[str]:
    """Give forty ids."""
    return [one.hex() for one in islice(chance.CHANCES[name](HERE, test), 40)]


@pytest.mark.parametrize("name", sorted(chance.CHANCES))
def test_they_are_ids_like_others(name: str) -> None:
    """32 digits, and no two of one session that a handle could not tell apart."""
    found = drawn(name)
    assert {len(one) for one in found} == {32}
    assert len({one[:SHORT_DIGITS] for one in found}) == len(found)


def test_what_a_test_says_is_in_them() -> None:
    """Its own literals are in each id, and soon also where a handle shows it; those of others in its module come soon."""
    found = drawn("literals", "test_what_a_test_says_is_in_them")
    assert all("4711a" in one[SHORT_DIGITS:] for one in found)
    assert any("4711a" in one[:SHORT_DIGITS] for one in found)
    assert any("4711a" in one for one in drawn("literals"))


def test_they_are_dear_or_cheap() -> None:
    """Forty of them cost a model more, or less, than forty as chance gives them."""
    dear, cheap = (
        sum(chance.tokens(bytes.fromhex(one)) for one in drawn(f"{name}-tokens")) for name in ("most", "fewest")
    )
    usual = sum(chance.tokens(os.urandom(16)) for _ in range(40))
    assert cheap < usual < dear
