"""A chat on a pseudo-terminal, in a process of its own."""

from __future__ import annotations

import stat
from contextlib import closing

from palaver.agent.turn import read_turn
from palaver.session import Session
from palaver.store import open_store
from tests.cli.chats import Chats, call


def outcome(chats: Chats, name: str) -> tuple[bool, str]:
    """Return whether the turn of a session is open, and how it ended last."""
    with closing(open_store(str(chats.store), create=False)) as store:
        turn = read_turn(store, Session.open(store, name).newest.dialog_id)
        return turn.open, turn.outcome


def test_turn_is_streamed_with_thinking_and_calls(chats: Chats) -> None:
    """Thinking, the call, its result and the answer come in this order; Ctrl-D ends with 0; the history is the user's alone."""
    model = chats.script({"thinking": "I look.", **call("weather", city="Oslo")}, "It is cold.")
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "pelican") as here:
        here.expect("A new session 'pelican'")
        here.type("How is it?")
        for shown in ("I look.", '-> weather({"city":"Oslo"})', "<- weather", "Oslo: 7 degrees", "It is cold."):
            here.expect(shown)
        here.prompt()
        here.keys("\x04")
        here.expect("palaver chat --session")
        assert here.ended() == 0
        assert "\x1b[2mI look." in here.raw
    (history,) = (chats.folder / "data").rglob("chat_history")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_calls_are_approved_and_denied_in_place(chats: Chats) -> None:
    """Y runs a call, any other answer refuses it and is the reason for the model; arguments are shown escaped."""
    first = call("remove", "c1", path="a\x1b]0;owned\x07")
    model = chats.script(first, "One.", call("remove", "c2", path="b"), "Two.")
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "asked") as here:
        here.type("first")
        here.expect("? remove(")
        here.type("y", prompt="why not:")
        here.expect("is gone")
        here.expect("One.")
        here.type("second")
        here.type("it is mine", prompt="why not:")
        here.expect("it is mine")
        here.expect("Two.")
        here.type("/exit")
        assert here.ended() == 0
        assert "\x1b]0;owned" not in here.raw


def test_ctrl_c_stops_a_turn_and_nothing_is_lost(chats: Chats) -> None:
    """An interrupted call is unknown; the model is told so with the next message."""
    model = chats.script({"text": "I wait.", **call("hang")}, "I am back.")
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "hung") as here:
        here.type("wait")
        here.expect("-> hang")
        here.interrupt("Interrupted; the session is kept. What hang did is unknown")
        here.type("and now?")
        here.expect("[unknown]")
        here.expect("I am back.")
        here.type("/exit")
        assert here.ended() == 0
    assert outcome(chats, "hung") == (False, "final")


def test_killed_chat_is_resumed_in_the_middle_of_its_turn(chats: Chats) -> None:
    """After SIGKILL another process says so and continues the turn."""
    tools = chats.tools()
    with chats.terminal("--model", chats.script(call("hang")), "--tools", tools, "--session", "cut") as here:
        here.type("wait")
        here.expect("-> hang")
        here.process.kill()
    assert outcome(chats, "cut") == (True, "")
    with chats.terminal("--model", chats.script("I go on."), "--tools", tools, "--session", "cut") as here:
        here.expect("Its last turn is open.")
        here.expect("[unknown]")
        here.expect("I go on.")
        here.type("/exit")
        assert here.ended() == 0


def test_lines_are_pasted_completed_and_asked_about(chats: Chats) -> None:
    """Alt-Enter begins a new line, a paste is one message, Ctrl-C clears the line, Tab completes; a rewind asks first; NO_COLOR is respected."""
    model = chats.script(call("nope"), "One.", "Two.")
    with chats.terminal("--model", model, "-s", "typed", NO_COLOR="1") as here:
        here.prompt()
        here.keys("half a thou\x03")
        here.prompt()
        here.keys("first\x1b\rmiddle\x1b\nlast\r")
        here.expect("One.")
        here.prompt()
        here.keys("\x1b[200~third\nfourth\x1b[201~\r")
        here.expect("Two.")
        here.prompt()
        here.keys("/rew\t")
        here.expect("/rewind")
        here.keys("\r")
        here.type("n", prompt="Rewind? y(es), n(o):")
        here.prompt()
        here.keys("/exit\r")
        assert here.ended() == 0
        assert not any(f"\x1b[{colour}m" in here.raw for colour in (31, 33, 36))
    with closing(open_store(str(chats.store), create=False)) as store:
        said = [one.text_content() for one in Session.open(store, "typed").newest.messages if not one.tool_calls()]
        assert (said[0], *said[2:]) == ("first\nmiddle\nlast", "One.", "third\nfourth", "Two.")
