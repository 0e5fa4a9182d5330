"""Every error that palaver raises, as one tree.

An error says whose fault it is, carries the facts as attributes, and has a ``hint``: what to do now. A tool's failure is
data for the model and never one of these; a broken invariant of palaver itself is :class:`InvalidRequest` or
:class:`StoreDamaged`. Whoever catches :class:`PalaverError` catches everything that palaver foresees::

    PalaverError
    ├── InvalidInput (ValueError)        the caller gave something wrong
    │   ├── InvalidMessage               a message or block that cannot be one
    │   │   └── InvalidMedia             bytes, base64 or an address that are no image or sound
    │   │       └── MissingMedia (FileNotFoundError)  a file that is not there
    │   ├── InvalidPrompt                a template or its arguments
    │   ├── IllegalEntry                 an entry that the legality table refuses
    │   ├── HasChildren                  a dialog that others share, and they were not to go with it
    │   ├── InvalidHandle                a handle that is not spelt like one
    │   ├── MemoryFull                   more than a block, a file or an archive may hold
    │   ├── UnsupportedTranscript        a file in no known format
    │   ├── PolicyFailed                 a policy or context manager that raised
    │   ├── InvalidBundle                a bundle whose frames or sums are wrong
    │   └── InvalidConfig                a configuration: its file, line and key, and what is close
    ├── NotFound (KeyError)              the caller named something that is not there
    │   ├── UnknownSession
    │   ├── UnknownDialog
    │   ├── UnknownHandle
    │   ├── UnknownPrompt
    │   ├── UnknownProfile
    │   ├── UnknownModel
    │   ├── UnknownPolicy
    │   ├── UnknownTool
    │   ├── UnknownTactic
    │   ├── MissingBlob
    │   ├── MissingStore
    │   └── MissingFile (FileNotFoundError)
    ├── Erased                           it was there, and was erased: a receipt says when
    ├── Ambiguous                        one name, several things
    ├── Conflict                         another writer was first: reload or fork
    │   ├── MemoryConflict               the text that was to be changed is not what stands there: look, and change that
    │   └── LeaseHeld                    another process holds the lease, or took it over
    ├── StoreError                       the place where sessions lie
    │   ├── StoreTooNew                  written by a later palaver
    │   ├── StoreDamaged                 what was read is not what was written
    │   ├── StoreReadOnly
    │   ├── StoreFull
    │   ├── StoreBusy
    │   ├── StoreClosed
    │   ├── StoreUnavailable             the server does not answer, or went away
    │   └── UnsupportedCapability        this backend cannot do that
    ├── InfeasibleBudget                 what must be sent is larger than the budget: an answer, not a failure
    ├── ProviderError                    a model was asked and gave no whole answer
    │   ├── AuthenticationFailed         no key, a wrong one, or an account without the right or the credit
    │   ├── ModelUnavailable             the provider has no such model, or not for this account
    │   ├── RequestRefused               the provider does not take the request
    │   ├── ContextOverflow              the request is longer than the model's window
    │   ├── RateLimited                  too many requests or tokens in a while: later
    │   ├── ProviderDown                 an error of the provider's, no network, or no answer in time
    │   ├── BrokenAnswer                 an answer that was cut off or makes no sense
    │   ├── ScriptExhausted              a scripted provider was asked once more than it has answers
    │   └── ReplayDiffers                a request is not the one that was recorded
    ├── AgentFailure                     an agent's turn ended without an answer; `session` has the whole trace
    │   ├── ModelCallFailed              the model could not be asked; `error` is the provider's
    │   ├── RepairFailed                 no answer was what the prompt declared, however often it was asked again
    │   ├── StepsExhausted               the model went on calling tools after the last round it was allowed
    │   └── CallbackFailed               a handler, listener or approver of the caller's raised
    ├── NoActiveDialog (RuntimeError)    an agent was asked to speak and talks to no dialog
    ├── DecisionNeeded                   a turn waits for a human's decision: nothing failed
    ├── ParseError (ValueError)          the model's answer lacks what its prompt declared
    ├── InvalidRequest                   a request of ours that the validator refuses: a defect of palaver
    ├── MissingExtra                     a package that palaver can do without is not installed
    ├── ServerUnreachable                a server of tools cannot be used
    ├── NotReproducible                  what a past call saw cannot be given back to the byte
    └── MediaUnavailable                 the bytes behind a reference are not in memory
"""

