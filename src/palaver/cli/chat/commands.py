"""The commands of a chat, one table. Each one looks, or adds to the log; none removes anything from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from palaver.agent import Decision, decide
from palaver.cli.chat.talk import Talk
from palaver.cli.compact import lines_of
from palaver.cli.show import recalled
from palaver.cli.terminal import money
from palaver.context import Policy, policy
from palaver.errors import InvalidInput, NotFound
from palaver.messages import thaw
from palaver.plurals import counted
from palaver.tools.portal import run_sync
from palaver.transcripts.markdown import markdown

ANSWER, QUIT = "answer", "quit"
"""What a command may ask for: that the turn continues, or that the chat ends."""


def run_command(talk: Talk, line: str) -> str:
    """Run a command, and return `ANSWER`, `QUIT` or an empty string.

    Raises:
        NotFound: There is no such command.
        PalaverError: The command failed; nothing was written.
    """
    name, _, words = line.strip().partition(" ")
    if name not in COMMANDS:
        raise NotFound(name, what="command", hint="/help lists them. A message may begin with a space.")
    return COMMANDS[name][1](talk, words.strip()) or ""


def _agreed(talk: Talk, asked: str) -> bool:
    """Return whether the user agrees to what was previewed. In a pipe it is done: all of it can be undone."""
    return not talk.screen.terminal or talk.screen.lines.ask(f"{asked} y(es), n(o): ").lower() in {"y", "yes"}


def _number(words: str) -> int:
    if not words.isdecimal() or not int(words):
        raise InvalidInput(f"{words!r} is not a number from 1.")
    return int(words)


def _fork(talk: Talk, _words: str) -> None:
    talk.talk_on(talk.dialog.fork())


def _switch(talk: Talk, words: str) -> None:
    talk.talk_on(talk.session.dialog(words))


def _tree(talk: Talk, _words: str) -> None:
    talk.screen.show(talk.session.tree_overview())


def _rewind(talk: Talk, words: str) -> None:
    preview = talk.rewind(_number(words or "1"))
    talk.screen.note(str(preview))
    if _agreed(talk, "Rewind?"):
        talk.talk_on(preview.apply())


def _compact(talk: Talk, words: str) -> None:
    agent, compaction = talk.agent, talk.dialog.compaction
    summarizer = agent.options.summarizer
    manager = policy(agent.context_manager, agent.model, runtime=agent.runtime)
    if isinstance(manager, Policy) and manager.asks_provider:
        talk.screen.note(f"The provider compacted the conversation: {agent.compact()}. /rewind goes back before it.")
        return
    if summarizer is None:
        preview = compaction.preview(agent.context_manager, model=agent.model)
    else:
        asked = partial(compaction.apreview, summarizer, agent.context_manager, model=agent.model, focus=words)
        preview = run_sync(asked)
    talk.screen.note("\n".join(lines_of(preview)))
    if not preview.worthwhile:
        preview.reject("it would not be smaller")
        raise InvalidInput("There is nothing to gain.", hint="Compact when the conversation has grown.")
    if _agreed(talk, "Compact?"):
        preview.approve()
        talk.screen.note("Compacted. /undo takes it back.")
    else:
        preview.reject("the user said no")


def _undo(talk: Talk, _words: str) -> None:
    talk.dialog.compaction.undo()
    talk.screen.note("The newest compaction is undone; /redo takes that back.")


def _redo(talk: Talk, _words: str) -> None:
    talk.dialog.compaction.redo()
    talk.screen.note("The compaction is in force again.")


def _view(talk: Talk, words: str) -> None:
    dialog, agent = talk.dialog, talk.agent
    if words:
        if _number(words) > len(dialog.calls):
            raise NotFound(words, what="call", hint=f"There are {len(dialog.calls)}.")
        body = thaw(dialog.calls[int(words) - 1].request().body)
        talk.screen.show(json.dumps(body, ensure_ascii=False, indent=2))
        return
    view = dialog.view(agent.context_manager, agent.budget, model=agent.model)
    talk.screen.show("".join(markdown(talk.session.store, talk.session.record, view)))
    tokens, left = dialog.compaction.meter(agent.model).view(view).total, len(view.omissions)
    talk.screen.show(f"{counted(tokens, 'token')} (estimated), {counted(left, 'omission')}; {len(dialog.calls)} calls.")


def _recall(talk: Talk, words: str) -> None:
    talk.screen.show("".join(recalled(talk.agent.store, words)).rstrip())


def _quarantine(talk: Talk, words: str) -> str:
    marked = talk.dialog.marks.quarantine(words)
    talk.screen.note(f"{words} is set aside by entry {marked}; the log keeps it.")
    return _continue(talk, "")


def _model(talk: Talk, words: str) -> None:
    if words:
        talk.ask_model(words)
    talk.screen.note(f"{talk.spec} answers.")


def _cost(talk: Talk, _words: str) -> None:
    cost = talk.session.cost
    talk.screen.show(
        f"{cost.prompt_tokens:,} tokens read, {cost.completion_tokens:,} written, {money(cost.cost) or '$0'}"
    )


def _continue(talk: Talk, _words: str) -> str:
    return ANSWER if talk.unfinished() else ""


def _decide(decision: str, talk: Talk, words: str) -> str:
    waiting = talk.agent.waiting
    if not waiting:
        raise InvalidInput("No call waits for a decision.")
    made = Decision(decision="deny", by="user", reason=words) if decision == "deny" else Decision(by="user")
    decide(talk.dialog, waiting[0].id, made)
    return ANSWER


def _help(talk: Talk, _words: str) -> None:
    talk.screen.show("\n".join(f"{name} {told}" for name, (told, _) in COMMANDS.items()))


COMMANDS: Mapping[str, tuple[str, Callable[[Talk, str], str | None]]] = MappingProxyType(
    {
        "/fork": ("- fork here and talk on the new branch", _fork),
        "/switch": ("BRANCH - talk on another branch", _switch),
        "/tree": ("- list the branches of this session", _tree),
        "/rewind": ("[N] - go back to before your last N messages, on a new branch", _rewind),
        "/compact": ("[FOCUS] - make what the model sees smaller; a summarizer dwells on FOCUS", _compact),
        "/undo": ("- take the newest compaction back", _undo),
        "/redo": ("- take the undo back", _redo),
        "/view": ("[N] - show what the model would see now, or the request of its call N", _view),
        "/recall": ("HANDLE - show the original of what was left out", _recall),
        "/quarantine": ("HANDLE - set aside a block that a provider refuses, and go on", _quarantine),
        "/model": ("[SPEC] - show which model answers, or have another one answer", _model),
        "/cost": ("- show tokens and dollars so far", _cost),
        "/continue": ("- continue a turn that was interrupted or failed", _continue),
        "/approve": ("- let the call run that waits for a decision", partial(_decide, "approve")),
        "/deny": ("[REASON] - refuse it", partial(_decide, "deny")),
        "/help": ("- list the commands", _help),
        "/exit": ("- end the chat; the session is kept", lambda _talk, _words: QUIT),
    }
)
"""The commands by name: what the help says of each, and the function."""
