"""One turn on the screen: its events as they come, questions about calls that need a decision, and Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from palaver.agent import AgentCallSession, AgentEvent, Decision, decide
from palaver.cli.bill import Bill
from palaver.cli.chat.lines import Lines
from palaver.cli.chat.overheard import overheard
from palaver.cli.chat.rows import event_row
from palaver.cli.chat.screen import JsonScreen, Screen, one_line
from palaver.cli.chat.showing import Showing
from palaver.cli.chat.talk import Talk
from palaver.cli.outcome import Exit, exit_code
from palaver.errors import (
    AgentFailure,
    AuthenticationFailed,
    CallbackFailed,
    InfeasibleBudget,
    ModelCallFailed,
    PalaverError,
)
from palaver.messages import ToolCallContent

__all__ = ["answer", "decide_about"]

_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "openai": "OPENAI_API_KEY",
        "anthropic": "ANTHROPIC_API_KEY",
        "google": "GEMINI_API_KEY or GOOGLE_API_KEY",
    }
)
"""Where the vendors' clients look for a key. Source: each client's own documentation; nothing here reads them."""

_ARGUMENTS = 2_000
"""Characters of a call's arguments that a question shows."""


def answer(talk: Talk, screen: Screen, lines: Lines, *, agree: bool = False) -> Exit:
    """Have the agent answer, ask the user about calls that need it, and tell how it ended.

    Whatever happens the chat goes on: what failed is told in a line.

    Args:
        talk: The chat.
        screen: Where it is shown.
        lines: Where answers to questions come from.
        agree: Whether calls that need a decision run without a question.
    """
    while True:
        try:
            session = _turn(talk, screen)
        except KeyboardInterrupt:
            _interrupted(talk, screen)
            return Exit.INTERRUPTED
        except PalaverError as error:
            _failed(error, screen)
            return exit_code(error)
        if session.state == "waiting":
            if not decide_about(talk, screen, lines, agree=agree):
                return Exit.OK
        elif not session.late:
            return Exit.OK


def _turn(talk: Talk, screen: Screen) -> AgentCallSession:
    """Run a turn to its end, or to the point where somebody must decide.

    Each event is shown before the next step is taken. Ctrl-C interrupts the turn, and it has ended when this returns.
    """
    agent = talk.agent
    agent.stream_handler = _rows(screen) if isinstance(screen, JsonScreen) else Showing(screen).event
    try:
        with overheard(screen):
            session = agent.respond(return_session=True)
    except CallbackFailed as error:
        if isinstance(error.error, OSError):  # the terminal or the reader of the pipe is gone
            raise error.error from error
        raise
    finally:
        screen.end_line()
    if not screen.json:
        _sum_up(session, screen)
    return session


def _rows(screen: JsonScreen) -> Callable[[AgentEvent], None]:
    return lambda event: screen.row(event.type, **event_row(event))


def _sum_up(session: AgentCallSession, screen: Screen) -> None:
    bill = Bill()
    for invoked in session.invokes:
        if invoked.message is not None:
            bill.add(invoked.message)
    if bill.read or bill.written:
        screen.note(f"  {bill}")


def _interrupted(talk: Talk, screen: Screen) -> None:
    turn = talk.turn
    begun = [call.name for call in turn.pending if call.id in turn.started]
    unknown = f" {', '.join(begun)} had begun: what it did is unknown, and the model is told so." if begun else ""
    screen.note(f"Interrupted; the session is kept.{unknown} Say something, or /continue.", "yellow")


def _failed(error: PalaverError, screen: Screen) -> None:
    inner = getattr(error, "error", None)
    told = inner if isinstance(error, AgentFailure) and isinstance(inner, PalaverError) else error
    if isinstance(told, InfeasibleBudget):
        parts = ", ".join(f"{name} {size:,}" for name, size in told.breakdown.items())
        screen.fail(f"{told.needed:,} tokens must be sent, and the budget is {told.budget:,}: {parts}. {told.hint}")
        return
    if isinstance(told, AuthenticationFailed):
        screen.fail(told.message)
        where = _KEYS.get(told.provider, "the variable that the model's provider names")
        screen.note(f"  Its client takes the key from {where}. Then: /continue.")
        return
    screen.fail(told)
    if isinstance(error, ModelCallFailed) and error.place:
        screen.note(
            f"  It is about {error.place}. /quarantine sets that block aside and tries again; the log keeps it."
        )
    if isinstance(error, AgentFailure) and not screen.json:
        screen.note("  The session is whole. /continue tries again; /model SPEC asks another model.")


# --- decisions ----------------------------------------------------------------------------------------------------------------


def decide_about(talk: Talk, screen: Screen, lines: Lines, *, agree: bool) -> bool:
    """Have somebody decide about the calls that wait; tell whether all of them are decided."""
    for call in talk.undecided:
        decision = Decision(by="--yes") if agree else _asked(call, screen, lines)
        if decision is None:
            how = "/continue asks again." if lines.asks else "/approve or /deny it, here or in a later chat."
            screen.note(f"{call.name} waits for a decision, and is kept waiting. {how}", "yellow")
            return False
        decide(talk.dialog, call.id, decision)
    return True


def _asked(call: ToolCallContent, screen: Screen, lines: Lines) -> Decision | None:
    """Ask the user about one call; None where he did not decide."""
    if not lines.asks:
        return None
    screen.note(f"? {call.name} {one_line(_spelt(call.args), _ARGUMENTS)}", "yellow")
    try:
        while (said := lines.ask("  Run it? y(es), n(o), e(dit) its arguments: ")) is not None:
            match said.lower():
                case "y" | "yes":
                    return Decision(by="user")
                case "n" | "no":
                    reason = lines.ask("  Why not? (for the model; Enter for no reason) ")
                    return Decision(decision="deny", by="user", reason=reason or "")
                case "e" | "edit":
                    changed = _edited(call, screen, lines)
                    if changed is not None:
                        return Decision(decision="edit", by="user", arguments=changed)
                case _:
                    screen.note("  Type y, n or e; Ctrl-C leaves it undecided.")
    except KeyboardInterrupt:
        screen.note("")
    return None


def _edited(call: ToolCallContent, screen: Screen, lines: Lines) -> Mapping[str, Any] | None:
    """Have the user write other arguments; None where what he writes is no JSON object."""
    said = lines.ask("  Arguments (a JSON object): ", _spelt(call.args))
    try:
        read = json.loads(said or "")
    except ValueError as error:
        screen.note(f"  That is no JSON: {error}.", "red")
        return None
    if not isinstance(read, dict):
        screen.note('  Arguments are a JSON object, such as {"path": "notes.txt"}.', "red")
        return None
    return read


def _spelt(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=dict)
