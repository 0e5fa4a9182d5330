"""Identities and the clock."""

import string

from hypothesis import given
from hypothesis import strategies as st

from palaver import ids

HEX = set(string.hexdigits.lower())


def test_new_ids_are_random_and_unique() -> None:
    """C9, R60: 32 hexadecimal digits, as random as a UUID, that reveal neither time nor place."""
    made: list[str] = [make() for make in (ids.new_session_id, ids.new_message_id) for _ in range(200)]
    made += [ids.new_dialog_id(made[0]) for _ in range(200)]
    assert len(set(made)) == len(made)
    assert all(len(one) == 32 and set(one) <= HEX for one in made)


def test_a_dialogs_id_ends_like_its_sessions() -> None:
    """DESIGN 6.7: a store that is split finds the database of a dialog without a look-up."""
    session = ids.new_session_id()
    assert ids.new_dialog_id(session)[-4:] == ids.derive_dialog_id(session, "part")[-4:] == session[-4:]


TEXTS = st.lists(st.text(st.characters(exclude_categories=())), max_size=4)


@given(TEXTS, TEXTS)
def test_a_derived_id_depends_on_nothing_but_its_parts(one: list[str], other: list[str]) -> None:
    """Equal parts give the same 32 digits, even parts with lone surrogates, others do not: ("ab", "c") is not ("a", "bc")."""
    derived = ids.derive_id(*one)
    assert derived == ids.derive_id(*one)
    assert len(derived) == 32
    assert set(derived) <= HEX
    assert (derived == ids.derive_id(*other)) == (one == other)


def test_derived_ids_never_change() -> None:
    """Ids derived by an earlier version are found again: these are golden."""
    assert ids.derive_id("claude_code", "session", "7") == "2a26318ae01601965b0512c0157b5cb1"
    assert ids.derive_id() == "e3b0c44298fc1c149afbf4c8996fb924"  # SHA-256 of nothing, its first half
