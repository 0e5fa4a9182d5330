"""Artifact trail: whether the view still says which files were read and changed.

Source: Factory.ai, evaluation of context compression (December 2025): the dimension in which every compaction was worst, 2.19 to 2.45 of 5.
There a judge scores answers to probes; here the files are known from the tool calls, so that no judge is needed.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

__all__ = ["artifact_scores"]


def artifact_scores(touched: AbstractSet[str], named: AbstractSet[str]) -> tuple[float, float, float] | None:
    """Give precision, recall and F1 of the files that a view names as touched; None before anything was touched.

    Args:
        touched: The files that tool calls read or changed so far.
        named: The files that shown calls, and derived texts such as records, say were touched.
    """
    if not touched:
        return None
    right = len(touched & named)
    precision = right / len(named) if named else 0.0
    recall = right / len(touched)
    return precision, recall, 2 * right / (len(touched) + len(named))
