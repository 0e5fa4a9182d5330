"""The view: what a model is to see, computed from the log by the fold and made smaller by plans."""

from palaver.view.apply import Applied, apply, inserted, merged
from palaver.view.checkpoint import checkpoint
from palaver.view.fold import RULES, Folding, fold
from palaver.view.hearing import Hearing, speaker_at
from palaver.view.lines import header_at, held
from palaver.view.manifest import Manifest, changed, manifest, patched, restored, rules_of
from palaver.view.plan import Drop, Insert, Plan, Remove, Rewrite
from palaver.view.protocol import call_in, dressed, outside, result_in, shown
from palaver.view.reasons import Reason
from palaver.view.view import CARRIED, Block, Exchange, Omission, Stated, Turn, View

__all__ = [
    "CARRIED",
    "RULES",
    "Applied",
    "Block",
    "Drop",
    "Exchange",
    "Folding",
    "Hearing",
    "Insert",
    "Manifest",
    "Omission",
    "Plan",
    "Reason",
    "Remove",
    "Rewrite",
    "Stated",
    "Turn",
    "View",
    "apply",
    "call_in",
    "changed",
    "checkpoint",
    "dressed",
    "fold",
    "header_at",
    "held",
    "inserted",
    "manifest",
    "merged",
    "outside",
    "patched",
    "restored",
    "result_in",
    "rules_of",
    "shown",
    "speaker_at",
]
