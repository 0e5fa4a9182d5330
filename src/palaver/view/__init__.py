"""The view: what a model sees, computed from the log by the fold and made smaller by plans."""

from palaver.view.blocks import DECIDED, Block, Reason, Turn
from palaver.view.checkpoint import checkpoint, header_at, held, in_force
from palaver.view.exchange import Exchange
from palaver.view.fold import Fold, fold, fold_messages, omitted, said_by_human
from palaver.view.manifest import CALL_VERSION, Manifest, changed, manifest, patched, renamed_call, restored, whole
from palaver.view.plan import Drop, Insert, Plan, Remove, Rewrite, apply
from palaver.view.view import Columns, EarlierSettings, Omission, View, load

__all__ = [
    "CALL_VERSION",
    "DECIDED",
    "Block",
    "Columns",
    "Drop",
    "EarlierSettings",
    "Exchange",
    "Fold",
    "Insert",
    "Manifest",
    "Omission",
    "Plan",
    "Reason",
    "Remove",
    "Rewrite",
    "Turn",
    "View",
    "apply",
    "changed",
    "checkpoint",
    "fold",
    "fold_messages",
    "header_at",
    "held",
    "in_force",
    "load",
    "manifest",
    "omitted",
    "patched",
    "renamed_call",
    "restored",
    "said_by_human",
    "whole",
]
