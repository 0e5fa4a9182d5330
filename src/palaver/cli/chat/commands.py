"""What begins with a slash: the commands of a chat, one table. Each looks, or adds to the log; none takes anything out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from palaver.agent import Decision, decide
from palaver.cli.chat.compacting import compact, undo
from palaver.cli.chat.keeping import constraints, pin
from palaver.cli.chat.lines import Lines
from palaver.cli.chat.looking import cost_lines, session_lines, tool_lines, tree_lines_of, view_of
from palaver.cli.chat.screen import Screen, one_line
from palaver.cli.chat.talk import Talk
from palaver.cli.recall import recalled
from palaver.errors import InvalidInput, ModelCallFailed, NotFound
from palaver.messages import Message, Role, ToolCallContent
from palaver.plurals import counted
from palaver.session import Dialog
from palaver.session.branches.rewinding import Rewind

__all__ = ["COMMANDS", "Command", "Next", "run_command"]

_GIST = 72
"""Characters of a message in a preview."""

_PREVIEW = 12
"""Lines of a preview."""


class Next:
    """What the chat does after a command."""

    READ = "read"
    """It takes the next message."""
    ANSWER = "answer"
    """The turn goes on."""
    QUIT = "quit"
    """It ends."""


@dataclass(frozen=True, slots=True)
class At:
    """What a command works on."""

    talk: Talk
    screen: Screen
    lines: Lines


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        usage: How it is typed.
        summary: What it does, one line.
        run: Does it, with the words behind its name.
    """

    usage: str
    summary: str
    run: Callable[[At, str], str | None]


def run_command(line: str, talk: Talk, screen: Screen, lines: Lines) -> str:
    """Run a command, and give what comes next.

    Raises:
        NotFound: There is no such command; the error has close matches.
        PalaverError: What it needs is not there.
    """
    name, _, words = line.partition(" ")
    known = COMMANDS.get(name)
    if known is None:
        near = get_close_matches(name, COMMANDS)
        raise NotFound(name, what="command", close=near, hint="/help lists them. (A message may begin with a space.)")
    return known.run(At(talk, screen, lines), words.strip()) or Next.READ


def agreed(at: At, question: str) -> bool:
    """Ask whether to do what was previewed; where nobody can be asked it is done, for all of it can be undone."""
    if not at.lines.asks:
        return True
    try:
        said = at.lines.ask(f"{question} y(es), n(o): ")
    except KeyboardInterrupt:
        said = None
    if (said or "").lower() in {"y", "yes"}:
        return True
    at.screen.note("Nothing was done.")
    return False


# --- branches -----------------------------------------------------------------------------------------------------------------


def _fork(at: At, words: str) -> None:
    before = at.talk.branch
    count = len(at.talk.fork(words).messages)
    held = f"{'all ' if count > 1 else ''}{counted(count, 'message')}"
    at.screen.note(f"On the branch {at.talk.branch!r} now, with {held}. /switch {before} goes back.")


def _switch(at: At, words: str) -> None:
    if not words:
        raise InvalidInput("/switch needs the name of a branch.", hint="/tree lists them.")
    dialog = at.talk.switch(words)
    at.screen.note(f"On the branch {at.talk.branch!r} now: {counted(len(dialog.messages), 'message')}.")
    tail = dialog.tail
    if tail is not None:
        at.screen.note(f"  the last: {_gist(tail)}")


def _tree(at: At, _words: str) -> None:
    at.screen.show_lines(tree_lines_of(at.talk))


