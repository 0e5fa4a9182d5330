"""palaver tree: a session's dialogs."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.cli.options import JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.ids import DialogId
from palaver.session import Session
from palaver.session.branches.overview import tree_lines
from palaver.session.branches.tree import DialogTreeNode


def run(session: SessionArgument, store: StoreOption = None, json: JsonOption = False) -> int:
    """Draw the tree of a session's dialogs: forks, rewinds, sub-agents."""
    with opened(store) as source:
        found = Session.open(session, source)
        if not json:
            console = output()
            console.print(f"{found.name}  ({found.opened})")
            for line in _lines(found):
                console.print(line)
            return Exit.OK
        for node in source.nodes(found.session_id):
            last = source.last(node.dialog_id)
            print_json(
                {
                    "dialog": node.dialog_id,
                    "owner": node.owner,
                    "parent": node.parent_id,
                    "relation": node.relation,
                    "main": node.dialog_id == found.record.root,
                    "entries": last.seq + 1,
                    "messages": node.inherited + last.number,
                    "ranges": [[span.dialog, span.start, span.stop] for span in node.ranges],
                }
            )
    return Exit.OK


def _lines(session: Session) -> Iterator[str]:
    """Give the tree, a line a dialog: how it came to be, and whether it is the one that commands take when none is named."""
    nodes = {node.dialog_id: node for node in session.store.nodes(session.session_id)}
    counts = {name: node.inherited + session.store.last(name).number for name, node in nodes.items()}
    for root in (node for node in session.tree.values() if node.is_root):
        for dialog_id, line in zip(_order(root), tree_lines(root, lambda name: counts[DialogId(name)]), strict=True):
            main = "; view, show and export take it" if dialog_id == session.record.root else ""
            yield f"{line}  ({nodes[DialogId(dialog_id)].relation}{main})"


def _order(root: DialogTreeNode) -> Iterator[str]:
    """Give the dialogs in the order of the lines: each before those forked from it."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node.dialog_id
        waiting.extend(reversed(node.children))
