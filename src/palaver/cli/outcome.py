"""How a command ends: the exit codes, and errors in words or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from json import dumps
from types import MappingProxyType

from palaver.cli.surroundings import errors, write_line
from palaver.errors import (
    Ambiguous,
    Conflict,
    Erased,
    InfeasibleBudget,
    InvalidInput,
    InvalidRequest,
    MemoryConflict,
    NotFound,
    NotReproducible,
    PalaverError,
    StoreError,
    UnknownSession,
)


class Exit(IntEnum):
    """The exit codes. The help of the command line lists them."""

    OK = 0
    """Done."""
    FOUND = 1
    """The doctor found a fault, or some of several files could not be imported."""
    USAGE = 2
    """The words of the command are wrong."""
    INPUT = 3
    """What was handed over cannot be read or is not allowed."""
    MISSING = 4
    """What was named does not exist, or the name fits several."""
    STORE = 5
    """The store cannot be opened, read or written."""
    INFEASIBLE = 6
    """What must be sent is larger than the budget."""
    CONFLICT = 7
    """Another writer was first."""
    OUTPUT = 8
    """The result cannot be written where it was to go."""
    DEFECT = 70
    """palaver contradicts itself: please report it."""
    INTERRUPTED = 130
    """Ctrl-C."""
    READER = 141
    """Whoever read the output went away before its end, as `head` does; the number is the one that shells give for SIGPIPE."""


_CODES: Mapping[type[PalaverError], Exit] = MappingProxyType(
    {
        InfeasibleBudget: Exit.INFEASIBLE,
        InvalidRequest: Exit.DEFECT,
        NotFound: Exit.MISSING,
        Erased: Exit.MISSING,
        NotReproducible: Exit.MISSING,
        Ambiguous: Exit.MISSING,
        Conflict: Exit.CONFLICT,
        MemoryConflict: Exit.CONFLICT,
        StoreError: Exit.STORE,
        InvalidInput: Exit.INPUT,
    }
)

EXIT_HELP = "Exit codes: " + "; ".join(
    f"{int(code)} {text}"
    for code, text in {
        Exit.OK: "done",
        Exit.FOUND: "faults found, or some files failed",
        Exit.USAGE: "wrong words",
        Exit.INPUT: "unreadable input",
        Exit.MISSING: "not found or ambiguous",
        Exit.STORE: "store trouble",
        Exit.INFEASIBLE: "budget too small",
        Exit.CONFLICT: "another writer was first",
        Exit.OUTPUT: "output cannot be written",
        Exit.DEFECT: "a defect of palaver",
        Exit.INTERRUPTED: "interrupted",
        Exit.READER: "the reader of the output went away",
    }.items()
)
"""One line for the help."""


def exit_code(error: PalaverError) -> Exit:
    """Give the exit code of an error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), Exit.INPUT)


def as_data(error: PalaverError) -> dict[str, object]:
    """Give an error as JSON values. An infeasible budget is an answer: its breakdown stands by itself."""
    if isinstance(error, InfeasibleBudget):
        return {"infeasible": {"budget": error.budget, "needed": error.needed, "breakdown": dict(error.breakdown)}}
    return {"error": {"kind": type(error).__name__, "message": str(error), "hint": error.hint}}


def tell(error: PalaverError, *, json: bool) -> Exit:
    """Print an error where it belongs and give the exit code: as JSON on standard output, in words on standard error."""
    if json:
        data = dumps(as_data(error), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        write_line(data.encode(errors="replace"))  # a file's name may hold what is no text
    else:
        console = errors()
        if isinstance(error, InfeasibleBudget):
            console.print(
                f"palaver: {error.needed:,} tokens must be sent, and the budget is {error.budget:,}:", style="red"
            )
            for part, tokens in error.breakdown.items():
                console.print(f"  {tokens:>10,}  {part}")
            console.print(error.hint)
        else:
            console.print(f"palaver: {error}{_where_names_are(error)}", style="red")
    return exit_code(error)


def _where_names_are(error: PalaverError) -> str:
    return " `palaver sessions` lists them." if isinstance(error, UnknownSession) else ""
