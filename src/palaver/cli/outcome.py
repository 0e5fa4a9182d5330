"""How a command ends: the exit codes, and errors in words or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from palaver.cli.terminal import complain, print_json
from palaver.errors import (
    Ambiguous,
    Conflict,
    Erased,
    InfeasibleBudget,
    InvalidRequest,
    NotFound,
    NotReproducible,
    PalaverError,
    StoreError,
)


class Exit(IntEnum):
    """The exit codes; `EXIT_HELP` says what each means."""

    OK = 0
    FOUND = 1
    USAGE = 2
    INPUT = 3
    MISSING = 4
    STORE = 5
    INFEASIBLE = 6
    CONFLICT = 7
    OUTPUT = 8
    DEFECT = 70
    INTERRUPTED = 130
    READER = 141  # what shells use for SIGPIPE


_CODES: Mapping[type[PalaverError], Exit] = MappingProxyType(
    {
        InfeasibleBudget: Exit.INFEASIBLE,
        InvalidRequest: Exit.DEFECT,
        NotFound: Exit.MISSING,
        Erased: Exit.MISSING,
        NotReproducible: Exit.MISSING,
        Ambiguous: Exit.MISSING,
        Conflict: Exit.CONFLICT,
        StoreError: Exit.STORE,
    }
)

EXIT_HELP = (
    "Exit codes: 0 done; 1 faults or secrets found, or some files failed; 2 wrong arguments; 3 input that cannot be used; 4 not found or ambiguous; "
    "5 store trouble; 6 budget too small; 7 another writer was first; 8 output cannot be written; 70 a defect of palaver; "
    "130 interrupted; 141 the reader of the output went away"
)


def exit_code(error: PalaverError) -> Exit:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), Exit.INPUT)


def tell(error: PalaverError, *, json: bool) -> Exit:
    """Print an error, as JSON to standard output or in words to standard error, and return its exit code."""
    if json:
        print_json(_row(error))
        return exit_code(error)
    if isinstance(error, InfeasibleBudget):
        complain(f"palaver: {error.needed:,} tokens must be sent, and the budget is {error.budget:,}:", "red")
        for part, tokens in error.breakdown.items():
            complain(f"  {tokens:>10,}  {part}")
        complain(error.hint)
        return exit_code(error)
    lists = " `palaver sessions` lists them." if isinstance(error, NotFound) and error.what == "session" else ""
    complain(f"palaver: {error}{lists}", "red")
    return exit_code(error)


def _row(error: PalaverError) -> dict[str, object]:
    """Return an error as JSON values. An infeasible budget is an answer, not an error: only its breakdown is returned."""
    if isinstance(error, InfeasibleBudget):
        return {"infeasible": {"budget": error.budget, "needed": error.needed, "breakdown": dict(error.breakdown)}}
    # the name of a file need not be text, which JSON cannot express
    message = str(error).encode(errors="replace").decode()
    told: dict[str, object] = {"kind": type(error).__name__, "message": message, "hint": error.hint}
    if isinstance(error, Ambiguous):
        told["candidates"] = list(error.candidates)
    return {"error": told}