def _rewind(at: At, words: str) -> None:
    back = _number(words or "1", "/rewind")
    cut = at.talk.cut(back)
    at.screen.note(
        f"Before your last {'message' if back == 1 else f'{back} messages'}; these would not be seen on the new branch:"
    )
    shown = [f"  - {_gist(message)}" for message in cut.gone]
    hidden = len(shown) - _PREVIEW
    for text in shown if hidden <= 0 else [*shown[:_PREVIEW], f"  … {hidden} more"]:
        at.screen.note(text)
    for told in _done_since(cut.looked):
        at.screen.note(told)
    if not agreed(at, f"Rewind {counted(len(cut.gone), 'message')}?"):
        return
    before = at.talk.branch
    at.talk.rewind(cut)
    at.screen.note(
        f"On the branch {at.talk.branch!r} now, with {counted(cut.kept, 'message')}. Nothing is lost: /switch {before} goes back."
    )


def _done_since(looked: Rewind[Dialog]) -> Iterator[str]:
    """Say what tools did that a rewind does not take back, as far as their calls name it."""
    did = [f"wrote {one.path}" for one in looked.files if one.wrote]
    did += [f"ran {one_line(command, _GIST)}" for command in looked.commands]
    if did:
        yield f"  What tools did stays done: {', '.join(did[:_PREVIEW])}{' …' if len(did) > _PREVIEW else ''}."


def _gist(message: Message) -> str:
    text = message.text_content()
    if not text.strip():
        text = " ".join(
            f"[{block.name} {block.arguments}]" for block in message.contents if isinstance(block, ToolCallContent)
        )
    if message.role is Role.TOOL:
        text = " ".join(result.text() for result in message.tool_results())
    return f"{'you' if message.role is Role.USER else message.name}: {one_line(text, _GIST)}"


def _number(words: str, command: str) -> int:
    if not words.isdecimal() or int(words) < 1:
        raise InvalidInput(f"{command} takes a number from 1, not {words!r}.")
    return int(words)


# --- the model's view ---------------------------------------------------------------------------------------------------------


def _compact(at: At, words: str) -> None:
    compact(at.talk, at.screen, words, lambda question: agreed(at, question))


def _undo(at: At, _words: str) -> None:
    undo(at.talk, at.screen)


def _view(at: At, words: str) -> None:
    match words.split():
        case []:
            at.screen.show_lines(view_of(at.talk, None))
        case ["--call", number]:
            at.screen.show_lines(view_of(at.talk, _number(number, "/view --call")))
        case _:
            raise InvalidInput("/view takes nothing, or --call N.", hint="/view shows what the model would see now.")


def _quarantine(at: At, words: str) -> str | None:
    """Set a block aside, by default the one that the newest refusal is about; the turn that it broke is tried again."""
    dialog = at.talk.dialog
    failed = at.talk.agent.last_call and at.talk.agent.last_call.error
    named = words or (failed.place if isinstance(failed, ModelCallFailed) else "")
    if not named:
        raise InvalidInput(
            "No refusal named a block.", hint="Name one: /quarantine HANDLE. /view shows what stands where."
        )
    reason = str(failed.error) if isinstance(failed, ModelCallFailed) and named == failed.place else ""
    marked = dialog.quarantine(named, reason)
    at.screen.note(f"{named} is set aside ({marked}); `palaver quarantine --undo {named}` shows it again.")
    return Next.ANSWER if at.talk.unfinished() else None


# --- what stays, and what is brought back -------------------------------------------------------------------------------------


def _recall(at: At, words: str) -> None:
    if not words:
        raise InvalidInput("/recall needs a handle.", hint="Handles stand in what /view says of what was left out.")
    at.screen.show_lines(text.rstrip("\n") for text in recalled(at.talk.store, words))


def _constraints(at: At, words: str) -> None:
    constraints(at.talk, at.screen, words)


def _pin(at: At, words: str) -> None:
    pin(at.talk, at.screen, words)


# --- who answers, and what it costs -------------------------------------------------------------------------------------------


def _model(at: At, words: str) -> None:
    if words:
        at.talk.ask_model(words)
    at.screen.note(f"{at.talk.spec or at.talk.agent.model} answers{' from now on' if words else ''}.")


def _cost(at: At, _words: str) -> None:
    at.screen.show_lines(cost_lines(at.talk))


