"""Assign each record to a dialog: rewinds are forks, parallel tool calls are not."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from palaver.formats.claude_code.survey import MAIN, ROOT, ClaudeCodeSurvey


class LineBranch(NamedTuple):
    """A dialog of the session.

    Attributes:
        key: The reader's key: `main`, the lane's name, or `fork:` and the id of the record that a fork begins with.
        lane: The number of the lane it belongs to.
        parent: The number of the dialog it forks from; -1 for the first dialog of a lane.
        leaves: The node after which it forks; `ROOT` for the very beginning.
    """

    key: str
    lane: int
    parent: int = -1
    leaves: int = ROOT


class BranchTree:
    """The dialogs of a session, and the dialog of each node.

    A node with several children is a fork only if more than one child leads to a prompt of the user: a rewind. All other children
    (parallel calls, their results, progress) are one conversation in the order of the file. The child recorded first stays in its
    parent's dialog, so that a file that grows keeps its dialogs.

    Attributes:
        dialogs: The dialogs; those of the lanes come first, in the order of `ClaudeCodeSurvey.lanes`.
        of_node: The number of the dialog of each node.
        root: The number of the conversation's first dialog.
        main: The number of the dialog with the conversation's newest record.
        linear: True if the file names no parents, so that only its order is known.
    """

    def __init__(self, survey: ClaudeCodeSurvey) -> None:
        self.dialogs = [LineBranch(name, lane) for lane, name in enumerate(survey.lanes)]
        self.of_node = array("q")
        roots = sum(1 for parent in survey.parents if parent == ROOT)
        self.linear = roots > 2 and roots * 2 > len(survey.parents)  # noqa: PLR2004 - a rewind to the start or two is no such file
        self._place(survey)
        self.root = survey.lane_of[0] if survey.lane_of and 0 not in survey.lane_of else 0
        if self.root:
            self.dialogs[self.root] = self.dialogs[self.root]._replace(key=MAIN)
        newest = max((node for node, lane in enumerate(survey.lane_of) if lane == self.root), default=ROOT)
        self.main = self.of_node[newest] if newest != ROOT else self.root

    def _place(self, survey: ClaudeCodeSurvey) -> None:
        leads = _leads_to_prompts(survey)
        keys = list(survey.nodes)
        continued = bytearray(len(leads))
        began = bytearray(len(self.dialogs))
        for node, parent in enumerate(survey.parents):
            lane = survey.lane_of[node]
            if self.linear:
                self.of_node.append(lane)
                continue
            here, occupied = (lane, began[lane]) if parent == ROOT else (self.of_node[parent], continued[parent])
            if leads[node] and occupied:
                self.dialogs.append(LineBranch(f"fork:{keys[node]}", lane, here, parent))
                here = len(self.dialogs) - 1
            elif leads[node] and parent == ROOT:
                began[lane] = 1
            elif leads[node]:
                continued[parent] = 1
            self.of_node.append(here)


def _leads_to_prompts(survey: ClaudeCodeSurvey) -> bytearray:
    """Return for each node whether it is, or leads to, a prompt of the user."""
    leads = bytearray(survey.prompts)
    for node in range(len(leads) - 1, -1, -1):
        parent = survey.parents[node]
        if leads[node] and parent != ROOT:
            leads[parent] = 1
    return leads
