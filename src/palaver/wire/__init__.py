"""The wire: requests compiled for one API, and the rules its provider would refuse them by."""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.wire.compile import compile
    from palaver.wire.place import Breach, Violation
    from palaver.wire.request import (
        COMPILER,
        TRANSFORMED,
        Call,
        Memo,
        Request,
        broken_at,
        passed_on,
        units,
    )
    from palaver.wire.rules import validate
    from palaver.wire.script import Change, How, Report
    from palaver.wire.served import has_compaction
    from palaver.wire.table import API, Profile

__all__ = [
    "API",
    "COMPILER",
    "TRANSFORMED",
    "Breach",
    "Call",
    "Change",
    "How",
    "Memo",
    "Profile",
    "Report",
    "Request",
    "Violation",
    "broken_at",
    "compile",
    "has_compaction",
    "passed_on",
    "units",
    "validate",
]

open_door(
    __name__,
    {
        ".compile": "compile",
        ".place": "Breach Violation",
        ".request": "COMPILER TRANSFORMED Call Memo Request broken_at passed_on units",
        ".rules": "validate",
        ".script": "Change How Report",
        ".served": "has_compaction",
        ".table": "API Profile",
    },
)