def _tools(at: At, _words: str) -> None:
    at.screen.show_lines(tool_lines(at.talk))


# --- the turn -----------------------------------------------------------------------------------------------------------------


def _continue(at: At, _words: str) -> str | None:
    if at.talk.unfinished():
        return Next.ANSWER
    at.screen.note("Everything is answered: there is nothing to go on with.")
    return None


def _approve(at: At, words: str) -> str | None:
    return _decided(at, words, Decision(by="user"))


def _deny(at: At, words: str) -> str | None:
    return _decided(at, "", Decision(decision="deny", by="user", reason=words))


def _decided(at: At, words: str, decision: Decision) -> str | None:
    waiting = at.talk.undecided if at.talk.unfinished() == "waiting" else ()
    chosen = [call for call in waiting if words in {"", call.id, call.name}]
    if not chosen:
        raise InvalidInput("No such call waits for a decision." if waiting else "No call waits for a decision.")
    for call in chosen:
        decide(at.talk.dialog, call.id, decision)
    return Next.ANSWER


# --- sessions, help, the end ----------------------------------------------------------------------------------------------------


def _sessions(at: At, _words: str) -> None:
    at.screen.show_lines(session_lines(at.talk))


def _save_as(at: At, words: str) -> None:
    if not words:
        raise InvalidInput("/save-as needs a name.")
    if at.talk.session is None:
        at.talk.name = words
    else:
        at.talk.session.rename(words)
    at.screen.note(f"The session is called {words!r}: `palaver chat --session {words!r}` takes it up again.")


def _help(at: At, _words: str) -> None:
    width = max(len(one.usage) for one in COMMANDS.values())
    at.screen.show_lines(_help_lines(width))


def _help_lines(width: int) -> Iterator[str]:
    for one in COMMANDS.values():
        yield f"{one.usage:<{width}}  {one.summary}"
    yield ""
    yield 'A line that ends with \\ goes on in the next; a line of """ begins and ends a block. Ctrl-C interrupts an answer,'
    yield "and clears the line at the prompt; twice, or Ctrl-D, ends the chat. Everything is kept."


def _quit(_at: At, _words: str) -> str:
    return Next.QUIT


_TABLE = (
    Command("/fork [NAME]", "branch off here and talk on the branch", _fork),
    Command("/switch NAME", "talk on another branch", _switch),
    Command("/tree", "the branches of this session", _tree),
    Command("/rewind [N]", "branch off before your last N messages, after a preview", _rewind),
    Command("/compact [FOCUS]", "make what the model sees smaller, after a preview; what names FOCUS stays", _compact),
    Command("/undo", "take the newest compaction back", _undo),
    Command("/recall HANDLE", "show what was left out, whole, by its handle", _recall),
    Command("/pin [HANDLE] [--undo]", "keep a message in what the model sees, or no longer; or list them", _pin),
    Command("/constraints [add TEXT | remove N]", "what you said must or must not be; change the list", _constraints),
    Command("/view [--call N]", "what the model would see now, or saw at its call N", _view),
    Command("/quarantine [HANDLE]", "set aside the block that was refused, or that you name, and go on", _quarantine),
    Command("/cost", "tokens and dollars so far", _cost),
    Command("/model [SPEC]", "who answers; or have another model answer", _model),
    Command("/tools", "what the model may call", _tools),
    Command("/continue", "go on with a turn that was interrupted or failed, or waits", _continue),
    Command("/approve [CALL]", "let calls run that wait for a decision", _approve),
    Command("/deny [REASON]", "refuse calls that wait for a decision", _deny),
    Command("/sessions", "the newest sessions of the store", _sessions),
    Command("/save-as NAME", "call this session NAME", _save_as),
    Command("/help", "this list", _help),
    Command("/quit", "end the chat; the session is kept", _quit),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({one.usage.partition(" ")[0]: one for one in _TABLE})
"""The commands by name."""
