"""The recorder: goes through exchanges in order and keeps what they say about the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from palaver.context.record.asks import rules
from palaver.context.record.facts import NOTHING, Command, Facts, File, Said, Trouble
from palaver.context.record.own_words import spoken
from palaver.context.record.read_back import facts_of
from palaver.context.work.acts import asked_for, result_of
from palaver.context.work.deeds import Deed, deed
from palaver.context.work.outcomes import error_line, outcome
from palaver.log import ERASED, Handle
from palaver.messages import Content, Role, Speaker, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange, Reason, outside

__all__ = ["Recorder", "Sources", "original", "running_of"]

Sources: TypeAlias = Callable[[Handle], Content | None]
"""Gives a block as it was recorded, or None where it cannot be read."""

_UNTOLD = frozenset({Reason.ERASED, Reason.QUARANTINED})
"""Why a block is told nowhere as it was recorded: nobody may have it any more, or a provider refused it and would again."""

_OURS = frozenset({"notice", "file", "plan", "repo map", "carried"})
"""Derived texts that say nothing of what was done."""

_LONGEST = 2_000
"""Characters of one saying that are carried."""

_LONGEST_RUNNING = 32_000
"""Characters of a running summary that are carried: more than any that is asked for has (`summary.task`)."""


class Recorder:
    """Gathers facts.

    What is in the view in another form (set aside, shortened) is read from the log where `sources` can; a record is never made of the text
    of another one, but goes on from its facts. What was erased, or refused by a provider, is nobody's words: what stands for it is not told.
    """

    def __init__(self, facts: Facts | None = None, sources: Sources | None = None, *, begun: bool = False) -> None:
        """Begin.

        Args:
            facts: What a record knew.
            sources: Gives blocks as they were recorded, or None.
            begun: True when the user had spoken before the first exchange that is taken: his first words there are then not his goal,
                which only the facts of a record can tell.
        """
        self._sources = sources
        self._begun = begun
        self._goal: Said | None = None
        self._last: Said | None = None
        self._asks: dict[str, Said] = {}
        self._rules: dict[str, Said] = {}
        self._files: dict[str, File] = {}
        self._commands: dict[str, Command] = {}
        self._troubles: list[Trouble] = []
        self._unanswered: list[Said] = []
        self._summaries: list[Said] = []
        self._running: Said | None = None
        self._asked: tuple[Block, ToolCallContent] | None = None
        self._more: dict[str, int] = {}
        if facts is not None:
            self._resume(facts)

    def _resume(self, facts: Facts) -> None:
        """Go on from the facts of a record, which are older than all that comes."""
        if self._goal is None:
            self._goal = facts.goal
        elif facts.goal is not None:
            self._ask(facts.goal)
        self._last = facts.last or self._last
        for said in facts.asks:
            self._ask(said)
        self._rules |= {said.text: said for said in facts.rules}
        self._files |= {file.path: file for file in facts.files}
        self._commands |= {command.run: command for command in facts.commands}
        self._troubles += facts.troubles
        self._unanswered += facts.unanswered
        self._summaries += facts.summaries
        self._running = _newer(self._running, facts.running)
        self._more = {name: self._more.get(name, 0) + count for name, count in facts.more.items()} | {
            name: count for name, count in self._more.items() if name not in facts.more
        }

    def facts(self) -> Facts:
        """Give what is known now, as much of it as is carried."""
        return self.known().bounded()

    def known(self) -> Facts:
        """Give all that is known now."""
        return Facts(
            goal=self._goal,
            asks=tuple(self._asks.values()),
            rules=tuple(self._rules.values()),
            files=tuple(self._files.values()),
            commands=tuple(self._commands.values()),
            troubles=tuple(self._troubles),
            unanswered=tuple(self._unanswered),
            summaries=tuple(self._summaries),
            running=self._running,
            last=self._last,
            more=dict(self._more),
        )

    def take(self, exchanges: Iterable[Exchange]) -> Recorder:
        """Take exchanges, the oldest first."""
        for exchange in exchanges:
            if exchange.derived:
                self._derived(exchange)
            elif exchange.role is Role.ASSISTANT:
                self._work(exchange)
            elif exchange.observes:
                self._output(exchange)
            elif exchange.role is Role.USER:
                self._words(exchange)
        return self

    # --- words ----------------------------------------------------------------------------------------------------------

    def _derived(self, exchange: Exchange) -> None:
        for block in exchange.blocks():
            again = block.origin is not None and block.derived in {"record", "notice"}
            if block.facts:
                self._resume(Facts.from_json(block.facts))
            elif again and isinstance(block.content, TextContent):
                self._resume(facts_of(block.content.content))
            if (running := running_of(block)) is not None:
                self._running = _newer(self._running, running)
            by_code = again or block.derived in _OURS or (block.derived in {"record", "summary"} and block.facts)
            if not by_code and isinstance(block.content, TextContent) and not _unsaid(block, block.content):
                self._summaries.append(_said(block, block.content.content))

    def _words(self, exchange: Exchange) -> None:
        """Take what stands in the user's turn: his own words only."""
        untold = False
        for block in exchange.blocks():
            content = self._recorded(block)
            if block.speaker is not Speaker.HUMAN or not isinstance(content, TextContent):
                continue
            if _unsaid(block, content):
                untold = True
                continue
            own = spoken(outside(content.content))
            if not own.strip():
                continue
            said = _said(block, own)
            if self._goal is None and not self._begun:
                self._goal = said
            else:
                self._ask(said)
            for rule in rules(own):
                self._rules.pop(rule, None)  # said again: it is the newest
                self._rules[rule] = Said(said.at, rule)
        self._begun |= untold  # what he says in the next turn is not what he began with

    def _ask(self, said: Said) -> None:
        """Take an ask; one that was made before, word for word, is the same one again."""
        words = " ".join(said.text.split()).casefold()
        before = self._asks.pop(words, None)
        if before is not None and before.at != said.at:
            said = replace(said, times=before.times + said.times)
        self._asks[words] = said

    # --- work -----------------------------------------------------------------------------------------------------------

    def _work(self, exchange: Exchange) -> None:
        results = self._results(exchange)
        self._asked = asked_for(exchange)
        for block in exchange.turns[0].blocks:
            content = self._recorded(block)
            if isinstance(content, TextContent) and not _unsaid(block, content):
                self._last = _said(block, content.content)
            elif isinstance(content, ToolCallContent):
                self._call(block, content, results.get(block.origin))

    def _output(self, exchange: Exchange) -> None:
        """Take what a tool gave back in a text protocol."""
        if self._asked is None:
            return
        block, call = self._asked
        for answer in exchange.blocks():
            content = self._recorded(answer)
            if isinstance(content, TextContent):
                self._call(block, call, replace(answer, content=result_of(content, call), reason=None))
        self._asked = None

    def _results(self, exchange: Exchange) -> Mapping[Handle | None, Block]:
        """Give the result of each call: they stand in the order of the calls."""
        calls = [block.origin for block in exchange.turns[0].blocks if isinstance(block.content, ToolCallContent)]
        answers = [block for turn in exchange.turns[1:] for block in turn.blocks]
        return dict(zip(calls, answers, strict=False))

    def _call(self, block: Block, call: ToolCallContent, answer: Block | None) -> None:
        done, at = deed(call), _place(block)
        result = None if answer is None or answer.derived else self._recorded(answer)
        if answer is None or not isinstance(result, ToolResultContent):
            self._unanswered.append(Said(at, done.run or done.of))
            self._ran(done, at, "no result")
            return
        ended = outcome(result)
        self._ran(done, at, ended)
        if ended == "ok" or done.run:  # of a command that failed, nobody knows how far it came
            self._touched(done, at)
        self._ended(done, answer, result, failed=ended != "ok")

    def _touched(self, done: Deed, at: str) -> None:
        for path in (*done.read, *done.wrote):
            before = self._files.pop(path, File(path))
            change = {"wrote": at} if path in done.wrote else {"read": at}
            self._files[path] = replace(before, **change)

    def _ran(self, done: Deed, at: str, ended: str) -> None:
        if done.run:
            before = self._commands.pop(done.run, None)
            self._commands[done.run] = Command(at, done.run, ended, 1 if before is None else before.times + 1)

    def _ended(self, done: Deed, answer: Block, result: ToolResultContent, *, failed: bool) -> None:
        """Open a trouble, or close those that this success ends."""
        at = _place(answer)
        if failed:
            line = error_line(result)
            self._troubles = [each for each in self._troubles if each.closed or (each.of, each.what) != (done.of, line)]
            self._troubles.append(Trouble(at, done.of, line))
        else:
            self._troubles = [
                replace(each, closed=at) if each.of == done.of and not each.closed else each for each in self._troubles
            ]

    def _recorded(self, block: Block) -> Content:
        """Give a block as it was recorded, where it is shown in another form and can be read."""
        return original(block, self._sources) or block.content


