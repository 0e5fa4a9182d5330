"""Turns: who speaks in what order, under what name, and texts that say something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from palaver.wire.check.shape import show
from palaver.wire.profiles import Turns
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "named", "ordered", "worded"]

RULES = frozenset({Rule.ROLE_FIRST, Rule.ROLE_ALTERNATION, Rule.TEXT_EMPTY, Rule.TEXT_LENGTH})


def ordered(messages: Sequence[Place], rules: Turns) -> Iterator[Violation]:
    """Check who speaks first and that the two sides take turns; a missing role is the first side's."""
    roles = [message["role"].text or rules.first for message in messages]
    if roles and rules.first and roles[0] != rules.first:
        yield messages[0]["role"].breaks(Rule.ROLE_FIRST, f"the first message must be the {rules.first}'s")
    for number in range(1, len(roles)):
        if rules.alternate and roles[number] == roles[number - 1]:
            yield messages[number]["role"].breaks(Rule.ROLE_ALTERNATION, "the message before has the same role")


def worded(texts: Iterable[Place], rules: Turns) -> Iterator[Violation]:
    """Check that texts say something, as far as the provider asks for it, and are not too long."""
    for text in texts:
        if not isinstance(text.value, str):
            continue  # the shape's business
        if rules.text != "any" and not text.text:
            yield text.breaks(Rule.TEXT_EMPTY, "the text is empty")
        elif rules.text == "visible" and not text.text.strip():
            yield text.breaks(Rule.TEXT_EMPTY, "the text is only white space")
        if len(text.text) > rules.text_characters:
            message = f"{len(text.text):,} characters, {rules.text_characters:,} are taken"
            yield text.breaks(Rule.TEXT_LENGTH, message)


def named(names: Iterable[Place], rules: Turns) -> Iterator[Violation]:
    """Check the names of participants, where messages carry any."""
    for name in names:
        if rules.name is not None and isinstance(name.value, str) and not rules.name.fullmatch(name.text):
            yield name.breaks(Rule.PARTICIPANT_NAME, f"{show(name.text)} does not match {rules.name.pattern}")
