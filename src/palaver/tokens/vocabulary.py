"""The words that configurations use for budgets."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from palaver.errors import InvalidInput

__all__ = ["BUDGET_KEYS", "read_words"]

_WORDS: Mapping[str, tuple[str, ...]] = {
    # palaver's own word, and after it everybody else's for the same thing
    "model": ("model_name",),
    "max_tokens": ("window", "context_window"),
    "reserve": ("max_output", "max_output_tokens", "output_reserve"),
    "safety_buffer": (),
    "keep_recent": ("keep_recent_tokens", "max_preserved_tokens"),
    "keep_last": ("preserve_last_messages",),
    "max_token_context_length": (),
    "context_usage_ratio": (),
    "reserve_tokens": (),
    "buffer": ("reserved",),
    "target_tokens": ("target",),
    "max_bytes": (),
    "max_media": ("max_images",),
}

BUDGET_KEYS = frozenset(_WORDS) | {word for others in _WORDS.values() for word in others}
"""Every key a configuration may have, in snake case; camel case and upper case are read as the same."""

_MEANING = {word: own for own, others in _WORDS.items() for word in (own, *others)}


def read_words(config: Mapping[str, object]) -> dict[str, object]:
    """Translate a configuration into palaver's own words.

    A value of None counts as absent.

    Args:
        config: Keys in any of the vocabularies, also mixed; ``reserveTokens`` and ``SAFETY_BUFFER`` are read as well.

    Returns:
        The values by palaver's own words.

    Raises:
        InvalidInput: A key is unknown (the error names the closest ones), or two keys for one thing have different values.
    """
    said: dict[str, object] = {}
    for key, value in config.items():
        meaning = _MEANING.get(_snake(key))
        if meaning is None:
            close = difflib.get_close_matches(_snake(key), sorted(BUDGET_KEYS), n=3, cutoff=0.5)
            known = ", ".join(close or sorted(BUDGET_KEYS))
            raise InvalidInput(
                f"{key!r} is not a word for a budget.", hint=f"{'Close' if close else 'Known'}: {known}."
            )
        if value is None:
            continue
        if said.setdefault(meaning, value) != value:
            raise InvalidInput(f"{key!r} is {value!r}, and another word for the same is {said[meaning]!r}.")
    return said


def _snake(key: str) -> str:
    """Write a key in snake case."""
    if key.isupper():
        return key.lower()
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).replace("-", "_").lstrip("_")
