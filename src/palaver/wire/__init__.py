"""The wire: requests compiled for one API, and the rules its provider would refuse them by."""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.wire.check import validate as validate
    from palaver.wire.compile import compile as compile
    from palaver.wire.place import Rule as Rule, Violation as Violation
    from palaver.wire.request import (
        COMPILER as COMPILER,
        Call as Call,
        Memo as Memo,
        Request as Request,
        broken_at as broken_at,
        units as units,
    )
    from palaver.wire.script import Change as Change, How as How, Report as Report
    from palaver.wire.table import API as API, Profile as Profile

__all__ = open_door(  # noqa: PLE0605 - type checkers read the aliases above
    __name__,
    {
        ".check": "validate",
        ".compile": "compile",
        ".place": "Rule Violation",
        ".request": "COMPILER Call Memo Request broken_at units",
        ".script": "Change How Report",
        ".table": "API Profile",
    },
)
