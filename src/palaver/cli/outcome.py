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

__all__ = ["EXIT_HELP", "Exit", "as_data", "exit_code", "tell"]


class Exit(IntEnum):
    """The exit codes. The help of the command line lists them."""

    OK = 0
    """Done."""
    FOUND = 1
    """A fault was found, some of several files could not be imported, or something is still pending."""
    USAGE = 2
    """The arguments are wrong."""
    INPUT = 3
    """What was passed cannot be read or is not allowed."""
    MISSING = 4
    """What was named does not exist, or the name fits several."""
    STORE = 5
    """The store cannot be opened, read or written."""
    INFEASIBLE = 6
    """What must be sent is larger than the budget."""
    CONFLICT = 7
    """Another writer was first."""
    OUTPUT = 8
    """The result cannot be written."""
    DEFECT = 70
    """A defect of palaver: please report it."""
    INTERRUPTED = 130
    """Ctrl-C."""
    READER = 141
    """The reader of the output went away before its end, as `head` does; the number is the one that shells use for SIGPIPE."""


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
    "Exit codes: 0 done; 1 faults found, or some files failed; 2 wrong arguments; 3 unreadable input; 4 not found or ambiguous; "
    "5 store trouble; 6 budget too small; 7 another writer was first; 8 output cannot be written; 70 a defect of palaver; "
    "130 interrupted; 141 the reader of the output went away"
)


def exit_code(error: PalaverError) -> Exit:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), Exit.INPUT)


def as_data(error: PalaverError) -> dict[str, object]:
    """Return an error as JSON values. An infeasible budget is an answer: its breakdown stands by itself."""
    if isinstance(error, InfeasibleBudget):
        return {"infeasible": {"budget": error.budget, "needed": error.needed, "breakdown": dict(error.breakdown)}}
    told: dict[str, object] = {"kind": type(error).__name__, "message": _text(str(error)), "hint": error.hint}
    if isinstance(error, Ambiguous):
        told["candidates"] = list(error.candidates)
    return {"error": told}


def tell(error: PalaverError, *, json: bool) -> Exit:
    """Print an error, as JSON to standard output or in words to standard error, and return its exit code."""
    if json:
        print_json(as_data(error))
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


def _text(words: str) -> str:
    """Replace what no JSON can hold: the name of a file need not be text."""
    return words.encode(errors="replace").decode()
