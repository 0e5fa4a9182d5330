"""The dialogs of a Claude Code session while they are written: each is opened when its first entry comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from palaver.formats.claude_code.names import NAME
from palaver.formats.claude_code.survey import ROOT, Survey
from palaver.formats.claude_code.tree import Branching, Tree
from palaver.formats.dialogs import DialogWriter, Origin
from palaver.formats.events import Branch, Event
from palaver.log import Entry
from palaver.messages import Message


class Standing(NamedTuple):
    """How a dialog stands: how many entries it has of its own, and the model and permission mode in force."""

    puts: int = 0
    model: str = ""
    mode: str = ""


class Writing:
    """Opens dialogs and writes into them, by their numbers in the tree."""

    def __init__(self, survey: Survey, tree: Tree) -> None:
        self._survey = survey
        self._tree = tree
        self._writers: dict[int, DialogWriter] = {}
        self._standing: dict[int, Standing] = {}
        self._begun: dict[int, Standing] = {}
        self._left = {dialog.leaves: Standing() for dialog in tree.dialogs if dialog.parent >= 0}

    def open(self, dialog: int) -> Iterator[Event]:
        """Open a dialog, and before it the one it leaves; an open one stays as it is."""
        if dialog in self._writers:
            return
        branching = self._tree.dialogs[dialog]
        if branching.parent >= 0:
            yield from self.open(branching.parent)
            yield self._fork(dialog, branching)
        else:
            yield from self._lane(dialog)

    def _fork(self, dialog: int, branching: Branching) -> Branch:
        left = self._begun[branching.lane] if branching.leaves == ROOT else self._left[branching.leaves]
        parent = self._writers[branching.parent]
        self._writers[dialog] = DialogWriter(branching.key, NAME, parent=parent, at=left.puts)
        self._standing[dialog] = left._replace(puts=0)
        owner = self._owner(branching.lane)
        return Branch(dialog=branching.key, parent=parent.key, at=left.puts, owner=owner, relation="fork")

    def _lane(self, lane: int) -> Iterator[Event]:
        """Open the first dialog of a lane, with the tools that its agent called."""
        key = self._tree.dialogs[lane].key
        if lane == self._tree.root:
            yield Branch(dialog=key, owner=self._owner(lane))
        else:
            call = self._survey.started_by.get(self._survey.lane_names[lane], "")
            caller = self._survey.callers.get(call, ROOT)
            starter = self._tree.root if caller == ROOT else self._tree.of_node[caller]
            yield from self.open(starter)
            about = {"call": call} if call else {}
            parent = self._tree.dialogs[starter].key
            yield Branch(dialog=key, parent=parent, owner=self._owner(lane), relation="subagent", metadata=about)
        self._writers[lane] = DialogWriter(key, NAME)
        self._standing[lane] = Standing()
        yield self._writers[lane].declare(self._survey.stubs.get(lane), self._survey.about.started_at)
        self.stands(lane)
        self._begun[lane] = self._standing[lane]

    def _owner(self, lane: int) -> str:
        name = self._survey.lane_names[lane]
        call = self._survey.started_by.get(name, "")
        return self._survey.agents.get(call, "") or (NAME if lane == self._tree.root else name)

    def writer(self, dialog: int) -> DialogWriter:
        """Give the writer of an open dialog."""
        return self._writers[dialog]

    def standing(self, dialog: int) -> Standing:
        """Tell how an open dialog stands."""
        return self._standing[dialog]

    def stands(self, dialog: int, **changes: str) -> None:
        """Take notice of how an open dialog stands now."""
        puts = self._writers[dialog].count
        self._standing[dialog] = self._standing[dialog]._replace(puts=puts, **changes)

    def passed(self, node: int, dialog: int) -> None:
        """Take notice that a record was read: a fork may leave its dialog here."""
        if node in self._left:
            self._left[node] = self._standing.get(dialog, Standing())

    def put(self, dialog: int, entry: Entry, origin: Origin, *, counted: int = 0) -> Iterator[Event]:
        """Put an entry into a dialog."""
        yield from self.open(dialog)
        yield self._writers[dialog].put(entry, origin, counted=counted)
        self.stands(dialog)

    def say(self, dialog: int, message: Message, origin: Origin, *, counted: int = 0) -> Iterator[Event]:
        """Put a message into a dialog."""
        yield from self.open(dialog)
        yield from self._writers[dialog].say(message, origin, counted=counted)
        self.stands(dialog)
