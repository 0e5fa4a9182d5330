"""The turns of an agent: how a call begins one or goes on with it, and what a process remembers between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from palaver.agent.approvals import abandon, settle_without_person
from palaver.agent.claim import RUNNING, require_unclaimed
from palaver.agent.compacting import compacted
from palaver.agent.contract import offered, task_prompt
from palaver.agent.invoking import StreamHandler
from palaver.agent.limits import Guard, Ledger, Ledgers
from palaver.agent.options import CallSettings
from palaver.agent.run import AgentRun, Listeners
from palaver.agent.steps import go
from palaver.agent.trace import Trace
from palaver.agent.turn import TurnState, read_turn
from palaver.errors import InvalidInput, PalaverError
from palaver.ids import DialogId
from palaver.log import Handle
from palaver.messages import Role, ToolMessage, UserMessage
from palaver.prompts import Prompt, temporary_prompt
from palaver.session import Dialog
from palaver.tools import run_in_worker
from palaver.wire import Memo, Request


class AgentTurns:
    """Runs the turns of one agent.

    It remembers what only this process knows: the answers it returned, results that could not be written yet, the last request of the newest
    dialog, and what was spent.
    """

    def __init__(self) -> None:
        self._delivered: dict[DialogId, str] = {}
        self._unsaved: dict[tuple[str, str], ToolMessage] = {}
        self._last: dict[DialogId, tuple[tuple[Request, int] | None, Memo]] = {}
        self._ledgers: Ledgers = defaultdict(Ledger)

    def begin(
        self, dialog: Dialog, settings: CallSettings, text: str = ""
    ) -> tuple[Trace, Callable[..., Awaitable[None]]]:
        """Return the trace of a call, and the function that runs it. The turn begins with the text, if there is one."""
        trace = Trace(agent_name=settings.agent.name, dialog_id=dialog.dialog_id, dialog=dialog)
        if settings.within is not None and settings.within.trace is not None:
            settings.within.trace.subagents.append(trace)
        return trace, partial(self._answer, dialog, trace, settings, text)

    async def compact(self, dialog: Dialog, settings: CallSettings) -> Handle:
        """Compact a dialog between two turns, and return the entry."""
        guard = Guard(settings.options.all_limits, dialog, None, self._ledgers)
        with RUNNING.turn(dialog.store, dialog.dialog_id):
            return await compacted(dialog, settings, guard)

    async def _answer(
        self, dialog: Dialog, trace: Trace, settings: CallSettings, text: str, handler: StreamHandler | None = None
    ) -> None:
        agent = settings.agent
        agent.last_call = trace
        if agent.on_trace is not None:
            agent.on_trace(trace)
        with RUNNING.turn(dialog.store, dialog.dialog_id):
            try:
                await self._turn(dialog, trace, settings, text, handler)
                if settings.within is None and trace.delivery is not None:
                    self._delivered[dialog.dialog_id] = trace.delivery.id  # a sub-agent's may be asked for again
            except Exception as error:  # the trace records every failure
                if trace.state == "initial":  # it failed before the turn began: a tool, a server, the store
                    trace.state, trace.error = "failure", error
                if isinstance(error, PalaverError):  # those that are not an AgentFailure have the trace, too
                    vars(error).setdefault("trace", trace)
                raise

    def _was_answered(self, dialog: Dialog, turn: TurnState) -> bool:
        """Return whether the agent has already returned the newest answer, and no message followed."""
        return turn.over and turn.response is not None and self._delivered.get(dialog.dialog_id) == turn.response.id

    async def _turn(
        self, dialog: Dialog, trace: Trace, settings: CallSettings, text: str, handler: StreamHandler | None
    ) -> None:
        agent, options = settings.agent, settings.options
        abandoned = bool(settings.call.get("abandon"))
        # who may continue a call's turn may continue those of its sub-agents
        free = bool(settings.call.get("take_over")) or settings.within is not None
        looked = partial(_looked, dialog, agent.system_prompt, asked=bool(text), free=free, abandoned=abandoned)
        turn, empty = await run_in_worker(looked)
        if not text and not turn.inbox and (self._was_answered(dialog, turn) or empty):
            raise nothing_new()
        trace.resumed = turn.began >= 0
        outer = None if settings.within is None else settings.within.guard
        guard = Guard(options.all_limits, dialog, turn, self._ledgers, outer)
        former, seen = dialog.top_prompt, turn.seen
        said = None
        if text:
            (said,) = dialog.opened.stamped(UserMessage(content=text))
        if text and not turn.open and not turn.pending:
            dialog.top_prompt = temporary_prompt(text)
        before = dialog.top_prompt
        task = task_prompt(dialog, turn, settings)
        measured, memo = self._last.get(dialog.dialog_id) or (None, Memo())
        try:
            async with AsyncExitStack() as stack:
                prompt = task.resolve(agent.runtime)
                if agent.output is not None:
                    prompt = prompt.extend(path=prompt.path, format=agent.output)
                run = AgentRun(
                    settings=settings,
                    dialog=dialog,
                    turn=turn,
                    prompt=prompt,
                    toolbox=await offered(prompt, settings, stack),
                    trace=trace,
                    guard=guard,
                    said=said,
                    more=settings.call.get("more"),
                    listeners=Listeners((settings.tracer, options.stream_handler, handler)),
                    instructions=settings.instructions,
                    unsaved=self._unsaved,
                    undecided=set() if options.approve else set(turn.awaited),
                    measured=measured,
                    memo=memo,
                )
                try:
                    await go(run)
                finally:
                    # of the newest dialog only: a memo is as large as the conversation
                    self._last = {dialog.dialog_id: (run.measured, memo)}
        finally:
            if turn.seen == seen:  # nothing was written
                dialog.top_prompt = former
        if dialog.top_prompt is before:  # no prompt was put meanwhile: the one that governed the answer stays
            dialog.top_prompt = task


def _looked(dialog: Dialog, prompt: Prompt, *, asked: bool, free: bool, abandoned: bool) -> tuple[TurnState, bool]:
    """Return the state of a dialog's turn, after giving up the calls that wait if that was asked for, and whether there is nothing but a prompt.

    Raises:
        Busy: Another process is answering.
    """
    dialog.reload()
    log, name = dialog.opened.recent, dialog.dialog_id
    turn = read_turn(log, name, asked=asked)
    if not free:
        require_unclaimed(log, name, turn)
    if abandoned:
        abandon(dialog)
    if abandoned or (turn.outcome == "waiting" and not turn.open and turn.pending and settle_without_person(dialog)):
        dialog.opened.refresh()
        turn.catch_up(log, name)
    dialog.opened.prompt.prompt(prompt)  # what follows does not read it
    if asked or turn.inbox:
        return turn, False
    count = dialog.opened.count
    return turn, count == 0 or (count == 1 and dialog.messages[0].role is Role.SYSTEM)


def nothing_new(more: str = "") -> InvalidInput:
    """Return the error for a call without anything to answer."""
    hint = 'Say something first: respond("..."), receive("...") or messages=[...].'
    return InvalidInput("There is nothing new to answer.", hint=hint + more)