from __future__ import annotations

from errno import ENOENT
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from palaver.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = [
    "AgentFailure",
    "Ambiguous",
    "AuthenticationFailed",
    "BrokenAnswer",
    "CallbackFailed",
    "Conflict",
    "ContextOverflow",
    "DecisionNeeded",
    "Erased",
    "HasChildren",
    "IllegalEntry",
    "InfeasibleBudget",
    "InvalidBundle",
    "InvalidConfig",
    "InvalidHandle",
    "InvalidInput",
    "InvalidMedia",
    "InvalidMessage",
    "InvalidPrompt",
    "InvalidRequest",
    "LeaseHeld",
    "MediaUnavailable",
    "MemoryConflict",
    "MemoryFull",
    "MissingBlob",
    "MissingExtra",
    "MissingFile",
    "MissingMedia",
    "MissingStore",
    "ModelCallFailed",
    "ModelUnavailable",
    "NoActiveDialog",
    "NotFound",
    "NotReproducible",
    "PalaverError",
    "ParseError",
    "PolicyFailed",
    "ProviderDown",
    "ProviderError",
    "RateLimited",
    "RepairFailed",
    "ReplayDiffers",
    "RequestRefused",
    "ScriptExhausted",
    "ServerUnreachable",
    "StepsExhausted",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "UnknownDialog",
    "UnknownHandle",
    "UnknownModel",
    "UnknownPolicy",
    "UnknownProfile",
    "UnknownPrompt",
    "UnknownSession",
    "UnknownTactic",
    "UnknownTool",
    "UnsupportedCapability",
    "UnsupportedTranscript",
]


class PalaverError(Exception):
    """Anything that palaver foresees going wrong.

    ``message`` is one sentence about what happened and whose fault it is; ``hint`` is one about what to do, or empty.
    """

    hint: str = ""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        """Keep the message and the hint."""
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        """Give the message followed by the hint."""
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, as errors do that cross to another process."""
        return _restore, (type(self), self.args, self.__dict__.copy())


def _restore(kind: type[PalaverError], args: tuple[object, ...], state: dict[str, object]) -> PalaverError:
    """Rebuild a pickled error without running its constructor again."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


# --- the caller gave something wrong ----------------------------------------------------------------------------------


class InvalidInput(PalaverError, ValueError):
    """The caller gave a value that cannot be used."""


class InvalidMessage(InvalidInput):
    """A message, block or encoded message that cannot be one; ``faults`` lists (place, what is wrong)."""

    def __init__(self, message: str, *, faults: Iterable[tuple[str, str]] = (), hint: str = "") -> None:
        """Keep the faults beside the message."""
        super().__init__(message, hint=hint)
        self.faults = tuple(faults)


class InvalidMedia(InvalidMessage):
    """Bytes, base64 or an address that are no image or sound palaver can name truthfully."""


