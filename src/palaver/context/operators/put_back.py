"""Put back: what a model recalled was left out once, and is left out again before anything else is. So recalling does not fill the view for good."""

from __future__ import annotations

import re

from palaver.context.ground import Ground, Layout
from palaver.context.operators.clear import Clear
from palaver.context.operators.operator import Edit, Loss, Operator
from palaver.context.operators.properties import Property
from palaver.log import Handle

__all__ = ["PUT_BACK", "RECALLING", "recalled_first"]

RECALLING = frozenset(
    {
        "recall",
        "search_history",
        "list_omitted",
        "conversation_search",
        "archival_memory_search",
        "file_read",
        "file_list",
        "file_glob",
        "file_grep",
    }
)
"""The tools that bring back what lies elsewhere (`palaver.session.memory`): what they gave can be had again by the same call."""

_NEWEST = 2
"""Results of them that stay: what was just brought back is what the model works on."""

_QUOTED = re.compile(r'<recalled handle="([0-9a-f]{6,32}:\d+(?::\d+)?)"')


def put_back(handle: Handle, text: str) -> str:
    """Give what stands for something that was recalled: where it came from, so that the model need not go by two ways."""
    found = _QUOTED.search(text)
    return f"[Put back: {len(text):,} characters; recall {found[1] if found else handle}]"


def _edit(ground: Ground, upto: int, layout: Layout) -> Layout:
    if not any(tool.name in RECALLING for tool in ground.view.tools):
        return layout
    return _CLEAR(ground, upto, layout)


_CLEAR = Clear(keep=_NEWEST, only=RECALLING, words=put_back)

PUT_BACK = Operator("put back", Loss.REVERSIBLE, _edit, frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT}))
"""Puts back what was recalled, but for the newest."""


def recalled_first(edit: Edit) -> Edit:
    """Give an edit before which what was recalled is put back; where that makes room enough, nothing else is done."""

    def both(ground: Ground, upto: int, layout: Layout) -> Layout:
        after = PUT_BACK(ground, upto, layout)
        if layout.size > ground.room.high and after.size <= ground.room.enough:
            return after
        return edit(ground, upto, after)

    return both
