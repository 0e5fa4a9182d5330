"""A chat over a pipe: each line is a message, answers go to standard output, and everything is kept."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from palaver.cli.chat.commands import COMMANDS
from palaver.log import decode_entry
from palaver.session import Session
from palaver.store import open_store
from tests.cli.chats import Chats, call
from tests.cli.commands import run


def said(chats: Chats, name: str) -> list[str]:
    """Return the messages of the newest branch of a session."""
    with closing(open_store(str(chats.store), create=False)) as store:
        return [f"{one.role}: {one.text_content()}" for one in Session.open(store, name).newest.messages]


def kinds(chats: Chats, name: str) -> list[str]:
    """Return the kinds of all entries of a session."""
    with closing(open_store(str(chats.store), create=False)) as store:
        nodes = store.nodes(Session.open(store, name).session_id)
        return [decode_entry(body).kind for node in nodes for _, body in store.bodies(node.dialog_id)]


def test_each_line_is_a_message(chats: Chats) -> None:
    """Standard output has the answers alone; thinking and calls go to standard error, and empty lines say nothing."""
    model = chats.script({"thinking": "Hm.", **call("weather", city="Oslo")}, "Seven degrees.", "Two\tlines.\nReally.")
    ran = chats.pipe("How warm?\n\nMore\n", "--model", model, "--tools", chats.tools(), "-s", "warm")
    assert (ran.code, ran.out) == (0, "Seven degrees.\nTwo\tlines.\nReally.\n")
    assert 'Hm.\n-> weather({"city":"Oslo"})\n<- weather\n   Oslo: 7 degrees\n' in ran.err
    assert said(chats, "warm")[-1] == "assistant: Two\tlines.\nReally."


def test_pipe_takes_lines_as_messages_only(chats: Chats) -> None:
    """Without --commands nothing that is piped in is a command, and a call that needs a decision ends the chat; the next one decides it."""
    model = chats.script("1", "2", call("remove", path="a"))
    ran = chats.pipe(b"/exit\n /model x\nRemove a.\n/approve\ny\n", "-m", model, "--tools", chats.tools(), "-s", "s")
    assert ran.code == 1
    assert said(chats, "s")[::2] == ["user: /exit", "user:  /model x", "user: Remove a."]
    assert "approval" not in kinds(chats, "s")
    assert "It waits." in ran.err
    again = chats.pipe("/approve\n", "-m", chats.script("Gone."), "--tools", chats.tools(), "-s", "s", "--commands")
    assert ("Its last turn is waiting." in again.err, "a is gone" in again.err, again.out) == (True, True, "Gone.\n")


def test_commands_of_a_pipe_need_the_option(chats: Chats) -> None:
    """With --commands calls are approved and denied by lines; a message with a space before its slash is a message."""
    model = chats.script(call("remove", "c1", path="a"), "One.", call("remove", "c2", path="b"), "Two.", "Three.")
    lines = "first\n/approve\nsecond\n/deny it is mine\n /deny\n/deny\n/exit\nnever\n"
    ran = chats.pipe(lines, "-m", model, "--tools", chats.tools(), "--commands", "-s", "s")
    assert ran.out == "One.\nTwo.\nThree.\n"
    assert "a is gone" in ran.err
    assert "it is mine" in ran.err
    assert "No call waits for a decision." in ran.err
    assert said(chats, "s")[-2:] == ["user: /deny", "assistant: Three."]


def test_message_waits_while_a_call_waits(chats: Chats) -> None:
    """A message does not cancel the call, and the model is not asked; both are delivered after the decision."""
    model = chats.script(call("remove", "c1", path="a"), "Gone, and here I am.")
    ran = chats.pipe(
        "Remove a.\nAre you there?\n/approve\n", "-m", model, "--tools", chats.tools(), "--commands", "-s", "s"
    )
    assert ran.out == "Gone, and here I am.\n"
    assert "messages wait, too" in ran.err
    assert said(chats, "s")[-3:] == ["tool: a is gone", "user: Are you there?", "assistant: Gone, and here I am."]


def test_what_models_and_tools_say_is_escaped(chats: Chats) -> None:
    """Control characters, C1 and bidirectional controls of answers, arguments, results and prints reach no terminal."""
    evil = "\x1b]0;owned\x07\x9b31m\u202e"
    model = chats.script(call("weather", city=evil), call("prints"), call("remove", path=evil), evil)
    ran = chats.pipe("Go\n", "-m", model, "--tools", chats.tools(), "--yes", "-s", "s")
    assert "approval" in kinds(chats, "s"), "agreement beforehand is recorded"
    assert not set("\x1b\x07\x9b\u202e") & set(ran.out + ran.err)
    assert "from python ␛]0;owned" in ran.err
    assert "\\u202e" in ran.out


def test_system_prompt_is_not_a_template(chats: Chats) -> None:
    """Braces of --system and of messages reach the log as they are; @FILE reads a file; a known session has its own prompt."""
    (chats.folder / "rules.txt").write_text("Answer {in} JSON: {}", encoding="utf-8")
    model = chats.script("{}")
    chats.pipe("Give {me}\n", "-m", model, "--system", "@rules.txt", "-s", "braces")
    assert said(chats, "braces") == ["system: Answer {in} JSON: {}", "user: Give {me}", "assistant: {}"]
    assert chats.pipe("", "-m", model, "--system", "Other", "-s", "braces").code == 3


def test_failed_provider_is_one_line_and_the_chat_goes_on(chats: Chats) -> None:
    """The error is shown in a line, the next message is answered, and the exit code is that of the last message."""
    failing = {"text": "Half of", "error": {"kind": "auth", "message": "a\nlong\nstory"}}
    ran = chats.pipe("One\nTwo\n", "-m", chats.script(failing, "Back."), "-s", "s")
    assert (ran.code, ran.out.endswith("Back.\n"), "error" in kinds(chats, "s")) == (0, True, True)
    assert next(line for line in ran.err.splitlines() if line.startswith("!")).startswith("! a long story")
    again = chats.pipe("One\n/continue\n/continue\n", "-m", chats.script(failing, "Now."), "--commands")
    assert again.out.endswith("Now.\n")
    assert chats.pipe("One\n", "-m", chats.script(failing)).code == 3


def test_session_remembers_its_model(chats: Chats) -> None:
    """A session is resumed by name without naming the model; /model changes it for the next chat, too."""
    other = chats.script("I am two.", name="two.json")
    chats.pipe(f"Who?\n/model {other}\nWho?\n", "-m", chats.script("I am one."), "-s", "m", "--commands")
    assert chats.pipe("Who?\n", "-s", "m").out == "I am two.\n"
    assert [line for line in said(chats, "m") if line.startswith("assistant")][-1] == "assistant: I am two."
    assert chats.pipe("Who?\n", "-s", "another").code == 3


def test_chat_resumes_what_other_commands_find(chats: Chats) -> None:
    """A dialog by its id; an entry is refused; only a name that nobody has begins a session."""
    model = chats.script("a1", "a2")
    chats.pipe("q1\n", "-m", model, "-s", "talk")
    made = run("branch", "fork", "talk", "--store", chats.store, "--json").row()["dialog"]
    assert chats.pipe("q2\n", "-s", made[:12]).code == 0
    tree = run("branch", "tree", "talk", "--store", chats.store, "--json").rows()
    assert {row["dialog"]: row["messages"] for row in tree}[made] == 4
    assert (chats.pipe("q\n", "-s", "talk:1").code, chats.pipe("q\n", "-s", "talk:99").code) == (3, 4)
    assert len(run("sessions", "--store", chats.store, "--json").rows()) == 1


def test_branches_keep_everything(chats: Chats) -> None:
    """/fork, /rewind and /switch make and find branches; nothing is taken from any of them."""
    lines = "q1\nq2\n/rewind\nq3\n/tree\n/rewind 9\n/rewind none\n/fork\nq4\n"
    ran = chats.pipe(lines, "-m", chats.script("a1", "a2", "a3", "a4"), "-s", "tree", "--commands")
    assert said(chats, "tree") == [f"{who}{n}" for n in (1, 3, 4) for who in ("user: q", "assistant: a")]
    assert "This branch has 2 messages of yours." in ran.err
    assert "'none' is not a number" in ran.err
    first = ran.out.split("[")[1][:8]
    back = chats.pipe(f"/switch {first}\nq5\n/switch 999999\n", "-m", chats.script("a5"), "-s", "tree", "--commands")
    assert "There is no" in back.err
    assert said(chats, "tree")[-4:] == ["user: q2", "assistant: a2", "user: q5", "assistant: a5"]


def test_compaction_is_undone_and_redone(chats: Chats) -> None:
    """/compact makes the view smaller by one entry, /undo and /redo are entries, too; /recall shows what left."""
    model = chats.script(*(f"{n} {'long ' * 400}" for n in range(6)))
    lines = "q0\nq1\nq2\nq3\nq4\nq5\n/compact\n/view\n/undo\n/redo\n/cost\n"
    ran = chats.pipe(lines, "-m", model, "-s", "c", "--commands", "--policy", "fold")
    assert "(policy fold)" in ran.err
    assert kinds(chats, "c").count("compaction") == 3
    assert "omission" in ran.out
    with closing(open_store(str(chats.store), create=False)) as store:
        handle = Session.open(store, "c").newest.messages.handle(1)
    found = chats.pipe(f"/recall {handle}\n/recall nonsense\n/view 1\n/view 99\n", "-s", "c", "--commands")
    assert found.out.startswith("0 long long")
    assert '"content": "q0"' in found.out
    assert found.err.count("!") == 2


def test_refused_block_is_set_aside(chats: Chats) -> None:
    """A refusal names its block; /quarantine sets it aside, and the model is asked again without it."""
    refusal = {"error": {"kind": "refused", "message": "messages.1.content: blocked by a filter", "status": 400}}
    chats.pipe("poison\n", "-m", chats.script(refusal), "-s", "bad", "--system", "Read.")
    with closing(open_store(str(chats.store), create=False)) as store:
        handle = Session.open(store, "bad").newest.messages.handle(1)
    ran = chats.pipe(f"/quarantine {handle}:0\n/view\n", "-m", chats.script("Fine."), "-s", "bad", "--commands")
    assert ran.out.startswith("Fine.\n")
    assert "poison" not in ran.out


def test_redacted_secret_reaches_no_file(chats: Chats) -> None:
    """A token that is typed, passed to a tool and said by the model is not in the store."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    model = chats.script(call("weather", city=token), f"The token is {token}.")
    assert chats.pipe(f"My token is {token}\n", "-m", model, "--redact", "--tools", chats.tools()).code == 0
    assert token.encode() not in b"".join(path.read_bytes() for path in chats.folder.glob("chat.db*"))


