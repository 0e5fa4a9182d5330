"""Every error that palaver raises, as one tree.

An error has its facts as attributes and a ``hint``: what to do now. A failed tool is data for the model, not an error. A broken
invariant of palaver itself raises :class:`InvalidRequest` or :class:`StoreDamaged`. ``except PalaverError`` catches all of them::

    PalaverError
    ├── InvalidInput (ValueError)        the caller passed something wrong
    │   ├── InvalidMessage               a message, a block or media that is not valid
    │   ├── InvalidConfig                a configuration: file, line, key, close names
    │   ├── UnsupportedTranscript        a file in no known format
    │   └── PolicyFailed                 a policy or context manager that raised
    ├── NotFound (KeyError)              no session, dialog, handle, model, tool … of this name (`what`)
    │   └── MissingFile (FileNotFoundError)
    ├── Erased                           it existed and was erased; a receipt says when
    ├── Ambiguous                        a name matches several things
    ├── Conflict                         another writer was first: reload or fork
    │   └── Busy                         another request is being answered in the dialog
    ├── StoreError                       the store failed (`reason`)
    │   ├── StoreDamaged                 stored bytes are not the bytes that were written
    │   └── StoreBusy                    another process is using the store
    ├── InfeasibleBudget                 the content that must be sent is larger than the budget
    ├── ProviderError                    a model returned no complete answer (`kind`)
    │   ├── ContextOverflow              the request is longer than the model's window
    │   └── RateLimited                  too many requests for now
    ├── AgentFailure                     a turn ended without an answer (`kind`, `error`, `trace`)
    │   └── RepairFailed                 no answer had the declared form, even after repairs
    ├── DecisionNeeded                   a turn waits for a person's decision
    ├── ParseError (ValueError)          an answer lacks what its prompt declared
    ├── InvalidRequest                   a request that the validator refuses: a bug in palaver
    ├── MissingExtra                     an optional package is not installed
    └── NotReproducible                  a past call cannot be rebuilt byte for byte
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from errno import ENOENT
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from palaver.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "AgentFailure",
    "Ambiguous",
    "Busy",
    "Conflict",
    "ContextOverflow",
    "DecisionNeeded",
    "Erased",
    "InfeasibleBudget",
    "InvalidConfig",
    "InvalidInput",
    "InvalidMessage",
    "InvalidRequest",
    "MissingExtra",
    "MissingFile",
    "NotFound",
    "NotReproducible",
    "PalaverError",
    "ParseError",
    "PolicyFailed",
    "ProviderError",
    "RateLimited",
    "RepairFailed",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "UnsupportedTranscript",
]

DISTRIBUTION = "palaver-llm"
"""The name under which the package index has this library: `palaver` is another project there."""


class PalaverError(Exception):
    """The base of all errors.

    ``message`` is one sentence about what happened; ``hint`` is one about what to do, or empty.
    """

    hint: str = ""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        """Keep the message and the hint."""
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        """Return the message followed by the hint; a message that ends with another program's words gets its full stop."""
        if not self.message or not self.hint:
            return self.message or self.hint
        ended = self.message.rstrip("\"')]}")[-1:] in ".!?…:;"
        return f"{self.message}{'' if ended else '.'} {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, as errors do that cross to another process."""
        return _restore, (type(self), self.args, self.__dict__.copy())


def _restore(kind: type[PalaverError], args: tuple[object, ...], state: dict[str, object]) -> PalaverError:
    """Rebuild a pickled error without running its constructor again."""
    made = OSError.__new__(kind) if issubclass(kind, OSError) else kind.__new__(kind)
    error: PalaverError = made
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error


# --- the caller passed something wrong ---------------------------------------------------------------------------------


class InvalidInput(PalaverError, ValueError):
    """The caller passed a value that cannot be used."""


class InvalidMessage(InvalidInput):
    """A message, block or encoded message that is not valid; ``faults`` lists (place, what is wrong)."""

    def __init__(self, message: str, *, faults: Iterable[tuple[str, str]] = (), hint: str = "") -> None:
        """Keep the faults with the message."""
        super().__init__(message, hint=hint)
        self.faults = tuple(faults)


