"""What the doctor finds: findings, each with its place, and the diagnosis they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from palaver.ids import SessionId

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "bad_record": "What is before and after it is read; the kept source has its bytes.",
        "damaged_entry": "Nothing can restore it from here: import the transcript again, or restore a copy of the store.",
        "damaged_source": "The log itself is whole; import the file again to keep it.",
        "damaged_store": "Restore a copy of the store; `palaver store verify` lists what else can be read.",
        "dangling_parent": "It follows the record before it, so nothing after it is lost.",
        "duplicate_id": "In requests every call has an id of its own; repeated records are shown once.",
        "duplicate_result": "The first result is shown; the other is kept, and recalled by its handle.",
        "empty_message": "It is in no request; the log keeps it.",
        "failed_response": "It is in no request; the log keeps it.",
        "malformed_arguments": "In requests its arguments are an object that holds the text as it was written.",
        "misplaced_result": "In requests it comes right after its call.",
        "missing_blob": "In requests a text says that it is lost; `palaver doctor --repair` writes a branch with that text.",
        "nul": "It was replaced by U+FFFD when it was read; the original is recorded beside it.",
        "open_call": "Until its result comes, requests hold a derived one.",
        "orphan_result": "In requests it is shown as text where it is.",
        "over_window": "Set a budget, or commit the plan of a policy.",
        "parted_call": "The dialog that it was forked from has both; requests hold a derived result, or the result as text.",
        "surrogate": "It was replaced by U+FFFD when it was read; the original is recorded beside it.",
        "torn_tail": "Everything before it is read; when the file grows, the import continues from there.",
        "undecided_call": "Until somebody decides, requests hold a derived result. The agent's approve(), deny() or edit() decides.",
        "unanswered_call": "In requests a derived result says that none is recorded.",
    }
)
"""What palaver does about each kind of finding, by its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the doctor found.

    Attributes:
        place: Where: a line of the file, or a handle.
        code: One word for counting.
        what: What is wrong, in one sentence.
        severity: `fault` (a provider refuses a request with the record unchanged, or content is damaged), `warning` (something is missing
            or was repaired, or only some providers refuse it), `note` (worth knowing).
        providers: The profiles that receive it otherwise than it was recorded; empty if that does not depend on the provider.
    """

    place: str
    code: str
    what: str
    severity: str
    providers: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """What palaver does about it; empty if there is nothing to do."""
        return REMEDIES.get(self.code, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The doctor's findings on one session, or on one dialog of it.

    Attributes:
        name: What was examined.
        session_id: The session, or None for a file that was examined without importing it.
        dialogs: How many dialogs were examined.
        total: How many entries they own.
        reachable: How many of them can be reached through the tree and read back as they were written.
        findings: What was found, in order.
        valid: For each profile, whether the next request of every dialog, as palaver compiles it, passes the provider's rules of form and
            size in bytes. Whether it fits the model's window is a finding, `over_window`.
    """

    name: str
    session_id: SessionId | None
    dialogs: int
    total: int
    reachable: int
    findings: tuple[Finding, ...]
    valid: Mapping[str, bool]

    @property
    def unreachable(self) -> int:
        """How many entries cannot be reached or read back."""
        return self.total - self.reachable

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not any(finding.severity == "fault" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "session": self.session_id,
            "healthy": self.healthy,
            "dialogs": self.dialogs,
            "entries": {"reachable": self.reachable, "unreachable": self.unreachable, "total": self.total},
            "findings": [asdict(finding) | {"remedy": finding.remedy} for finding in self.findings],
            "valid": dict(self.valid),
        }