def original(block: Block, sources: Sources | None) -> Content | None:
    """Give what was recorded of a block that is shown in another form; None where it is shown as it was, cannot be read, or is told nowhere."""
    if block.reason is None or block.reason in _UNTOLD or block.origin is None or sources is None:
        return None
    return sources(block.origin)


def _unsaid(block: Block, content: TextContent) -> bool:
    """Tell whether a text stands for words that are told nowhere."""
    return block.reason in _UNTOLD or content.content == ERASED


def _place(block: Block) -> str:
    """Give the handle of a block, or of the first entry that a derived text was made from, with the whole id of the dialog."""
    if block.origin is not None:
        place = f"{block.origin.dialog}:{block.origin.seq}"
        return place if block.origin.block is None else f"{place}:{block.origin.block}"
    return f"{block.sources[0].dialog}:{block.sources[0].start}" if block.sources else ""


def running_of(block: Block) -> Said | None:
    """Give the summary that a block is, with the last entry that it was made from; None where a model of ours did not make it."""
    if block.derived != "summary" or block.facts != NOTHING or not isinstance(block.content, TextContent):
        return None
    text = block.content.content
    at = f"{block.sources[-1].dialog}:{block.sources[-1].stop - 1}" if block.sources else ""
    return Said(at, text[:_LONGEST_RUNNING], max(len(text) - _LONGEST_RUNNING, 0))


def _newer(one: Said | None, other: Said | None) -> Said | None:
    """Give the summary that was made later: of more of one dialog, or else the one that comes later."""
    if one is None or other is None:
        return other or one
    mine, theirs = (Handle.parse(said.at) if said.at else None for said in (one, other))
    if mine is None or theirs is None or mine.dialog != theirs.dialog:
        return other
    return one if mine.seq > theirs.seq else other


def _said(block: Block, text: str) -> Said:
    said = text.strip()
    return Said(_place(block), said[:_LONGEST], max(len(said) - _LONGEST, 0))