class UnsupportedTranscript(InvalidInput):
    """A file in no known format; ``why`` it was refused and which formats were ``tried``."""

    def __init__(self, path: str | Path, why: str, *, tried: Iterable[str] = (), hint: str = "") -> None:
        """Say which file, why not, and what was tried."""
        super().__init__(f"{path} is not a transcript palaver can read: {why}.", hint=hint)
        self.path = path
        self.why = why
        self.tried = tuple(tried)


class PolicyFailed(InvalidInput):
    """The policy or context manager named ``policy`` raised ``error``. Nothing was written."""

    hint = "Correct the policy, or name another one."

    def __init__(self, policy: str, error: Exception, *, hint: str = "") -> None:
        """Say which policy, and what it raised."""
        said = f"{type(error).__name__}: {error}".rstrip(".: ")
        super().__init__(f"The policy {policy!r} raised {said}.", hint=hint)
        self.policy = policy
        self.error = error


class InvalidConfig(InvalidInput):
    """A configuration that cannot be used, at ``key`` in ``file``, line ``line``; ``close`` are similar words.

    Lines count from 1. A configuration that came as a mapping has line 0 and an empty file.
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


# --- the caller named something that does not exist ---------------------------------------------------------------------


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
        state = self.__dict__ | {"errno": self.errno, "filename": self.filename}
        return _restore, (type(self), self.args, state)


class Erased(PalaverError):
    """``what`` (a kind of thing) called ``name`` was erased ``at`` a time, in seconds since 1970-01-01 UTC; ``receipt`` is the id of its receipt.

    An import does not bring it back.
    """

    hint = "The receipt says what was erased."

    def __init__(self, what: str, name: str, at: float, receipt: str, *, hint: str = "") -> None:
        """Say what was erased, and under which receipt."""
        self.what = what
        self.name = name
        self.at = at
        self.receipt = receipt
        super().__init__(f"The {what} {name} was erased (receipt {receipt}).", hint=hint)


# --- several writers, several matches -----------------------------------------------------------------------------------


class Ambiguous(PalaverError):
    """``name`` matches several things, the ``candidates``."""

    def __init__(self, name: str, candidates: Iterable[str], *, hint: str = "") -> None:
        """Compose the sentence from the name and its candidates."""
        self.name = name
        self.candidates = tuple(candidates)
        super().__init__(
            f"The name {name!r} matches several: {', '.join(self.candidates)}.",
            hint=hint or "Use a longer prefix, or the id.",
        )


class Conflict(PalaverError):
    """Another writer was first: the turn head of ``dialog_id`` is ``actual``, not ``expected``; ``why`` says more where it was not an append.

    Nothing was written. Both are sequence numbers of the turn's last entry, -1 for none.
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


class Busy(Conflict):
    """Another request is being answered in the dialog ``dialog_id``, by this process or another. Nothing was written."""

    hint = "Ask again later, receive() a message for the running turn, or fork the dialog."

    def __init__(self, dialog_id: str, expected: int = -1, actual: int = -1, *, why: str = "", hint: str = "") -> None:
        """Say which dialog."""
        said = why or f"Another request is being answered in dialog {dialog_id}."
        super().__init__(dialog_id, expected, actual, why=said, hint=hint)


# --- the store -------------------------------------------------------------------------------------


class StoreError(PalaverError):
    """The store could not perform an operation. Everything acknowledged before is safe.

    Attributes:
        reason: `too_new`, `read_only`, `full`, `closed`, `moved`, `unavailable`, `unsupported`, `no_key` or `not_encrypted`; empty for anything else.
    """

    reason: str = ""

    def __init__(self, message: str = "", *, reason: str = "", hint: str = "") -> None:
        """Keep the reason with the message."""
        super().__init__(message, hint=hint)
        if reason:
            self.reason = reason


class StoreDamaged(StoreError):
    """The bytes at ``place`` are not the bytes that were written."""

    hint = "Copy the file first. While it opens, `palaver doctor` lists what can be read, and `palaver export` writes it out; else restore a backup."

    def __init__(self, place: str, why: str = "", *, hint: str = "") -> None:
        """Say where, and what is wrong there."""
        super().__init__(f"The store is damaged at {place}{f': {why}' if why else ''}.", hint=hint)
        self.place = place
        self.why = why


