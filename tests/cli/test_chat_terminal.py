"""A chat on a real terminal, in a process of its own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from palaver.agent.turn import read_turn
from palaver.session import Session
from palaver.store import open_store
from tests.cli.chats import Chats, call


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Give chats over a store that is not there yet."""
    return Chats(tmp_path)


def outcome(chats: Chats, name: str) -> tuple[bool, str]:
    """Give whether the turn of a session is open, and how it ended last."""
    store = open_store(str(chats.store), create=False)
    try:
        turn = read_turn(store, Session.open(name, store).newest.dialog_id)
        return turn.open, turn.outcome
    finally:
        store.close()


def test_a_turn_is_streamed_with_thinking_and_calls(chats: Chats) -> None:
    """Thinking, the call with its arguments, its result and the answer come in this order; Ctrl-D ends with 0 and says how to go on."""
    model = chats.script({"thinking": "I look.", **call("weather", city="Oslo")}, "It is cold.")
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "pelican") as here:
        here.expect("A new session, called 'pelican'.")
        here.type("How is it?")
        for shown in ("I look.", '-> weather {"city":"Oslo"}', "<- weather", "Oslo: 7 degrees", "It is cold."):
            here.expect(shown)
        here.expect("> ")
        here.keys("\x04")
        here.expect("palaver chat --session")
        assert here.ended() == 0
        assert "\x1b[2mI look." in here.raw


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_there_is_none(chats: Chats, environment: dict[str, str]) -> None:
    """NO_COLOR and a dumb terminal get no style at all, also not at the prompt."""
    model = chats.script({"thinking": "I look.", "text": "Here."})
    with chats.terminal("--model", model, **environment) as here:
        here.type("Look")
        here.expect("Here.")
        here.type("/quit")
        assert here.ended() == 0
        assert not any(f"\x1b[{style}m" in here.raw for style in (0, 1, 2, 31, 33, 36))


def test_what_model_and_tool_say_is_never_obeyed(chats: Chats) -> None:
    """Escape sequences of an answer and of an error stand as pictures."""
    model = chats.script(call("raises"), "Done \x1b[31mred\x1b]0;title\x07.")
    with chats.terminal("--model", model, "--tools", chats.tools()) as here:
        here.type("Go")
        here.expect("the pipe ␛[31m burst")
        here.expect("Done ␛[31mred␛]0;title␇.")
        here.type("/quit")
        assert here.ended() == 0
        assert "\x1b]0;" not in here.raw
        assert "\x1b[31mred" not in here.raw


def test_what_tools_print_is_shown_and_not_obeyed(chats: Chats) -> None:
    """Prints of a tool and of programs that it starts are shown as text, between the call and its result."""
    model = chats.script(call("prints"), "So.")
    with chats.terminal("--model", model, "--tools", chats.tools()) as here:
        here.type("Go")
        here.expect("-> prints")
        said = here.expect("<- prints")
        assert "from a child" in said
        here.expect("So.")
        here.type("/quit")
        assert here.ended() == 0
        assert "from python ␛]0;owned␇" in here.text
        assert "on standard error" in here.text
        assert "\x1b]0;" not in here.raw


def test_a_call_is_approved_denied_and_edited_in_place(chats: Chats) -> None:
    """Y runs it, n refuses it with a reason for the model, e runs it with other arguments; nonsense is asked about again."""
    model = chats.script(
        call("remove", "c1", path="a"),
        "One.",
        call("remove", "c2", path="b"),
        "Two.",
        call("remove", "c3", path="c"),
        "Three.",
    )
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "asked") as here:
        here.type("first")
        here.expect('? remove {"path": "a"}')
        here.type("perhaps", prompt="arguments: ")
        here.type("y", prompt="arguments: ")
        here.expect("a is gone")
        here.expect("One.")
        here.type("second")
        here.type("n", prompt="arguments: ")
        here.type("it is mine", prompt="no reason) ")
        here.expect("user said: it is mine")
        here.expect("Two.")
        here.type("third")
        here.type("e", prompt="arguments: ")
        here.expect('object): {"path": "c"}')
        here.keys('\x01\x0b{"path": "d"}\r')  # to the beginning, delete to the end
        here.expect("d is gone")
        here.expect("Three.")
        here.type("/quit")
        assert here.ended() == 0


def test_ctrl_c_interrupts_the_turn_and_the_next_message_goes_on(chats: Chats) -> None:
    """An interrupted call is unknown; the model is told so with the next message."""
    model = chats.script({"text": "I wait.", **call("hang")}, "I am back.")
    with chats.terminal("--model", model, "--tools", chats.tools(), "--session", "hung") as here:
        here.type("wait")
        here.expect("-> hang")
        here.expect("{} …")
        here.interrupt("Interrupted; the session is kept. hang had begun")
        here.type("and now?")
        here.expect("[unknown]")
        here.expect("I am back.")
        here.type("/quit")
        assert here.ended() == 0
    assert outcome(chats, "hung") == (False, "final")


def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_ends(chats: Chats) -> None:
    """What was typed is thrown away, and nothing of it is sent; a second Ctrl-C ends with 0."""
    with chats.terminal("--model", chats.script("Yes.")) as here:
        here.expect("> ")
        here.keys("half a thou")
        here.expect("half a thou")
        here.interrupt("ends the chat.)")
        here.type("hello")
        here.expect("Yes.")
        here.expect("> ")
        here.interrupt("ends the chat.)")
        here.expect("> ")
        here.interrupt("Kept as")
        assert here.ended() == 0
    store = open_store(str(chats.store), create=False)
    (record,) = store.sessions()
    assert [message.text_content() for message in Session.open(record.session_id, store).root.messages] == [
        "hello",
        "Yes.",
    ]
    store.close()