class MissingMedia(InvalidMedia, FileNotFoundError):
    """The file of an image or sound, ``filename``, is not there; whoever catches :class:`FileNotFoundError` catches it."""

    def __init__(self, path: str | Path, *, hint: str = "") -> None:
        """Say which file."""
        super().__init__(f"There is no file {str(path)!r}.", hint=hint)
        self.path = path
        self.errno = ENOENT
        self.filename = str(path)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling; what an error of the system holds is not in its dictionary."""
        return _missing_media, (self.path, self.hint)


def _missing_media(path: str | Path, hint: str) -> MissingMedia:
    return MissingMedia(path, hint=hint)


class InvalidPrompt(InvalidInput):
    """A template that cannot be rendered; ``missing`` names the variables that were not given."""

    def __init__(self, message: str, *, missing: Iterable[str] = (), hint: str = "") -> None:
        """Keep the missing names beside the message."""
        super().__init__(message, hint=hint)
        self.missing = tuple(missing)


class IllegalEntry(InvalidInput):
    """An entry of ``kind`` that may not stand where it was to be appended, by the legality table's ``rule``."""

    def __init__(self, message: str, *, kind: str, rule: str, hint: str = "") -> None:
        """Keep the entry's kind and the rule it breaks."""
        super().__init__(message, hint=hint)
        self.kind = kind
        self.rule = rule


class HasChildren(InvalidInput):
    """Others share entries of ``dialog_id``, or grew from it: the dialogs ``children``. Nothing was erased."""

    hint = "Erase them with it, or leave tombstones for them."

    def __init__(self, dialog_id: str, children: Iterable[str], *, hint: str = "") -> None:
        """Say which dialog, and who stands on it."""
        self.dialog_id = dialog_id
        self.children = tuple(children)
        super().__init__(f"Dialog {dialog_id} has {counted(len(self.children), 'other')} that grew from it.", hint=hint)


class InvalidHandle(InvalidInput):
    """A text that is not spelt like a handle, ``dialog:seq[:block]``."""


class MemoryFull(InvalidInput):
    """``name`` would have ``size`` of something, and may have ``limit``. Nothing was written."""

    hint = "Say it in fewer words, or take something out first."

    def __init__(self, name: str, *, size: int, limit: int, unit: str = "characters", hint: str = "") -> None:
        """Say what is full, and by how much."""
        super().__init__(f"{name!r} would have {size:,} {unit}, and may have {limit:,}.", hint=hint)
        self.name = name
        self.size = size
        self.limit = limit
        self.unit = unit


class UnsupportedTranscript(InvalidInput):
    """A file in none of the known formats; ``why`` it was refused and which formats were ``tried``."""

    def __init__(self, path: str | Path, why: str, *, tried: Iterable[str] = (), hint: str = "") -> None:
        """Say which file, why not, and what was tried."""
        super().__init__(f"{path} is not a transcript palaver can read: {why}.", hint=hint)
        self.path = path
        self.why = why
        self.tried = tuple(tried)


class PolicyFailed(InvalidInput):
    """The policy or context manager that records call ``policy`` raised ``error`` when it was asked what to change. Nothing was written."""

    hint = "Mend the policy, or name another one."

    def __init__(self, policy: str, error: Exception, *, hint: str = "") -> None:
        """Say which policy, and what it raised."""
        said = f"{type(error).__name__}: {error}".rstrip(".: ")
        super().__init__(f"The policy {policy!r} raised {said}.", hint=hint)
        self.policy = policy
        self.error = error


class InvalidBundle(InvalidInput):
    """A bundle whose frames, sums or contents are not as its writer left them."""


class InvalidConfig(InvalidInput):
    """A configuration that cannot be used, at ``key`` in ``file``, line ``line``; ``close`` are words that were perhaps meant.

    Lines count from 1; 0 and an empty file or key stand where there is none to name, as for a configuration that came as a mapping.
    """

    def __init__(
        self, what: str, *, file: str = "", line: int = 0, key: str = "", close: Iterable[str] = (), hint: str = ""
    ) -> None:
        """Compose the sentence from the place and what is wrong there."""
        self.file = str(file)
        self.line = line
        self.key = key
        self.close = tuple(close)
        place = f"{self.file or 'line'}{':' if self.file else ' '}{line}" if line else self.file
        near = f" Close: {', '.join(self.close)}." if self.close else ""
        super().__init__(f"{', '.join(filter(None, (place, key)))}: {what}{near}".removeprefix(": "), hint=hint)