class StoreBusy(StoreError):
    """Another process locked the store longer than the time-out allows."""


_RETRYABLE = frozenset({"rate", "down", "broken"})
"""Kinds of a provider's error after which the same request may succeed."""


# --- a model was asked ------------------------------------------------------------------------------------------------


class ProviderError(PalaverError):
    """A provider returned no complete answer.

    Attributes:
        kind: `auth` (no key, a wrong one, no right or no credit), `model` (no such model), `refused` (any other refusal), `overflow`, `rate`,
            `down` (a failure, an overload, no connection, a time-out), `broken` (a cut or unreadable answer), `declined` (the model refuses to
            answer), `filtered` (the provider's filter stopped it) or `script` (a script has no further answer); empty when unknown.
        provider: The provider's name.
        model: The model, or empty.
        status: The HTTP status of the answer, or None without one.
        code: The provider's own code for the error, or empty.
        retry_after: Seconds that the provider asks to wait before the next attempt, or None where it does not say.
        retryable: Whether the same request may succeed later; by default for the kinds `rate`, `down` and `broken`.
        request_id: The provider's id of the request, for its support, or empty.
        partial: The part of the answer that arrived, an `AssistantMessage`, or None.
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
        """Keep the facts with the message."""
        super().__init__(message, hint=hint)
        if kind:
            self.kind = kind
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.retryable = self.kind in _RETRYABLE if retryable is None else retryable
        self.request_id = request_id
        self.partial = partial


class ContextOverflow(ProviderError):
    """The request is longer than the model's window; ``limit`` and ``asked`` are in tokens, or None if unknown."""

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
        """Keep both figures with the facts."""
        super().__init__(message, **facts)
        self.limit = limit
        self.asked = asked


class RateLimited(ProviderError):
    """The account sent too many requests or tokens; it may ask again after ``retry_after`` seconds."""

    kind = "rate"

    retryable = True
    hint = "Wait, or ask less often."


# --- an agent's turn ended without an answer ----------------------------------------------------------------------------


class AgentFailure(PalaverError):
    """An agent's turn ended without an answer. The dialog has every durable step; `respond()` continues from the last one.

    Attributes:
        trace: The `palaver.Trace` of the call, with all its requests and answers.
        kind: `provider`, `repair`, `steps`, `limit` or `callback`.
        error: What failed: a `ProviderError`, a `LimitReached`, a text or an exception; None where there is nothing to name.
    """

    kind: str = ""
    error: object = None

    def __init__(
        self,
        message: str = "",
        *,
        trace: Any,  # noqa: ANN401 - errors know no room above
        kind: str = "",
        error: object = None,
        hint: str = "",
    ) -> None:
        """Keep the trace and the cause with the message."""
        super().__init__(message, hint=hint)
        self.trace = trace
        if kind:
            self.kind = kind
        if error is not None:
            self.error = error