def test_wrong_options_make_no_session(chats: Chats) -> None:
    """What is named and missing, or wrong, ends the command before anything is written."""
    assert (chats.pipe("Hello\n").code, chats.store.exists()) == (2, False)
    for words, told in [
        (["-s", "new"], "No model is named."),
        (["-m", "opnai/gpt-5"], "'openai'"),
        (["-m", "scripted:a.json", "--tools", "broken.py"], "broken.py cannot be loaded: ZeroDivisionError"),
        (["-m", "scripted:a.json", "--mcp", "no-such-program-anywhere"], "no-such-program-anywhere"),
        (["-m", "scripted:a.json", "--system", "@missing.txt"], "missing.txt"),
        (["-m", "scripted:a.json", "--policy", "defalt"], "default"),
    ]:
        chats.script("Yes.", name="a.json")
        chats.tools("a = 1\na / 0\n", "broken.py")
        ran = chats.pipe("Hello\n", *words)
        assert (ran.code in {3, 4}, told in ran.err) == (True, True), ran.err
        with closing(open_store(str(chats.store))) as store:
            assert list(store.sessions()) == [], (words, told)


def test_chat_without_a_message_leaves_no_session(chats: Chats) -> None:
    """Commands that only look leave nothing behind; every command has its line in /help."""
    ran = chats.pipe("/help\n/tree\n/view\n/nope\n", "-m", chats.script("Yes."), "--system", "Be brief.", "--commands")
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("/")] == list(COMMANDS)
    assert "There is no command '/nope'." in ran.err
    with closing(open_store(str(chats.store), create=False)) as store:
        assert list(store.sessions()) == []


SERVER = """
from mcp.server import MCPServer
server = MCPServer("echoes")
@server.tool()
def echo(message: str) -> str:
    return f"Echo: {message}"
server.run()
"""


def test_tools_of_a_server_are_called(chats: Chats) -> None:
    """--mcp starts a program and offers its tools."""
    pytest.importorskip("mcp")
    (chats.folder / "server.py").write_text(SERVER, encoding="utf-8")
    ran = chats.pipe(
        "One\n", "-m", chats.script(call("echo", message="hello"), "Said."), "--mcp", f"{sys.executable} server.py"
    )
    assert ("   Echo: hello" in ran.err, ran.out) == (True, "Said.\n")