# --- the caller named something that is not there ---------------------------------------------------------------------


class NotFound(PalaverError, KeyError):
    """``what`` (a kind of thing) called ``name`` does not exist; ``close`` are names that look like it."""

    what = "thing"

    def __init__(self, name: str, *, close: Iterable[str] = (), what: str = "", hint: str = "") -> None:
        """Compose the sentence from the kind of thing, its name and the close matches."""
        self.name = name
        self.close = tuple(close)
        if what:
            self.what = what
        near = f" Close: {', '.join(self.close)}." if self.close else ""
        super().__init__(f"There is no {self.what} {name!r}.{near}", hint=hint)


class UnknownSession(NotFound):
    """No session has this id or name."""

    what = "session"


class UnknownDialog(NotFound):
    """No dialog has this id."""

    what = "dialog"


class UnknownHandle(NotFound):
    """The handle is well spelt, but nothing is behind it."""

    what = "handle"


class UnknownPrompt(NotFound):
    """No prompt is registered under this path."""

    what = "prompt"


class UnknownProfile(NotFound):
    """No wire profile has this name."""

    what = "profile"


class UnknownModel(NotFound):
    """The catalogue does not know this model."""

    what = "model"


class UnknownPolicy(NotFound):
    """No context policy is registered under this name."""

    what = "policy"


class UnknownTool(NotFound):
    """No function is registered under this reference."""

    what = "tool"


class UnknownTactic(NotFound):
    """No tactic is registered under this name."""

    what = "tactic"


class MissingBlob(NotFound):
    """The store has no payload with this digest."""

    what = "blob"


class MissingStore(NotFound):
    """There is no store at this place."""

    what = "store"


