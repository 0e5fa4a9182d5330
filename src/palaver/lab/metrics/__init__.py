"""The metrics, each a small pure function with its definition and its source."""

from palaver.lab.metrics.front import Worth, beats, front
from palaver.lab.metrics.intervals import Interval, paired_interval, paired_share, ratio_interval
from palaver.lab.metrics.money import recall_charge
from palaver.lab.metrics.passages import passages
from palaver.lab.metrics.references import identifiers, in_arguments

__all__ = [
    "Interval",
    "Worth",
    "beats",
    "front",
    "identifiers",
    "in_arguments",
    "paired_interval",
    "paired_share",
    "passages",
    "ratio_interval",
    "recall_charge",
]
