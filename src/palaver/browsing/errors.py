"""Errors as rows: what `--json` prints and the explorer serves where something cannot be done."""

from __future__ import annotations

from palaver.errors import Ambiguous, InfeasibleBudget, PalaverError

__all__ = ["error_row"]


def error_row(error: PalaverError) -> dict[str, object]:
    """Return an error as JSON values. An infeasible budget is an answer, not an error: only its breakdown is returned."""
    if isinstance(error, InfeasibleBudget):
        return {"infeasible": {"budget": error.budget, "needed": error.needed, "breakdown": dict(error.breakdown)}}
    # the name of a file need not be text, which JSON cannot express
    message = str(error).encode(errors="replace").decode()
    told: dict[str, object] = {"kind": type(error).__name__, "message": message, "hint": error.hint}
    if isinstance(error, Ambiguous):
        told["candidates"] = list(error.candidates)
    return {"error": told}
