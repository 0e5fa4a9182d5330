"""What the doctor says: findings, each with its place, and the diagnosis they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from palaver.ids import SessionId

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "bad_call_id": "In requests such a call has an id that the provider takes; its result has the same.",
        "bad_media": "In requests a text with its handle stands in its place; `palaver quarantine` sets it aside for good.",
        "bad_record": "What stands before and after it is read; the kept source has its bytes.",
        "bad_tool_name": "In requests the tool has a name that the provider takes, and the answer is read back.",
        "damaged_entry": "Nothing can restore it from here: import the transcript anew, or take the store's copy.",
        "damaged_source": "The log itself is whole; import the file anew to keep it again.",
        "damaged_store": "The file is damaged where it lies: take the store's copy; `palaver verify` says what else can be read.",
        "dangling_parent": "Read, it follows the record before it, so nothing after it is lost.",
        "duplicate_id": "In requests every call has an id of its own; repeated records are shown once.",
        "duplicate_result": "The first result is shown; the other is kept, and recalled by its handle.",
        "empty_message": "It is in no request; the log keeps it.",
        "empty_text": "It is in no request; the log keeps it.",
        "failed_response": "It is in no request; the log keeps it.",
        "foreign_reasoning": "It goes back to the model that wrote it and to no other.",
        "malformed_arguments": "In requests its arguments are an object that holds the text as it was written.",
        "misplaced_result": "In requests it stands right after its call.",
        "missing_blob": "In requests a text says that it is lost; `palaver doctor --repair` writes a branch with that text.",
        "nul": "It is replaced by U+FFFD where it was read; what stood there is recorded beside it.",
        "open_call": "Until its result comes, requests hold a derived one.",
        "orphan_result": "In requests it is shown as text where it stands.",
        "over_window": "Give a budget, or commit what a policy makes of the view.",
        "oversized_media": "In requests to providers that take less, a text with its handle stands in its place.",
        "surrogate": "It is replaced by U+FFFD where it was read; what stood there is recorded beside it.",
        "too_many_images": "In requests to providers that take fewer, the oldest are left out, each with its handle.",
        "torn_tail": "Everything before it is read; grown again, the file is imported on from there.",
        "unanswered_call": "In requests a derived result says that none is recorded.",
        "unsigned_thinking": "It goes to no provider that asks for a signature; the log keeps it.",
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
        severity: `fault` (a provider refuses a request built from the record as it stands, or content is damaged), `warning` (something is
            missing or was repaired, or only some providers refuse it), `note` (worth knowing).
        providers: The profiles that would refuse it, or get it otherwise than it was recorded; empty when that does not depend on the provider.
        refused: Why each of them would, by the name of its profile: the rule's id and the validator's words; empty where nobody was asked.
    """

    place: str
    code: str
    what: str
    severity: str
    providers: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def remedy(self) -> str:
        """What palaver does about it; empty where there is nothing to do."""
        return REMEDIES.get(self.code, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor says of one session, or of one dialog of it.

    Attributes:
        name: What was examined.
        session_id: The session, or None for a file that was examined without importing it.
        dialogs: How many dialogs were examined; 0 where a file was read record by record, which tells no dialogs apart.
        total: How many entries they own; of a file that was read record by record, how many records it has.
        reachable: How many of them stand in a dialog that the tree reaches and can be read back as they were written.
        findings: What was found, in order.
        valid: For each profile, whether the next request of every dialog, as palaver compiles it, passes the provider's rules: those of
            form and bytes. Whether it fits the model's window is a finding, `over_window`. Empty where nothing was compiled.
        more: How many findings of a code there are beyond those that are listed.
    """

    name: str
    session_id: SessionId | None
    dialogs: int
    total: int
    reachable: int
    findings: tuple[Finding, ...]
    valid: dict[str, bool]
    more: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def unreachable(self) -> int:
        """How many entries cannot be reached or read back."""
        return self.total - self.reachable

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not any(finding.severity == "fault" for finding in self.findings)


_FOR_GOOD = frozenset({"bad_media", "malformed_arguments", "missing_blob", "oversized_media"})


def to_quarantine(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Give the handles of the blocks that no provider takes whole, each once: what `palaver doctor --quarantine` sets aside."""
    found = [one.place for one in diagnosis.findings if one.code in _FOR_GOOD and one.severity == "fault"]
    return tuple(dict.fromkeys(found))
