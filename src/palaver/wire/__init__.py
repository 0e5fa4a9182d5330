"""The wire: what each provider accepts, requests compiled for it, and what it would refuse."""

from palaver.wire.check import RULES, validate
from palaver.wire.compile import compile  # noqa: A004 - the word for it
from palaver.wire.compiled import Compiled
from palaver.wire.prefix import broken_at, units
from palaver.wire.profiles import PROFILES, Profile, ProfileName, profile
from palaver.wire.provided import PROVIDED
from palaver.wire.request import COMPILER, Call, Change, How, Report, Request
from palaver.wire.violations import Rule, Violation

__all__ = [
    "COMPILER",
    "PROFILES",
    "PROVIDED",
    "RULES",
    "Call",
    "Change",
    "Compiled",
    "How",
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
