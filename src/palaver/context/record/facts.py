"""Facts: what a record knows, as values, and as canonical JSON from which the next record goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import canonical_json

__all__ = ["EARLIER", "MOST", "NOTHING", "RULES", "Command", "Facts", "File", "Said", "Trouble"]

MOST: Mapping[str, int] = MappingProxyType(
    {
        "asks": 64,
        "files": 256,
        "commands": 64,
        "troubles": 64,
        "unanswered": 32,
        "summaries": 4,
    }
)
"""How many facts of each kind are carried; of older ones their number and their place. All of them stay reachable in the log."""

RULES = 64_000
"""Characters of the user's constraints that are carried (some 16,000 tokens, a thousand sentences): of more the first ones, a quarter of that, and the newest."""


EARLIER = "earlier"
"""Stands for a handle that nobody knows any more, of something that did happen."""


@dataclass(frozen=True, slots=True)
class Said:
    """Words, verbatim.

    Attributes:
        at: The handle of where they were said, with the whole id of the dialog.
        text: The words, from their beginning.
        rest: How many characters follow that are not carried.
        times: How often they were said; `at` is the last time.
    """

    at: str
    text: str
    rest: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class File:
    """A file that was touched.

    Attributes:
        path: Its path, as it was named.
        read: The handle of the last call that read it, or empty.
        wrote: The handle of the last call that changed it, or empty.
    """

    path: str
    read: str = ""
    wrote: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was run.

    Attributes:
        at: The handle of the last call that ran it.
        run: The command.
        ended: How it ended the last time: `ok`, `failed`, `exit 2`, `no result`.
        times: How often it was run.
    """

    at: str
    run: str
    ended: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that failed.

    Attributes:
        at: The handle of the result that says so.
        of: What failed: a command, or a tool with what it was about.
        what: The line that names the error, verbatim.
        closed: The handle of the later result in which the same thing succeeded, or empty.
    """

    at: str
    of: str
    what: str
    closed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a record knows, each kind from the oldest to the newest.

    Attributes:
        goal: The first words of the user, or None.
        asks: The user's later words.
        rules: What the user said must or must not be.
        files: The files that were touched, the one touched last at the end.
        commands: The commands that were run, the one run last at the end.
        troubles: What failed.
        unanswered: Calls that never got a result.
        summaries: Summaries that others made of what came before.
        running: The newest summary that a model of ours made, where it has no place in the view; or None. Its handle is the last entry that it
            was made from. The next summary goes on from it.
        last: The last words of the model, or None.
        more: For each kind, how many older facts are not carried any more.
    """

    goal: Said | None = None
    asks: tuple[Said, ...] = ()
    rules: tuple[Said, ...] = ()
    files: tuple[File, ...] = ()
    commands: tuple[Command, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    unanswered: tuple[Said, ...] = ()
    summaries: tuple[Said, ...] = ()
    running: Said | None = None
    last: Said | None = None
    more: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def bounded(self) -> Facts:
        """Give the newest of each kind, and count the rest; of the constraints also the first ones, for a conversation begins with those that matter."""
        more: dict[str, int] = dict(self.more)
        kept: dict[str, Any] = {}
        for name, most in MOST.items():
            facts = getattr(self, name)
            if len(facts) > most:
                kept[name] = facts[len(facts) - most :]
                more[name] = more.get(name, 0) + len(facts) - most
        if sum(len(said.text) for said in self.rules) > RULES:
            kept["rules"] = _carried(self.rules)
            more["rules"] = more.get("rules", 0) + len(self.rules) - len(kept["rules"])
        return replace(self, **kept, more=MappingProxyType(more)) if kept else self

    def to_json(self) -> str:
        """Give canonical JSON: the same facts are the same text."""
        fields: dict[str, Any] = {
            name: list(map(_fields, getattr(self, name))) for name in _LISTS if getattr(self, name)
        }
        fields |= {name: _fields(said) for name in _ONES if (said := getattr(self, name)) is not None}
        return canonical_json(fields | ({"more": dict(self.more)} if self.more else {})).decode()

    @classmethod
    def from_json(cls, text: str) -> Facts:
        """Read facts; what a newer version added is passed over.

        Raises:
            InvalidInput: The text is no JSON object of facts.
        """
        try:
            fields = json.loads(text)
            known: dict[str, Any] = {
                name: tuple(_made(kind, each) for each in fields.get(name, ())) for name, kind in _LISTS.items()
            }
            known |= {name: None if fields.get(name) is None else _made(Said, fields[name]) for name in _ONES}
            return cls(**known, more=MappingProxyType(dict(fields.get("more", {}))))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(f"The facts of a record cannot be read: {error}.") from error


_LISTS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "asks": Said,
        "rules": Said,
        "files": File,
        "commands": Command,
        "troubles": Trouble,
        "unanswered": Said,
        "summaries": Said,
    }
)
_ONES = ("goal", "running", "last")

NOTHING = Facts().to_json()
"""The facts of a text that has words of its own and no facts: a model's summary. Empty facts are those of a text that somebody else made."""


def _carried(rules: Sequence[Said]) -> tuple[Said, ...]:
    """Give the first constraints and the newest; those put on the list by hand, which have no handle, are at its end."""
    first, room = 0, RULES // 4
    while (room := room - len(rules[first].text)) >= 0:
        first += 1
    last, room = len(rules), RULES - RULES // 4
    while (room := room - len(rules[last - 1].text)) >= 0:
        last -= 1
    return (*rules[:first], *rules[max(last, first) :])


def _fields(fact: Any) -> dict[str, Any]:  # noqa: ANN401 - any kind of fact
    """Give the fields of a fact; what was said once does not say so."""
    fields = asdict(fact)
    if isinstance(fact, Said) and fact.times == 1:
        del fields["times"]
    return fields


def _made(kind: type[Any], fields: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a value of that kind
    known = {name: value for name, value in fields.items() if name in kind.__dataclass_fields__}
    return kind(**known)
