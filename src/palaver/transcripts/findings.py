"""What the doctor says: findings, each with its place, and the diagnosis they add up to."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.ids import SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the doctor found.

    Attributes:
        place: Where: a line of the file, or a handle.
        code: One word for counting.
        what: What is wrong, in one sentence.
        severity: `fault` (a provider refuses a request built from the record as it stands, or content is damaged), `warning` (something is
            missing or was repaired), `note` (worth knowing).
        providers: The profiles that would refuse it, or get it otherwise than it was recorded; empty when that does not depend on the provider.
    """

    place: str
    code: str
    what: str
    severity: str
    providers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor says of one session, or of one dialog of it.

    Attributes:
        name: What was examined.
        session_id: The session, or None for a file that was examined without importing it.
        dialogs: How many dialogs were examined.
        total: How many entries they own.
        reachable: How many of them stand in a dialog that the tree reaches and can be read back as they were written.
        findings: What was found, in order.
        valid: For each profile, whether the next request of every dialog, as palaver compiles it, passes the provider's rules: those of
            form and bytes. Whether it fits the model's window is a finding, `over_window`.
    """

    name: str
    session_id: SessionId | None
    dialogs: int
    total: int
    reachable: int
    findings: tuple[Finding, ...]
    valid: dict[str, bool]

    @property
    def unreachable(self) -> int:
        """How many entries cannot be reached or read back."""
        return self.total - self.reachable

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not any(finding.severity == "fault" for finding in self.findings)