class MissingFile(NotFound, FileNotFoundError):
    """There is no file, folder or store at ``filename``; ``except FileNotFoundError`` catches it too."""

    what = "file"

    def __init__(self, path: str | Path, *, what: str = "", close: Iterable[str] = (), hint: str = "") -> None:
        """Keep the path."""
        super().__init__(str(path), close=close, what=what, hint=hint)
        self.path = path
        self.errno = ENOENT
        self.filename = str(path)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling: the fields of an OSError are not in its dictionary."""
        return _missing_file, (self.path, self.what, self.hint)


def _missing_file(path: str | Path, what: str, hint: str) -> MissingFile:
    return MissingFile(path, what=what, hint=hint)


class Erased(PalaverError):
    """``what`` (a kind of thing) called ``name`` was erased ``at`` a time, in seconds since 1970-01-01 UTC; ``receipt`` is the id of its receipt.

    It is not missing: somebody wanted it gone, and what comes from elsewhere does not bring it back by itself.
    """

    hint = "It cannot be brought back from here. The receipt says what was erased."

    def __init__(self, what: str, name: str, at: float, receipt: str, *, hint: str = "") -> None:
        """Say what was erased, and under which receipt."""
        self.what = what
        self.name = name
        self.at = at
        self.receipt = receipt
        super().__init__(f"The {what} {name} was erased (receipt {receipt}).", hint=hint)


# --- two of us, or too many of them -----------------------------------------------------------------------------------


class Ambiguous(PalaverError):
    """``name`` fits several things, the ``candidates``."""

    def __init__(self, name: str, candidates: Iterable[str], *, hint: str = "") -> None:
        """Say which name and what it fits."""
        self.name = name
        self.candidates = tuple(candidates)
        super().__init__(
            f"The name {name!r} fits several: {', '.join(self.candidates)}.", hint=hint or "Give more of the name."
        )


class Conflict(PalaverError):
    """Another writer was first: the turn head of ``dialog_id`` is ``actual``, not ``expected``; or what ``why`` says happened to it meanwhile.

    Nothing was written. The numbers are sequence numbers of the last entry owned by the turn, -1 for none; where something else than an
    append came between, they are those of the last entry that was known and of the one that says so.
    """

    hint = "Reload the dialog and append again, or fork it."

    def __init__(self, dialog_id: str, expected: int = -1, actual: int = -1, *, why: str = "", hint: str = "") -> None:
        """Say which dialog, what was expected there and what was found, or in a sentence what happened."""
        super().__init__(
            why or f"Dialog {dialog_id} moved on: its turn head is {actual}, the writer expected {expected}.", hint=hint
        )
        self.dialog_id = dialog_id
        self.expected = expected
        self.actual = actual


class MemoryConflict(Conflict):
    """The text that was to be changed is not, or not once, in what stands under ``name``, which is ``value`` now. Nothing was written."""

    hint = "Look at what stands there now, and change that."

    def __init__(self, name: str, value: str, *, times: int = 0, hint: str = "") -> None:
        """Say what was to be changed, and how often the text stands there."""
        why = f"stands in it {times:,} times, not once" if times else "is not in it any more"
        super().__init__(name, why=f"{name!r} was not changed: the text to be replaced {why}.", hint=hint)
        self.name = name
        self.value = value
        self.times = times


class LeaseHeld(Conflict):
    """``holder`` has the lease ``name`` until ``until``, in seconds since 1970-01-01 UTC; ``token`` is its fencing token."""

    hint = "Wait for the end of the lease and ask again."

    def __init__(self, name: str, holder: str, token: int, until: float, *, hint: str = "") -> None:
        """Say whose it is, and how long."""
        super().__init__(name, why=f"The lease {name!r} is held by {holder!r}, with token {token}.", hint=hint)
        self.name = name
        self.holder = holder
        self.token = token
        self.until = until


# --- the place where sessions lie -------------------------------------------------------------------------------------


class StoreError(PalaverError):
    """The store could not do what it was asked; what was acknowledged before is safe.

    Attributes:
        reason: `too_new`, `read_only`, `full`, `closed`, `unavailable` or `unsupported`; empty for anything else.
    """

    reason: str = ""

    def __init__(self, message: str = "", *, reason: str = "", hint: str = "") -> None:
        """Keep the reason beside the message."""
        super().__init__(message, hint=hint)
        if reason:
            self.reason = reason


class StoreTooNew(StoreError):
    """The store has format ``found``; this palaver reads up to ``supported``."""

    reason = "too_new"
    hint = "Install a newer palaver. Nothing was changed."

    def __init__(self, found: int, supported: int, *, hint: str = "") -> None:
        """Say both format numbers."""
        super().__init__(f"The store has format {found}; this palaver reads up to {supported}.", hint=hint)
        self.found = found
        self.supported = supported


class StoreDamaged(StoreError):
    """What lies at ``place`` is not what was written there."""

    hint = "Make a copy of the file first; `palaver verify` and `palaver doctor` on the copy name what can still be read, `palaver export` takes it out."

    def __init__(self, place: str, why: str = "", *, hint: str = "") -> None:
        """Say where, and what is wrong there."""
        super().__init__(f"The store is damaged at {place}{f': {why}' if why else ''}.", hint=hint)
        self.place = place
        self.why = why


class StoreReadOnly(StoreError):
    """The store, or the folder it lies in, may not be written by this user."""

    reason = "read_only"


class StoreFull(StoreError):
    """The device has no room left; the write was undone as a whole."""

    reason = "full"


class StoreBusy(StoreError):
    """Another process held the store longer than the time-out allows."""


class StoreClosed(StoreError):
    """The store was closed before this call."""

    reason = "closed"


class StoreUnavailable(StoreError):
    """The server that keeps the store does not answer, or went away in the middle."""

    reason = "unavailable"


class UnsupportedCapability(StoreError):
    """This backend cannot do ``capability``."""

    reason = "unsupported"

    def __init__(self, capability: str, *, hint: str = "") -> None:
        """Say what it cannot do."""
        super().__init__(f"This store cannot do {capability!r}.", hint=hint)
        self.capability = capability


# --- a model was asked ------------------------------------------------------------------------------------------------


class ProviderError(PalaverError):
    """A model was asked and gave no whole answer; the children say whose fault it is.

    Attributes:
        provider: Who was asked, as the adapter names itself.
        model: The model that was asked, or empty.
        status: The HTTP status of the answer, or None where none came.
        code: The provider's own word for the error, or empty.
        retry_after: Seconds the provider asks to wait before the next try, or None where it does not say.
        retryable: Whether the same request may succeed later.
        request_id: The provider's id of the request, for its support, or empty.
        partial: What had come of the answer before it failed, an `AssistantMessage`, or None.
        kind: `auth`, `model`, `refused`, `overflow`, `rate`, `down`, `broken`, `script` or `replay`; empty when unknown.
    """

    retryable: bool = False
    kind: str = ""

    def __init__(  # noqa: PLR0913 - the facts of a failed call
        self,
        message: str = "",
        *,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
        retryable: bool | None = None,
        request_id: str = "",
        partial: Any = None,  # noqa: ANN401 - an AssistantMessage: messages know errors, not the reverse
        kind: str = "",
        hint: str = "",
    ) -> None:
        """Keep the facts beside the message."""
        super().__init__(message, hint=hint)
        if kind:
            self.kind = kind
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable
        self.request_id = request_id
        self.partial = partial


class AuthenticationFailed(ProviderError):
    """The key is missing or wrong, or its account has no right or no credit for what was asked."""

    kind = "auth"

    hint = "Give the provider's key, as its own client reads it, or look at the account."


class ModelUnavailable(ProviderError):
    """The provider has no model of this name, or not for this account or in this place."""

    kind = "model"

    hint = "Look at how the provider spells the model."


class RequestRefused(ProviderError):
    """The provider does not take the request: a parameter it does not know, or a rule that the request breaks."""

    kind = "refused"


class ContextOverflow(ProviderError):
    """The request is longer than what the model reads; ``limit`` and ``asked`` in tokens, each None where nobody said."""

    kind = "overflow"

    hint = "Send less: a context manager with a smaller budget, or a model with a larger window."

    def __init__(
        self,
        message: str = "",
        *,
        limit: int | None = None,
        asked: int | None = None,
        **facts: Any,  # noqa: ANN401 - those of ProviderError
    ) -> None:
        """Keep both figures beside the facts."""
        super().__init__(message, **facts)
        self.limit = limit
        self.asked = asked


class RateLimited(ProviderError):
    """The account asked too often, or for too many tokens in a while; it may ask again after ``retry_after`` seconds."""

    kind = "rate"

    retryable = True
    hint = "Wait, or ask less often."


class ProviderDown(ProviderError):
    """The provider failed, was overloaded or was not reached, or did not answer in time."""

    kind = "down"

    retryable = True


class BrokenAnswer(ProviderError):
    """An answer that was cut off or makes no sense; ``partial`` is what had come of it."""

    kind = "broken"

    retryable = True


class ScriptExhausted(ProviderError):
    """A scripted provider was asked once more than its script has answers."""

    kind = "script"

    hint = "Add an answer to the script, or look at why the model was asked again."


class ReplayDiffers(ProviderError):
    """A request is not the one that was recorded.

    Attributes:
        handle: The block where they part, or None where no recorded block stands there.
        role: Who speaks there.
        expected: What was recorded, from the first difference on.
        found: What the request has instead, from the first difference on.
        at: How many characters of the block agree.
    """

    kind = "replay"

    hint = "The conversation was changed since it was recorded, or what is sent is chosen in another way now."

    def __init__(
        self,
        message: str,
        *,
        handle: str | None = None,
        role: str = "",
        expected: str = "",
        found: str = "",
        at: int = 0,
        **facts: Any,  # noqa: ANN401 - those of ProviderError
    ) -> None:
        """Keep the place and both sides."""
        super().__init__(message, **facts)
        self.handle = handle
        self.role = role
        self.expected = expected
        self.found = found
        self.at = at


# --- an agent's turn ended without an answer ----------------------------------------------------------------------------


class AgentFailure(PalaverError):
    """An agent's turn ended without an answer. The dialog is whole up to its last durable step, and `respond()` goes on from there.

    Attributes:
        session: The `AgentCallSession` of the call, with everything that was asked and answered.
        kind: `provider`, `repair`, `steps` or `callback`.
        error: What failed: a `ProviderError`, a text or an exception; None where there is nothing to name.
    """

    kind: str = ""
    error: object = None

    def __init__(
        self,
        message: str = "",
        *,
        session: Any,  # noqa: ANN401 - errors know no room above
        kind: str = "",
        error: object = None,
        hint: str = "",
    ) -> None:
        """Keep the trace and the cause beside the message."""
        super().__init__(message, hint=hint)
        self.session = session
        if kind:
            self.kind = kind
        if error is not None:
            self.error = error


class ModelCallFailed(AgentFailure):
    """The model could not be asked, as often as that was allowed.

    Attributes:
        error: The last :class:`ProviderError`.
        place: The handle of the block that a refusal is about, by the place in the request that it names; empty where it names none.
    """

    kind = "provider"

    def __init__(
        self,
        error: ProviderError,
        *,
        session: Any,  # noqa: ANN401 - as above
        place: str = "",
        hint: str = "",
    ) -> None:
        """Say what the provider's error says, and how the session goes on without the block that it is about."""
        if place:
            about = f"It is about {place}: `palaver quarantine {place}`, or dialog.quarantine, sets that block aside."
            hint = f"{about} {hint}".rstrip()
        super().__init__(error.message, session=session, hint=hint or error.hint)
        self.error = error
        self.place = place


