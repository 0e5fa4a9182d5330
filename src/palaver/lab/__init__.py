"""The lab: replay recorded sessions under policies, without a model, to measure what each would have cost and lost."""

from palaver.lab.conformance import broken_laws
from palaver.lab.entrants import Entrant, Settings, entrant, short_names
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import (
    PARTS,
    SCHEMA,
    CallRow,
    LabRun,
    PolicyRow,
    Problem,
    ReplayRow,
    Score,
    SessionRow,
    Table,
)
from palaver.lab.running import LabProgress, run_lab
from palaver.lab.scores import COMPARED, DEFAULT, EVIDENCE_FRONT, FRONT, SCORES
from palaver.lab.showing import ShownCall, command, shown
from palaver.lab.stand_ins import STAND_INS
from palaver.lab.writing import Results

__all__ = [
    "COMPARED",
    "DEFAULT",
    "EVIDENCE_FRONT",
    "FRONT",
    "PARTS",
    "SCHEMA",
    "SCORES",
    "STAND_INS",
    "CallRow",
    "Entrant",
    "LabProgress",
    "LabRun",
    "PolicyRow",
    "Problem",
    "ReplayRow",
    "Results",
    "Score",
    "SessionRow",
    "Settings",
    "Sheet",
    "ShownCall",
    "Table",
    "broken_laws",
    "command",
    "entrant",
    "run_lab",
    "sheet",
    "short_names",
    "shown",
]
