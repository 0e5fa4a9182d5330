"""How well constraints are found: in sentences that were written for it, and in messages of recorded users that were read by eye."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from palaver.context.record.asks import rules
from palaver.lab.loading import Loaded, loaded
from palaver.log import MessageEntry, decode_entry
from palaver.messages import Role, Speaker, TextContent
from tests.context.stated import NO_RULES, NO_RULES_AFTERWARDS, RULES, RULES_AFTERWARDS
from tests.context.stated_recorded import READ_AFTERWARDS, READ_BEFORE


class Score(NamedTuple):
    """What was found of what there is.

    Attributes:
        right: Constraints that were found.
        wrong: What was found and is none.
        missed: Constraints that were not found.
    """

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of what was found that is one."""
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        """The share of those there are that was found."""
        return self.right / (self.right + self.missed)

    def __str__(self) -> str:
        return (
            f"{self.right + self.missed} constraints; precision {self.precision:.2f} ({self.right} of {self.right + self.wrong} found), "
            f"recall {self.recall:.2f} ({self.right} of {self.right + self.missed})"
        )


def score(stated: Iterable[str], others: Iterable[str]) -> Score:
    """Score the finder on sentences, each as a message of its own."""
    found = [bool(list(rules(one))) for one in stated]
    return Score(sum(found), sum(bool(list(rules(one))) for one in others), len(found) - sum(found))


def digest(text: str) -> str:
    """Give the digest by which a text is known."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def said(path: Path) -> Iterator[str]:
    """Give what the human said in the sessions of a file."""
    for one in loaded(path):
        assert isinstance(one, Loaded)
        for dialog in one.dialogs:
            for header in one.store.headers(dialog):
                if header.kind == "message" and header.role == Role.USER:
                    entry = decode_entry(one.store.body(dialog, header.seq))
                    assert isinstance(entry, MessageEntry)
                    if entry.message.speaker is Speaker.HUMAN:
                        yield from (block.content for block in entry.message.contents if isinstance(block, TextContent))


def scored(folder: Path, read: Mapping[str, Mapping[str, str]]) -> Score:
    """Score the finder on the messages that were read."""
    right = wrong = missed = met = 0
    for name, messages in read.items():
        texts = {digest(text): text for text in said(folder / name)}
        for message, sentences in messages.items():
            stated, found = set(sentences.split()), {digest(rule) for rule in rules(texts[message])}
            right += len(stated & found)
            wrong += len(found - stated)
            missed += len(stated - found)
            met += 1
    assert met == sum(map(len, read.values()))
    return Score(right, wrong, missed)


def test_sentences_that_were_written_for_it(tell: Callable[[str], None]) -> None:
    """At least 97 of 100 that are found are constraints, and at least 97 of 100 constraints are found."""
    made, afterwards = score(RULES, NO_RULES), score(RULES_AFTERWARDS, NO_RULES_AFTERWARDS)
    tell(f"constraints in sentences written for it: {made}; written afterwards: {afterwards}")
    assert min(made.precision, made.recall) >= 0.97
    assert min(afterwards.precision, afterwards.recall) >= 0.95


@pytest.mark.soak
def test_messages_of_recorded_users_that_were_read(recorded_sessions: Path, tell: Callable[[str], None]) -> None:
    """Those that were read while it was made, and others that were read when it was done."""
    before, afterwards = scored(recorded_sessions, READ_BEFORE), scored(recorded_sessions, READ_AFTERWARDS)
    tell(f"constraints in recorded messages, read while it was made: {before}; read afterwards: {afterwards}")
    assert min(before.precision, before.recall) >= 0.85
    assert min(afterwards.precision, afterwards.recall) >= 0.75
