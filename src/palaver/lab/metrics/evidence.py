"""Evidence retention: whether what answers a question asked at the end is still in the view, and whether a search finds it.

Source: LongMemEval (arXiv 2410.10813): turns marked `has_answer`, sessions named in `answer_session_ids`; recall and NDCG with the formulas of
its src/retrieval/eval_utils.py: `recall_any` and `recall_all` of the first k, and NDCG with a gain of 1 for each relevant one, where the first
two places are not discounted differently (gain / log2 of the place, from the second place on). As there, a question that has nothing relevant has
a `recall_all` of 1 and all else 0: such questions (its abstentions) are left out of means, as its src/evaluation/print_retrieval_metrics.py does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

__all__ = ["ndcg_at", "recall_all_at", "recall_any_at", "retained"]


def recall_any_at(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Give 1 if one of the first k that were found is relevant, else 0."""
    return float(any(one in set(found[:k]) for one in relevant))


def recall_all_at(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Give 1 if all that is relevant is among the first k that were found, else 0."""
    return float(all(one in set(found[:k]) for one in relevant))


def ndcg_at(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Give the gain of the first k that were found, discounted by their places, over the gain of the best order.

    The gain of place 1 counts whole, that of place i from 2 on is divided by log2(i): LongMemEval's `dcg`.
    """
    best = _gain([1.0] * min(len(set(relevant)), k))
    if not best:
        return 0.0
    return _gain([float(one in relevant) for one in found[:k]]) / best


def _gain(gains: Sequence[float]) -> float:
    return sum(gain if place == 1 else gain / math.log2(place) for place, gain in enumerate(gains, start=1))


def retained(evidence: Collection[str], shown: Collection[str]) -> float | None:
    """Give the share of the evidence that a view shows word for word; None where there is none.

    Args:
        evidence: The turns that hold the answer.
        shown: The turns that the view shows as they were said.
    """
    return len(set(evidence) & set(shown)) / len(set(evidence)) if evidence else None
