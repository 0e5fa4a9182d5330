"""Conversations of some length, for the laws of policies, as hypothesis makes them."""

from __future__ import annotations

from hypothesis import strategies as st

from palaver.testing.conversations import EVALUATED, TEMPLATES, Step, picture, played, text_of_size

__all__ = ["EVALUATED", "TEMPLATES", "Step", "conversations", "picture", "played", "text_of_size"]

_SIZES = st.sampled_from([0, 20, 200, 900, 4_000, 12_000])
_STEPS = st.builds(
    Step,
    kind=st.sampled_from(["ask", "work", "work", "work", "say", "note", "wait", "show", "look"]),
    sizes=st.lists(_SIZES, min_size=1, max_size=3).map(tuple),
    pinned=st.sampled_from([False] * 9 + [True]),
)


def conversations(*, least: int = 1, most: int = 24) -> st.SearchStrategy[list[Step]]:
    """Any conversation of so many turns."""
    return st.lists(_STEPS, min_size=least, max_size=most)