class RepairFailed(AgentFailure):
    """No answer had the declared form; ``error`` says what was wrong with the last one."""

    kind = "repair"

    hint = "Look at trace.invoke_traces; raise max_exception_retry, or ask for less structure."

    def __init__(self, error: str, retries: int, *, trace: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say what was wrong, and how often it was asked again."""
        super().__init__(
            f"The answer is still not valid after {counted(retries, 'repair')}: {error}", trace=trace, hint=hint
        )
        self.error = error
        self.retries = retries


class DecisionNeeded(PalaverError):
    """A turn waits for a human's decision about the ``calls``. The wait is durable: nothing is lost when the process ends.

    Attributes:
        trace: The `palaver.Trace` of the call.
        calls: The calls that wait, each with `id`, `name` and `args`.
    """

    hint = (
        "Decide with agent.approve(), deny() or edit(), or `palaver approve`, here or in another process, then respond() again. Messages that came meanwhile, that of "
        "this call too, are kept and delivered then: do not send them again. respond(abandon=True) goes on without the call."
    )

    def __init__(self, calls: Iterable[Any], *, trace: Any, hint: str = "") -> None:  # noqa: ANN401 - as above
        """Say which tools wait."""
        self.calls = tuple(calls)
        if self.calls:
            super().__init__(f"Waiting for a decision: {', '.join(call.name for call in self.calls)}.", hint=hint)
        else:
            super().__init__(
                "The calls that waited are decided, and none of them runs here.",
                hint=hint or "Respond with an agent that has their tools, or deny() them.",
            )
        self.trace = trace


# --- answers and defects ----------------------------------------------------------------------------------------------


class InfeasibleBudget(PalaverError):
    """The content that must be sent needs ``needed``, more than the ``budget``; ``breakdown`` lists its parts.

    All figures are in ``unit``: tokens, or the bytes of a request's body, or images and sounds. The breakdown's values add
    up to ``needed``.
    """

    hint = "Raise the budget, or shorten the content that the breakdown names."

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
            f"A budget of {budget:,} {unit} is too small for what must be sent: {needed:,} ({parts}).", hint=hint
        )

    @property
    def breakdown(self) -> Mapping[str, int]:
        """The size of each part, read-only."""
        return MappingProxyType(self._breakdown)


class ParseError(PalaverError, ValueError):
    """The model's answer, ``content``, lacks what its prompt declared; ``missing`` names it. The model is asked to repair it."""

    def __init__(self, message: str, *, content: str = "", missing: Iterable[str] = (), hint: str = "") -> None:
        """Keep the answer and what it lacks."""
        super().__init__(message, hint=hint)
        self.content = content
        self.missing = tuple(missing)


class InvalidRequest(PalaverError):
    """A compiled request breaks its provider's rules, found before anything was sent.

    It ends on the assistant's words, which the model does not continue; it asks for what the model does not take; or it is a bug in palaver.
    """

    hint = "Please report this with the violations."

    def __init__(self, profile: str, violations: Iterable[object], *, hint: str = "") -> None:
        """Say for which profile, and what it breaks."""
        self.profile = profile
        self.violations = tuple(violations)
        shown = "; ".join(str(violation) for violation in self.violations)
        super().__init__(f"The request compiled for {profile} is invalid: {shown}.", hint=hint)


class MissingExtra(PalaverError):
    """``feature`` needs the package ``package``, which the extra ``extra`` of palaver installs."""

    def __init__(self, feature: str, extra: str, *, package: str = "", hint: str = "") -> None:
        """Say what is missing and how to install it."""
        self.feature = feature
        self.extra = extra
        self.package = package or extra
        super().__init__(
            f"{feature} needs the package {self.package}, which is not installed.",
            hint=hint or f"Install it with: pip install '{DISTRIBUTION}[{extra}]'.",
        )


class NotReproducible(PalaverError):
    """A past request cannot be rebuilt byte for byte; ``request`` is the request as compiled today, or None."""

    hint = "The recorded view of the call may still be readable."

    def __init__(self, message: str = "", *, request: object = None, hint: str = "") -> None:
        """Keep the request as compiled today."""
        super().__init__(message, hint=hint)
        self.request = request


def require_known(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidInput for the first name in order that is not known.

    Args:
        what: The beginning of the sentence about it, such as "An agent has no option".
        given: The names that a caller passed.
        known: All names.
    """
    for name in sorted(set(given) - set(known)):
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(sorted(known))}."
        raise InvalidInput(f"{what} {name!r}.", hint=hint)


@contextmanager
def reported(what: str, hint: str) -> Iterator[None]:
    """Report an exception of a user's module or class as `InvalidInput`: whatever it raises, even the end of the program. An error of palaver's stays.

    Args:
        what: The beginning of the sentence about it, such as "shop.py cannot be loaded".
        hint: What to do.
    """
    try:
        yield
    except PalaverError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"{what}: {type(error).__name__}: {error}.", hint=hint) from error


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the line that called palaver."""
    level, frame = 1, sys._getframe()  # noqa: SLF001 - as `warnings.warn` does; its list of prefixes to skip needs Python 3.12
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in {"palaver", "functools"}:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
