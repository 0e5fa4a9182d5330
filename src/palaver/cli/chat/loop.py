"""The loop of a chat: read a message, run a command or show a turn, ask about calls that need a decision; Ctrl-C stops a turn."""

from __future__ import annotations

from contextlib import redirect_stdout

from palaver.agent import (
    AgentEvent,
    AnswerRefused,
    CallEnded,
    CallStarting,
    Compacted,
    Decision,
    Retrying,
    Trace,
    decide,
)
from palaver.agent.turn import read_turn
from palaver.cli.chat.commands import ANSWER, QUIT, run_command
from palaver.cli.chat.screen import Screen
from palaver.cli.chat.talk import Talk
from palaver.cli.outcome import Exit, exit_code
from palaver.cli.terminal import money
from palaver.errors import AgentFailure, PalaverError
from palaver.messages import ToolCallContent
from palaver.providers import TextDelta, ThinkingDelta
from palaver.store.titles import title

_LINES, _WIDTH = 8, 240
"""Lines of a tool's result that are shown, and characters of a line; the log has all of it."""


def converse(talk: Talk, *, commands: bool) -> Exit:
    """Chat until the end. A person at a terminal gets 0, a program how its last message ended.

    Args:
        talk: The chat.
        commands: Whether lines that begin with a slash are commands. Without them nobody can decide about a call, so a pipe ends there.
    """
    ended, wanted = _begin(talk), ""
    while commands or ended != Exit.FOUND:
        line = talk.screen.lines.message("> ")
        if line is None:
            break
        try:
            wanted = _obeyed(talk, line, commands=commands)
            ended = _answer(talk) if wanted == ANSWER else ended
        except PalaverError as error:
            talk.screen.note(f"! {talk.screen.cut(str(error), 600)}", "red")
            ended = exit_code(error)
        except KeyboardInterrupt:  # a moment too late to interrupt anything
            continue
        if wanted == QUIT:
            break
    if talk.new and len(talk.dialog.messages) <= bool(talk.agent.system_prompt.prompt):
        talk.session.delete()  # nothing was said
    elif talk.screen.terminal:
        talk.screen.note(f"Kept: `palaver chat --session {talk.session.session_id[:12]}` resumes it.")
    return Exit.OK if talk.screen.terminal else ended


def _begin(talk: Talk) -> Exit:
    """Greet, and continue what is left of the last turn; one that failed waits until somebody asks for it."""
    hint = " /help lists the commands; Ctrl-D ends." if talk.screen.terminal else ""
    name = f"{'A new session' if talk.new else 'Session'} {title(talk.session.store, talk.session.record)!r}"
    talk.screen.note(f"{name}, with {talk.spec}.{hint}")
    if left := talk.unfinished():
        talk.screen.note(f"Its last turn is {left}." if left != "failed" else "Its last turn failed: /continue it.")
    return _answer(talk) if left not in {"", "failed"} else Exit.OK


def _obeyed(talk: Talk, line: str, *, commands: bool) -> str:
    """Run a command, or receive a message; return what comes next."""
    if not line.strip():
        return ""
    if commands and line.startswith("/"):
        return run_command(talk, line)
    talk.agent.receive(line.removeprefix(" ") if commands and line.startswith(" /") else line)
    return ANSWER


def _answer(talk: Talk) -> Exit:
    """Have the agent answer, ask about calls that need a decision, and show how it ended. The chat survives every failure."""
    while True:
        try:
            trace = _turn(talk)
        except KeyboardInterrupt:
            turn = read_turn(talk.agent.store, talk.dialog.dialog_id)
            begun = ", ".join(call.name for call in turn.pending if call.id in turn.started)
            unknown = f" What {begun} did is unknown, and the model is told so." if begun else ""
            talk.screen.note(f"Interrupted; the session is kept.{unknown} Type a message, or /continue.", "yellow")
            return Exit.INTERRUPTED
        except PalaverError as error:
            hint = " /continue tries again; /model SPEC asks another model." if isinstance(error, AgentFailure) else ""
            talk.screen.note(f"! {talk.screen.cut(str(error), 600)}{hint}", "red")
            return exit_code(error)
        if trace.state == "waiting":
            if not _decided(talk):
                return Exit.FOUND
        elif not trace.late:
            return Exit.OK


def _turn(talk: Talk) -> Trace:
    """Run a turn to its end, or until somebody must decide. After Ctrl-C it has ended when this raises."""
    screen = talk.screen
    try:
        with redirect_stdout(screen), talk.agent.stream() as stream:
            for event in stream:
                _show(screen, event)
    finally:
        screen.end_line()
    cost = stream.trace.cost
    if cost.total_tokens:
        dollars = f", {money(cost.cost)}" if cost.cost else ""
        screen.note(f"  {cost.prompt_tokens:,} tokens read, {cost.completion_tokens:,} written{dollars}")
    return stream.trace


def _show(screen: Screen, event: AgentEvent) -> None:
    match event:
        case TextDelta(text=text) | ThinkingDelta(text=text):
            screen.more(event.type, text)
        case CallStarting(call=call):
            screen.note(f"-> {screen.cut(_words(call), _WIDTH)}", "cyan")
        case CallEnded():
            _show_result(screen, event)
        case Retrying(error=error):
            screen.note(f"! {screen.cut(error.message, _WIDTH)} Asking again …", "yellow")
        case AnswerRefused(error=error):
            screen.note(f"! The answer was refused ({screen.cut(error, _WIDTH)}); asking again …", "yellow")
        case Compacted(tokens_before=before, tokens_after=after):
            screen.note(f"! Compacted: {before:,} tokens -> {after:,}. /undo takes it back.", "yellow")


def _words(call: ToolCallContent) -> str:
    return f"{call.name}({call.arguments})"


def _show_result(screen: Screen, event: CallEnded) -> None:
    """Show the first lines of a result."""
    ending = "" if event.ending == "done" else f" [{event.ending}]"
    screen.note(f"<- {event.call.name}{ending}", "red" if event.result.is_error else "cyan")
    text = event.result.text()
    lines = text[: _LINES * _WIDTH * 4].splitlines()
    for line in lines[:_LINES]:
        screen.note(f"   {line[:_WIDTH]}")
    if len(lines) > _LINES or len(text) > _LINES * _WIDTH * 4:
        screen.note(f"   … {len(text):,} characters in all")


def _decided(talk: Talk) -> bool:
    """Have somebody decide about the calls that wait, and return whether all are decided."""
    for call in talk.agent.waiting:
        talk.screen.note(f"? {talk.screen.cut(_words(call), _LINES * _WIDTH)}", "yellow")
        said = "yes" if talk.yes else talk.screen.lines.ask("  Run it? y(es), n(o), or why not: ")
        if not said:
            talk.screen.note("It waits. /approve or /deny it, here or in a later chat; messages wait, too.", "yellow")
            return False
        reason = "" if said.lower() in {"n", "no"} else said
        denied = Decision(decision="deny", by="user", reason=reason)
        approved = Decision(by="--yes" if talk.yes else "user")
        decide(talk.dialog, call.id, approved if said.lower() in {"y", "yes"} else denied)
    return True
