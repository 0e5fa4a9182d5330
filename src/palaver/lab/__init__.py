"""The lab: replay recorded sessions under policies, without a model, to measure what each would have cost and lost."""

from palaver.lab.entrants import Settings, entrant
from palaver.lab.prices import sheet
from palaver.lab.results import CallRow, GroupRow, LabRun, PolicyRow, Problem, ReplayRow, Score, SessionRow, Table
from palaver.lab.running import LabProgress, run_lab
from palaver.lab.scores import DEFAULT, SCORES, WEIGHTS
from palaver.lab.showing import ShownCall, shown
from palaver.lab.stand_ins import STAND_INS
from palaver.lab.writing import Results

__all__ = [
    "DEFAULT",
    "SCORES",
    "STAND_INS",
    "WEIGHTS",
    "CallRow",
    "GroupRow",
    "LabProgress",
    "LabRun",
    "PolicyRow",
    "Problem",
    "ReplayRow",
    "Results",
    "Score",
    "SessionRow",
    "Settings",
    "ShownCall",
    "Table",
    "entrant",
    "run_lab",
    "sheet",
    "shown",
]
