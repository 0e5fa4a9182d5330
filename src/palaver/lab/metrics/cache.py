"""The provider's cache: what of a request it has, and how stable prefixes are.

The model is longest-prefix caching at block boundaries with one entry for each conversation: what a request begins with that the request
before it in the same dialog had, is found, unless the cache has expired or the prefix is shorter than the provider caches. Real caches look
back a bounded number of blocks and route on a best-effort basis, so hits here are an upper bound ("Don't Break the Cache", arXiv 2601.06007).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["hit_share", "prefix_stability", "stable_tokens", "write_share"]


def stable_tokens(before: Sequence[tuple[Hashable, int]], after: Sequence[tuple[Hashable, int]]) -> int:
    """Give the tokens of the longest common prefix of two requests, in whole units.

    Args:
        before: The units of the earlier request, in order: what each says, and its tokens.
        after: Those of the later one.
    """
    stable = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        stable += other[1]
    return stable


def prefix_stability(stable: int, before: int) -> float | None:
    """Give the share of a request with which the next one begins: 1 when it only grew. None where there was nothing.

    Source: yoagent's prefix_cache_harness (longest common prefix of consecutive requests over the length of the first).
    """
    return stable / before if before else None


def hit_share(read: int, written: int) -> float | None:
    """Give the share of the input that was read from the cache."""
    return read / (read + written) if read + written else None


def write_share(read: int, written: int) -> float | None:
    """Give the share of the input that was read anew, and written to the cache."""
    return written / (read + written) if read + written else None
