"""Hypothesis strategies for logs: messages that need not make sense, and conversations of some length."""

from __future__ import annotations

from hypothesis import strategies as st

from palaver.messages import Message
from palaver.testing.conversations import ConversationStep
from palaver.testing.logs import model, result, system, user

_IDS = st.sampled_from(["a", "b", "c"])
_WORDS = st.sampled_from(["", " ", "yes", "no", "more"])
_MESSAGES = st.one_of(
    st.builds(user, _WORDS),
    st.builds(system, _WORDS),
    st.builds(result, _IDS, _WORDS),
    st.builds(
        lambda text, calls, response: model(text, *calls, response=response),
        _WORDS,
        st.lists(_IDS, max_size=3),
        st.sampled_from([None, "r1", "r2"]),
    ),
)
_SIZES = (0, 20, 200, 900, 4_000, 12_000)


def _steps(longest: int) -> st.SearchStrategy[ConversationStep]:
    sizes = st.sampled_from([size for size in _SIZES if size <= longest])
    return st.builds(
        ConversationStep,
        kind=st.sampled_from(["ask", "work", "work", "work", "say", "note", "wait", "show", "look"]),
        sizes=st.lists(sizes, min_size=1, max_size=3).map(tuple),
        pinned=st.sampled_from([False] * 9 + [True]),
    )


def sayings() -> st.SearchStrategy[list[Message]]:
    """Return any messages, sensible or not, with response ids that repeat in other turns."""
    return st.lists(_MESSAGES, max_size=10)


def conversations(
    *, least: int = 1, most: int = 24, longest: int = _SIZES[-1]
) -> st.SearchStrategy[list[ConversationStep]]:
    """Return any conversation of so many steps, with texts of at most `longest` characters."""
    return st.lists(_steps(longest), min_size=least, max_size=most)