class RepairFailed(AgentFailure):
    """No answer was what the prompt declared; ``error`` says what was wrong with the last one."""

    kind = "repair"

    hint = "Look at session.invoke_traces; raise max_exception_retry, or ask for less structure."

    def __init__(self, error: str, retries: int, *, session: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say what was wrong, and how often it was asked again."""
        super().__init__(
            f"After {counted(retries, 'repair')} the answer is still refused: {error}", session=session, hint=hint
        )
        self.error = error
        self.retries = retries


class StepsExhausted(AgentFailure):
    """The model went on calling tools after the last round it was allowed; ``steps`` is how many those were."""

    kind = "steps"

    hint = "Raise max_interrupt_steps, or give the agent less to do at once."

    def __init__(self, steps: int, *, session: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say how many rounds there were."""
        super().__init__(
            f"After {counted(steps, 'round')} of tools the model was asked for its answer and called tools again.",
            session=session,
            hint=hint,
        )
        self.steps = steps


class CallbackFailed(AgentFailure):
    """Something of the caller's raised while a turn went on; ``what`` it was, and ``error`` is what it raised."""

    kind = "callback"

    def __init__(self, what: str, error: BaseException, *, session: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say what raised, and what."""
        super().__init__(f"The {what} raised {type(error).__name__}: {error}", session=session, hint=hint)
        self.what = what
        self.error = error


class NoActiveDialog(PalaverError, RuntimeError):
    """An agent was asked to take or say something, and talks to no dialog."""

    hint = "open() one, or switch() to one."


class DecisionNeeded(PalaverError):
    """A turn waits for a human's decision about the ``calls``; nothing failed, and nothing waits in memory.

    Attributes:
        session: The `AgentCallSession` of the call.
        calls: The calls that wait, each with `id`, `name` and `args`.
    """

    hint = "Decide with agent.approve(), deny() or edit(), here or in another process, then respond() again."

    def __init__(self, calls: Iterable[Any], *, session: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say which tools wait."""
        self.calls = tuple(calls)
        super().__init__(f"Waiting for a decision: {', '.join(call.name for call in self.calls)}.", hint=hint)
        self.session = session


# --- answers and defects ----------------------------------------------------------------------------------------------


class InfeasibleBudget(PalaverError):
    """What must be sent needs ``needed`` and the ``budget`` is smaller; ``breakdown`` says where it goes.

    All figures are in ``unit``: tokens, unless it is the bytes of a request's body, or its images and sounds. The breakdown's values add
    up to ``needed``.
    """

    hint = "Raise the budget, or shorten what the breakdown names."

    def __init__(
        self, budget: int, needed: int, breakdown: Mapping[str, int], *, unit: str = "tokens", hint: str = ""
    ) -> None:
        """Say both figures and their breakdown."""
        self.budget = budget
        self.needed = needed
        self.unit = unit
        self._breakdown = dict(breakdown)
        parts = ", ".join(f"{name} {size:,}" for name, size in self.breakdown.items())
        super().__init__(
            f"A budget of {budget:,} {unit} cannot hold what must be sent: {needed:,} ({parts}).", hint=hint
        )

    @property
    def breakdown(self) -> Mapping[str, int]:
        """How much by what needs it, read-only."""
        return MappingProxyType(self._breakdown)


class ParseError(PalaverError, ValueError):
    """The model's answer, ``content``, lacks what its prompt declared; ``missing`` names it. The model is asked to repair it."""

    def __init__(self, message: str, *, content: str = "", missing: Iterable[str] = (), hint: str = "") -> None:
        """Keep the answer and what it lacks."""
        super().__init__(message, hint=hint)
        self.content = content
        self.missing = tuple(missing)


class InvalidRequest(PalaverError):
    """A compiled request breaks its provider's rules: a defect of palaver, found before anything was sent."""

    hint = "Please report this with the violations."

    def __init__(self, profile: str, violations: Iterable[object], *, hint: str = "") -> None:
        """Say for which profile, and what it breaks."""
        self.profile = profile
        self.violations = tuple(violations)
        shown = "; ".join(str(violation) for violation in self.violations)
        super().__init__(f"The request compiled for {profile} is invalid: {shown}.", hint=hint)


class MediaUnavailable(PalaverError):
    """The bytes behind a media reference are not in memory."""

    hint = "Load them first with palaver.messages.hydrate()."


class MissingExtra(PalaverError):
    """``feature`` needs the package ``package``, which the extra ``extra`` of palaver installs."""

    def __init__(self, feature: str, extra: str, *, package: str = "", hint: str = "") -> None:
        """Say what is missing and how it is installed."""
        self.feature = feature
        self.extra = extra
        self.package = package or extra
        super().__init__(
            f"{feature} needs the package {self.package}, which is not installed.",
            hint=hint or f"Install it with: pip install 'palaver[{extra}]'.",
        )


class ServerUnreachable(PalaverError):
    """The server of tools ``server_label``, at ``address``, cannot be connected to or does not answer as one."""

    hint = "Check that it runs, its address or program, and what it needs in env or headers."

    def __init__(self, server_label: str, address: str, why: str, *, hint: str = "") -> None:
        """Say which server, and why not; whoever raises it hides what is secret."""
        self.server_label = server_label
        self.address = address
        super().__init__(f"The server {server_label!r} ({address}) cannot be used: {why}", hint=hint)


class NotReproducible(PalaverError):
    """What a past call saw cannot be given back to the byte; ``request`` is what it would be today, or None."""

    hint = "The view that it saw may still be had."

    def __init__(self, message: str = "", *, request: object = None, hint: str = "") -> None:
        """Keep what compiling gives today."""
        super().__init__(message, hint=hint)
        self.request = request