def test_a_message_may_have_many_lines(chats: Chats) -> None:
    """A backslash goes on, three quotes make a block, and a pasted text is one message."""
    with chats.terminal("--model", chats.script("One.", "Two.", "Three."), "--session", "long") as here:
        here.type("a\\")
        here.type("b", prompt="… ")
        here.expect("One.")
        here.type('"""')
        here.type("c", prompt="… ")
        here.type("", prompt="… ")
        here.type("d", prompt="… ")
        here.type('"""', prompt="… ")
        here.expect("Two.")
        here.expect("> ")
        here.keys("\x1b[200~e\nf\x1b[201~\r")
        here.expect("Three.")
        here.type("/quit")
        assert here.ended() == 0
    store = open_store(str(chats.store), create=False)
    said = [message.text_content() for message in Session.open("long", store).root.messages]
    store.close()
    assert said[::2] == ["a\nb", "c\n\nd", "e\nf"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_chat_that_is_ended_from_outside_is_taken_up(chats: Chats, number: signal.Signals) -> None:
    """SIGTERM and SIGHUP leave the turn interrupted, SIGKILL open; another process says so and goes on."""
    tools = chats.tools()
    with chats.terminal("--model", chats.script(call("hang")), "--tools", tools, "--session", "cut") as here:
        here.type("wait")
        here.expect("{} …")
        here.process.send_signal(number)
        assert here.ended() == (-9 if number is signal.SIGKILL else 130)
    assert outcome(chats, "cut") == ((True, "") if number is signal.SIGKILL else (False, "interrupted"))

    with chats.terminal("--model", chats.script("I go on."), "--tools", tools, "--session", "cut") as here:
        here.expect("> wait")
        here.expect("going on with it.")
        here.expect("[unknown]")
        here.expect("I go on.")
        here.type("/quit")
        assert here.ended() == 0


def test_a_terminal_that_goes_away_leaves_the_session(chats: Chats) -> None:
    """Closing the window in the middle of a turn ends the chat, and the turn is interrupted."""
    with chats.terminal("--model", chats.script(call("hang")), "--tools", chats.tools(), "--session", "gone") as here:
        here.type("wait")
        here.expect("{} …")
        here.hang_up()
        here.ended()
    assert outcome(chats, "gone") == (False, "interrupted")


def test_a_waiting_call_is_decided_in_another_process(chats: Chats) -> None:
    """Ctrl-C at the question leaves the call waiting; the session, taken up by its id, asks again."""
    tools = chats.tools()
    with chats.terminal(
        "--model", chats.script(call("remove", path="a")), "--tools", tools, "--session", "later"
    ) as here:
        here.type("remove it")
        here.expect("arguments: ")
        here.interrupt("is kept waiting. /continue asks again.")
        here.expect("> ")
        here.keys("\x04")
        here.expect("--session ")
        session_id = here.expect("`")
        assert here.ended() == 0
    with chats.terminal("--model", chats.script("It is removed."), "--tools", tools, "--session", session_id) as here:
        here.expect("waits for a decision.")
        here.type("y", prompt="arguments: ")
        here.expect("a is gone")
        here.expect("It is removed.")
        here.type("/quit")
        assert here.ended() == 0


def test_branches_and_compaction_are_asked_about_and_nothing_is_lost(chats: Chats) -> None:
    """/fork, /rewind, /switch, /compact and /undo: previews, questions, and the way back."""
    model = chats.script(*(f"Answer {number}. {'word ' * 400}" for number in range(5)))
    with chats.terminal("--model", model, "--session", "tree") as here:
        for number in range(3):
            here.type(f"question {number}")
            here.expect(f"Answer {number}.")
        here.type("/fork side")
        here.expect("all 6 messages")
        here.type("/rewind 2", prompt="side> ")
        here.expect("you: question 1")
        here.type("n", prompt="n(o): ")
        here.expect("Nothing was done.")
        here.type("/rewind", prompt="side> ")
        here.type("y", prompt="n(o): ")
        here.expect("with 4 messages. Nothing is lost")
        here.type("/compact", prompt="rewind-1> ")
        here.expect(" tokens -> ")
        here.type("y", prompt="n(o): ")
        here.expect("Compacted: ")
        here.expect("by the policy palaver, without a summary")
        here.type("/undo", prompt="rewind-1> ")
        here.expect("Taken back")
        here.type("/switch side", prompt="rewind-1> ")
        here.expect("6 messages")
        here.type("/swich", prompt="side> ")
        here.expect("Close: /switch")
        here.type("/quit", prompt="side> ")
        assert here.ended() == 0


def test_commands_are_completed_and_lines_are_remembered(chats: Chats) -> None:
    """The tabulator completes a command; the arrow gives the last line of an earlier chat back."""
    model = chats.script("Yes.")
    with chats.terminal("--model", model) as here:
        here.type("remember me")
        here.expect("Yes.")
        here.type("/se\t")
        here.expect("1")
        here.type("/quit")
        assert here.ended() == 0
    with chats.terminal("--model", model) as here:
        here.expect("> ")
        here.keys("\x1b[A\x1b[A\x1b[A\r")
        here.expect("Yes.")
        here.type("/quit")
        assert here.ended() == 0
        assert "remember me" in here.text
    history = chats.folder / "data" / "palaver" / "chat_history"
    assert history.stat().st_mode & 0o077 == 0
