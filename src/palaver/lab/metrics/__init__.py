"""The metrics, each a small pure function with its definition and its source."""

from palaver.lab.metrics.cache import hit_share, prefix_stability, stable_tokens, write_share
from palaver.lab.metrics.front import Worth, beats, front
from palaver.lab.metrics.intervals import Interval, paired_interval, paired_share, ratio_interval
from palaver.lab.metrics.money import bill, recall_charge, regret
from palaver.lab.metrics.passages import passages
from palaver.lab.metrics.references import distance_of, future_references, identifiers, in_arguments, occurs

__all__ = [
    "Interval",
    "Worth",
    "beats",
    "bill",
    "distance_of",
    "front",
    "future_references",
    "hit_share",
    "identifiers",
    "in_arguments",
    "occurs",
    "paired_interval",
    "paired_share",
    "passages",
    "prefix_stability",
    "ratio_interval",
    "recall_charge",
    "regret",
    "stable_tokens",
    "write_share",
]
