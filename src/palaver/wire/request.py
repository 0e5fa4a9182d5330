"""What goes into compiling and what comes out: the call, the request, and the report of everything that was changed on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal

from palaver.errors import InvalidRequest
from palaver.log import Handle
from palaver.messages import canonical_json, clean_text
from palaver.prompts import Format
from palaver.view import View
from palaver.wire.held import Held, field_of
from palaver.wire.profiles import Profile
from palaver.wire.violations import Rule

__all__ = ["COMPILER", "Call", "Change", "How", "Notes", "Report", "Request"]

COMPILER = 3
"""The version of what compiling gives: raised whenever the same view and call give other bytes than before, so that a recorded call can say
why it is not reproduced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked of the provider besides going on with the conversation.

    Attributes:
        model: The model, as the provider spells it.
        max_tokens: Tokens the answer may have; None for the provider's own limit. Anthropic has none and gets
            `palaver.wire.anthropic.MAX_TOKENS`.
        temperature: Sampling temperature; None for the provider's own.
        stream: Whether the answer comes in pieces.
        tool_choice: `auto`, `none`, `required`, or the name of the tool that must be called; empty for the provider's own.
        strict_tools: Whether to ask that arguments hold to the tools' schemas, where provider and schema permit it.
        format: The structure that the answer must have, or None. It goes into the provider's own field, in its dialect; where a model
            takes no schema, the instructions ask for it in words.
        provider_tools: Tools that the provider runs itself, by name, such as `web_search`: true, or their options in the provider's words.
            See :mod:`palaver.wire.provided`.
        parameters: Further fields of the body, in the provider's words. They may not name what is compiled from the view.
        cache: Whether cache marks are placed, for providers that have them.
        cache_at: The blocks behind which a prefix is to be cached, in place of the user's newest messages; for providers that have marks.
        cache_ttl: How long what is marked stays cached.
        then: The user's next words: a text put after the view, or None.
    """

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = False
    tool_choice: str = ""
    strict_tools: bool = False
    format: Format | None = None
    provider_tools: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    cache: bool = True
    cache_at: Sequence[Handle] | AbstractSet[Handle] = ()
    cache_ttl: Literal["5m", "1h"] = "5m"
    then: str | None = None

    def __post_init__(self) -> None:
        """Clean the words where they enter, as every text that enters; give the places one order."""
        if self.then is not None:
            object.__setattr__(self, "then", clean_text(self.then, "then", []))
        object.__setattr__(self, "cache_at", tuple(sorted(self.cache_at, key=str)))


class How(StrEnum):
    """What happened to something on its way to the wire."""

    DROPPED = "dropped"
    """It is not in the request."""
    REPLACED = "replaced"
    """A text stands in its place."""
    RENAMED = "renamed"
    """It has another id or name there."""
    CHANGED = "changed"
    """It is there in another form."""
    ADDED = "added"
    """It is in the request and not in the view."""
    KEPT = "kept"
    """It is there as it was given, although palaver cannot tell whether the provider takes it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what the view shows and what is sent.

    Attributes:
        handle: The block it is about; None for what no entry holds (a derived text, a tool's schema, a parameter).
        what: What it is about: `text`, `image`, `audio`, `thinking`, `call id`, `tool name`, `tool schema`, `parameter` and so on.
        how: What happened to it.
        why: The reason, a clause that starts with a small letter.
    """

    handle: Handle | None
    what: str
    how: How
    why: str

    def __str__(self) -> str:
        """Give the difference on one line."""
        place = "" if self.handle is None else f" ({self.handle})"
        return f"{self.what}{place} {self.how.value}: {self.why}"


@dataclass(frozen=True, slots=True)
class Report:
    """The compatibility report of a request: everything that was dropped or changed, in the order of the request.

    Attributes:
        changes: The differences. An empty report means that the provider gets what the view shows.
    """

    changes: tuple[Change, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        """Give the changes in order."""
        return iter(self.changes)

    def __len__(self) -> int:
        """Count the changes."""
        return len(self.changes)

    def lost(self) -> tuple[Change, ...]:
        """Give the changes by which the model sees less than the view shows: what was dropped or replaced."""
        return tuple(change for change in self.changes if change.how in {How.DROPPED, How.REPLACED})

    def about(self, handle: Handle) -> tuple[Change, ...]:
        """Give what happened to one block."""
        return tuple(change for change in self.changes if change.handle == handle)


class Notes:
    """Takes down the changes while a request is compiled."""

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def add(self, handle: Handle | None, what: str, how: How, why: str) -> None:
        """Take one down."""
        self._changes.append(Change(handle, what, how, why))

    def extend(self, changes: Iterable[Change]) -> None:
        """Take down what was taken down elsewhere."""
        self._changes.extend(changes)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What was taken down so far."""
        return tuple(self._changes)

    def report(self) -> Report:
        """Give the report."""
        return Report(tuple(self._changes))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request, ready to be sent.

    Attributes:
        profile: The profile it was compiled for.
        model: The model it is for. (Gemini's body does not name it: there it stands in the address.)
        body: The body, a read-only JSON object.
        report: What differs from the view.
        tool_names: The names that tools have on the wire, to the names we know them by.
        history: True when it ends on the assistant's words: valid as the record of a conversation, and a request only with words after it.
        view: The view it was compiled from; None for one that was not compiled here.
        call: What was asked for beside the view; None likewise.
        written: The canonical bytes of each item of its conversation, where they are known.
        checked: What was checked before it in its conversation.
    """

    profile: Profile
    model: str
    body: Mapping[str, Any]
    report: Report
    tool_names: Mapping[str, str]
    history: bool = False
    view: View | None = field(default=None, repr=False, compare=False)
    call: Call | None = field(default=None, repr=False, compare=False)
    written: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)
    checked: Held = field(default_factory=Held, repr=False, compare=False)

    @cached_property
    def data(self) -> bytes:
        """The body's canonical bytes."""
        if self.written is None:
            return canonical_json(self.body)
        said = field_of(self.profile)
        pieces = [b"{"]
        for name in sorted(self.body):
            spelt = (b"[", b",".join(self.written), b"]") if name == said else (canonical_json(self.body[name]),)
            pieces += [canonical_json(name), b":", *spelt, b","]
        pieces[-1] = b"}"
        return b"".join(pieces)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the canonical bytes, 64 hexadecimal digits."""
        return sha256(self.data).hexdigest()

    def check(self) -> None:
        """Hold the request to its provider's rules.

        A parameter of the caller's that the provider does not publish is let through: servers that speak a provider's language have fields of
        their own.

        Raises:
            InvalidRequest: It breaks one; the error has the violations. It is a defect of palaver, or of the call's own parameters, which the
                error says.
        """
        own = () if self.call is None else tuple(self.call.parameters)
        found = self.checked.violations(
            self.body,
            self.profile,
            len(self.data),
            lambda violation: violation.rule is Rule.FIELD_UNKNOWN and violation.path in own,
            as_history=self.history,
        )
        if found:
            named = sorted(
                {name for name in own for violation in found if re.match(rf"{re.escape(name)}\b", violation.path)}
            )
            raise InvalidRequest(self.profile.name, found, hint=_OWN.format(", ".join(named)) if named else "")


_OWN = "Parameters given with the call are not as the provider wants them: {}."
