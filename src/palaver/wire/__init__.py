"""The wire: what each provider accepts, requests compiled for it, and the rules it would refuse them by."""

from palaver.wire.check import Rule, Violation, validate
from palaver.wire.compile import compile  # noqa: A004 - the word for it
from palaver.wire.profiles import PROFILES, profile
from palaver.wire.request import COMPILER, Call, Memo, Request, broken_at, units
from palaver.wire.script import Change, How, Report
from palaver.wire.table import Profile, ProfileName

__all__ = [
    "COMPILER",
    "PROFILES",
    "Call",
    "Change",
    "How",
    "Memo",
    "Profile",
    "ProfileName",
    "Report",
    "Request",
    "Rule",
    "Violation",
    "broken_at",
    "compile",
    "profile",
    "units",
    "validate",
]
