"""Sub-agents: a tool that has another agent work in its own dialog, and returns only its answer.

The dialog is a child of the parent's in the tree and is named after the call it answers. A call that was cut off finds its dialog
again, and the sub-agent continues there: no request or tool call is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

from palaver.agent.agent import Agent
from palaver.agent.calls import LIMITED, SUSPENDED
from palaver.agent.turn import read_turn, subagent_dialog
from palaver.errors import AgentFailure, InvalidInput
from palaver.ids import DialogId
from palaver.log import Handle, Header, child_of, copy_of, lineage
from palaver.messages import Role
from palaver.session import Dialog, Session
from palaver.session.awaited import awaited
from palaver.session.incoming import rendered
from palaver.tools import CallContext, Function, ToolReply

Inherits: TypeAlias = Literal["nothing", "brief", "fork"]
"""What a sub-agent gets of its parent's conversation: only the task, also a brief, or everything."""

_TASK = {"type": "string", "description": "What to do, complete enough for somebody who knows nothing else."}
_BRIEF = {"type": "string", "description": "What there is to know for it: facts, constraints, what was tried."}
_DEEPEST = 8
"""The maximum depth of sub-agents: one that calls itself would never end."""


def subagent(
    agent: Agent[Any],
    name: str = "",
    description: str = "",
    *,
    inherits: Inherits = "nothing",
    prompt_args: Mapping[str, Any] | None = None,
) -> Function:
    """Return a tool that has another agent do a task and answer. Sub-agents may call sub-agents, eight deep.

    Args:
        agent: The agent that does the task, with its own prompt, model, tools and limits. Its own dialogs are not used.
        name: The tool's name. Default: the agent's name.
        description: The tool's purpose, for the model.
        inherits: What the sub-agent gets of the conversation that calls it. Its own instructions replace the caller's.
        prompt_args: The variables of its system prompt.

    Raises:
        InvalidInput: `agent` is not an agent, or `inherits` has an unknown value.
    """
    worker: object = agent
    if not isinstance(worker, Agent):
        raise InvalidInput(f"subagent() got {worker!r}.", hint="Pass an Agent.")
    if inherits not in {"nothing", "brief", "fork"}:
        raise InvalidInput(f"inherits is {inherits!r}.", hint="Use nothing, brief or fork.")
    properties = {"task": _TASK} | ({"brief": _BRIEF} if inherits == "brief" else {})

    async def work(context: CallContext, task: str, brief: str = "") -> ToolReply:
        store, words = context.dialog.store, f"{brief}\n\n{task}".strip()
        child = await awaited(store, partial(_dialog, context, agent, inherits, prompt_args, words))
        own = rendered(agent.system_prompt, prompt_args) if inherits == "fork" else ""
        try:
            trace = await agent.answer_in(child, within=context, instructions=own)
        except AgentFailure as failure:
            # the caller's turn ends at its limit, too, and when it continues, so does this one
            if failure.kind != "limit" or context.guard is None or not await awaited(store, context.guard.is_reached):
                raise
            return ToolReply(failure.message, metadata={SUSPENDED: child.dialog_id, LIMITED: True})
        if trace.state == "waiting" or trace.delivery is None:
            return ToolReply("It waits for a decision.", metadata={SUSPENDED: child.dialog_id})
        answer = await awaited(store, partial(_newest, child, lambda header: header.role == Role.ASSISTANT))
        return ToolReply(trace.delivery.text_content(), metadata={"dialog": child.dialog_id, **copy_of(answer)})

    return Function(
        name or agent.name,
        description or f"Have the agent {agent.name} do a task, and get its answer.",
        properties,
        tuple(properties),
        function=work,
        idempotent=True,  # a repeated call continues in the same dialog
        allow_repeat=True,
    )


# --- its dialog ------------------------------------------------------------------------------------------------------------


def _dialog(
    context: CallContext, agent: Agent[Any], inherits: Inherits, prompt_args: Mapping[str, Any] | None, words: str
) -> Dialog:
    """Return the dialog of a call: the existing one, or a new one with the task."""
    parent: Dialog = context.dialog
    session = Session.open(parent.store, parent.session_id, runtime=agent.runtime)
    key = read_turn(parent.store, parent.dialog_id).task(context.call_id)
    known = subagent_dialog(parent.store.nodes(parent.session_id), parent.dialog_id, key)
    child = session.dialog(known or _made(parent, agent, inherits, key))
    shares = inherits == "fork"
    if not shares and child.store.last(child.dialog_id).number == 0:
        child.put_prompt(agent.system_prompt, prompt_args, role=Role.SYSTEM, name="system")
    if child.store.last(child.dialog_id).number == (0 if shares else 1):
        asked = _newest(parent, lambda header: header.kind == "message" and context.call_id in header.calls)
        child.put_text(words, metadata=copy_of(asked))
    return child


def _newest(dialog: Dialog, wanted: Callable[[Header], bool]) -> list[Handle]:
    """Return the dialog's newest own entry with such a header, if there is one."""
    newest = filter(wanted, dialog.store.headers(dialog.dialog_id, reverse=True))
    return [Handle(dialog.dialog_id, header.seq) for header in islice(newest, 1)]


def _made(parent: Dialog, agent: Agent[Any], inherits: Inherits, key: Mapping[str, str]) -> DialogId:
    if _depth(parent) >= _DEEPEST:
        raise InvalidInput(f"Sub-agents are nested {_DEEPEST} deep, and no deeper.", hint="Do the task here.")
    shares = inherits == "fork"
    node = parent.store.node(parent.dialog_id)
    count = len(parent.messages) if shares else 0
    ranges = lineage(node, parent.store.last(parent.dialog_id).seq + 1) if shares else ()
    made = child_of(node, ranges, count, relation="subagent", owner=agent.name, metadata=dict(key))
    return parent.store.create_dialog(made).dialog_id


def _depth(parent: Dialog) -> int:
    """Count the sub-agents that enclose a dialog."""
    node, depth = parent.store.node(parent.dialog_id), 0
    while node.parent_id is not None:
        depth += node.relation == "subagent"
        node = parent.store.node(node.parent_id)
    return depth
