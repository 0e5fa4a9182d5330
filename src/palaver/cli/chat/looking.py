"""What the looking commands show: the tree, the view, the cost, the tools, the sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from palaver.cli.bill import Bill
from palaver.cli.calls import numbered
from palaver.cli.chat.screen import one_line
from palaver.cli.chat.talk import Talk
from palaver.log import MessageEntry, decode_entry
from palaver.messages import thaw
from palaver.plurals import counted
from palaver.session.calls.composing import tokens_of
from palaver.session.compaction.attempts import summaries_of
from palaver.tools import Toolbox
from palaver.transcripts.markdown import markdown

__all__ = ["cost_lines", "session_lines", "tool_lines", "tree_lines_of", "view_of"]

_WIDTH = 60
"""Characters of a description."""

_SESSIONS = 20
"""Sessions that are listed."""


def tree_lines_of(talk: Talk) -> Iterator[str]:
    """Give the branches, each under the one it came from; a star marks the one that is talked on."""
    branches = talk.branches
    here = talk.dialog.dialog_id
    names = {node.dialog_id: name for name, node in branches.items()}
    depths: dict[str, int] = {}
    below: dict[str | None, list[str]] = {}
    for name, node in branches.items():
        below.setdefault(node.parent_id if node.parent_id in names else None, []).append(name)
    waiting = [(0, name) for name in reversed(below.get(None, []))]
    while waiting:
        depth, name = waiting.pop()
        node = branches[name]
        depths[name] = depth
        own = talk.store.last(node.dialog_id).number
        how = f", {node.inherited} of them from {names.get(node.parent_id, 'elsewhere')}" if node.parent_id else ""
        mark = "*" if node.dialog_id == here else " "
        yield f"{mark} {'  ' * depth}{name} ({node.dialog_id[:8]}): {counted(node.inherited + own, 'message')}{how}"
        waiting += [(depth + 1, child) for child in reversed(below.get(node.dialog_id, []))]


def view_of(talk: Talk, call: int | None) -> Iterator[str]:
    """Give what the model would see now, as Markdown; or the request of one of its calls, as JSON.

    Raises:
        NotFound: There is no such call.
        NotReproducible: Its request cannot be given back.
    """
    dialog = talk.dialog.reload()
    if call is not None:
        request = numbered(dialog.invocations, call).request()
        yield json.dumps(thaw(request.body), ensure_ascii=False, indent=2)
        return
    agent = talk.agent
    view = dialog.view(agent.context_manager, agent.budget, model=agent.model)
    yield "".join(markdown(talk.held.record, view)).rstrip()
    yield ""
    left = (
        f"; {counted(len(view.omissions), 'stretch is', 'stretches are')} left out"
        if view.omissions
        else "; nothing is left out"
    )
    calls = len(dialog.invocations)
    yield f"{counted(tokens_of(view, agent.model), 'token')} (estimated){left}. Calls of the model so far: {calls} (/view --call N)."


def cost_lines(talk: Talk) -> Iterator[str]:
    """Give what the session has used, by model, and what this branch holds of it; an answer that branches share counts once."""
    by_model: dict[str, Bill] = {}
    for node in talk.store.nodes(talk.held.session_id):
        for _, body in talk.store.bodies(node.dialog_id):
            entry = decode_entry(body)
            if isinstance(entry, MessageEntry) and entry.message.usage:
                by_model.setdefault(entry.message.model or "unknown", Bill()).add(entry.message)
            for model, usage in summaries_of(entry):
                by_model.setdefault(f"{model or 'unknown'}, for summaries", Bill()).use(usage, model, entry.at)
    branch = Bill()
    for message in talk.dialog.reload().messages:
        branch.add(message)
    rows = {**by_model, f"of them on {talk.branch!r}": branch}
    width = max(len(name) for name in rows)
    for name, bill in rows.items():
        yield f"{name:<{width}}  {counted(bill.answers, 'answer')}: {bill}"
    if any(bill.unpriced and not bill.dollars for bill in by_model.values()):
        yield "Where no dollars stand, neither the provider nor the price list has a price."


def tool_lines(talk: Talk) -> Iterator[str]:
    """Give the tools that the model may call."""
    resolved = talk.agent.system_prompt.resolve(talk.agent.runtime)
    box = Toolbox((*resolved.function_list, *talk.agent.tools))
    if not len(box):
        yield "No tools. --tools FILE.py and --mcp SERVER bring some."
    width = max((len(name) for name in box.names), default=0)
    for function in box:
        server = function.metadata.get("mcp")
        marks = [f"of {server['server']}"] if server else []
        marks += ["asks first"] if function.needs_approval else []
        marks += [f"unavailable: {why}"] if (why := function.unavailable()) else []
        told = f"  ({', '.join(marks)})" if marks else ""
        yield f"{function.name:<{width}}  {one_line(function.description, _WIDTH)}{told}"


def session_lines(talk: Talk) -> Iterator[str]:
    """Give the newest sessions; a star marks this one."""
    records = list(talk.store.sessions(limit=_SESSIONS))
    if not records:
        yield "No sessions yet."
    here = talk.session.session_id if talk.session is not None else ""
    for record in records:
        messages = sum(talk.store.last(node.dialog_id).number for node in talk.store.nodes(record.session_id))
        when = datetime.fromtimestamp(record.updated_at or record.created_at, UTC).strftime("%Y-%m-%d %H:%M")
        mark = "*" if record.session_id == here else " "
        yield f"{mark} {record.session_id[:12]}  {when}  {counted(messages, 'message ', 'messages'):>15}  {record.name}"
