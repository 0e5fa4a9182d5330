"""A chat over a pipe: one line a message, answers on standard output, everything kept, whatever goes wrong told in a line."""

from __future__ import annotations

import json
import subprocess
import typing
from pathlib import Path

import pytest

from palaver.agent import AgentEvent
from palaver.cli.chat.commands import COMMANDS
from palaver.cli.chat.rows import _FIELDS
from palaver.cli.chat.servers import declared
from palaver.errors import InvalidInput
from palaver.log import decode_entry
from palaver.session import Session
from palaver.store import Store, open_store
from tests.cli.chats import Chats, call
from tests.cli.commands import PROGRAM, Ran, run
from tests.tools import everything


@pytest.fixture
def chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chats:
    """Give chats over a store that is not there yet; nothing else of this machine counts."""
    monkeypatch.chdir(tmp_path)
    return Chats(tmp_path)


def said(chats: Chats, name: str) -> list[str]:
    """Give the messages of the branch of a session that was talked in last."""
    store = open_store(str(chats.store), create=False)
    try:
        return [f"{one.role}: {one.text_content()}" for one in Session.open(name, store).newest.messages]
    finally:
        store.close()


def logged(store: Store, session: str) -> list[str]:
    """Give the kinds of all entries of a session."""
    nodes = store.nodes(Session.open(session, store).session_id)
    return [decode_entry(body).kind for node in nodes for _, body in store.bodies(node.dialog_id)]


def fed(data: bytes, *words: object) -> Ran:
    """Run the command line in a child with this standard input."""
    ran = subprocess.run([*PROGRAM, *map(str, words)], input=data, capture_output=True, timeout=100, check=False)
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


# --- messages and answers -------------------------------------------------------------------------------------------------------


def test_each_line_is_a_message_and_answers_are_all_there_is(chats: Chats) -> None:
    """Standard output holds the answers alone: no prompt, no thinking, no calls; empty lines say nothing."""
    model = chats.script({"thinking": "Hm.", **call("weather", city="Oslo")}, "Seven degrees.", "Two lines.\nReally.")
    ran = chats.pipe("How warm?\n\nMore\n", "--model", model, "--tools", chats.tools(), "-s", "warm")
    assert ran.code == 0
    assert ran.out == "Seven degrees.\nTwo lines.\nReally.\n"
    assert '-> weather {"city":"Oslo"} …\n<- weather\n   Oslo: 7 degrees\n' in ran.err
    assert "> " not in ran.out
    assert said(chats, "warm")[-1] == "assistant: Two lines.\nReally."


def test_a_system_prompt_is_no_template(chats: Chats) -> None:
    """Braces of --system and of a message reach the log as they are; @FILE reads a file."""
    (chats.folder / "rules.txt").write_text("Answer {in} JSON: {}", encoding="utf-8")
    chats.pipe("Give {me}\n", "-m", chats.script("{}"), "--system", "@rules.txt", "-s", "braces")
    assert said(chats, "braces") == ["system: Answer {in} JSON: {}", "user: Give {me}", "assistant: {}"]


def test_lines_go_on_and_blocks_hold_together(chats: Chats) -> None:
    """A backslash at the end and three quotes work in a pipe, too; bytes that are no UTF-8 end nothing."""
    model = chats.script("1", "2", "3", "4")
    chats.pipe(b'a\\\nb\n"""\nc\n\n/quit\n"""\nd\xff\n /help me\n', "-m", model, "-s", "lines")
    assert said(chats, "lines")[::2] == ["user: a\nb", "user: c\n\n/quit", "user: d\ufffd", "user: /help me"]


def test_every_event_is_an_object(chats: Chats) -> None:
    """With --json each line is an object with a type, from the session to the end of the turn, also for commands and errors."""
    model = chats.script({"thinking": "Hm.", **call("prints")}, {"text": "So.", "usage": {"prompt_tokens": 7}})
    words = ("chat", "-m", model, "--tools", chats.tools(), "--store", chats.store, "--json")
    ran = fed(b"Go\n/tree\n/nope\nAgain\n", *words)
    rows = ran.rows()
    printed = "".join(row["text"] for row in rows if row["type"] == "printed")
    assert {"from python \x1b]0;owned\x07", "on standard error", "from a child"} <= set(printed.splitlines())
    assert ran.err == ""
    types = [row["type"] for row in rows]
    assert types[0] == "session"
    assert [name for name in types if name in {"thinking", "call_starting", "call_ended", "end", "turn_finished", "shown", "error"}] == [
        "thinking", "end", "call_starting", "call_ended", "end", "turn_finished", "shown", "error", "turn_finished", "error",
    ]  # fmt: skip
    done = next(row for row in rows if row["type"] == "turn_finished")
    assert (done["state"], done["text"], done["cost"]["read"]) == ("success", "So.", 7)
    assert [row["error"]["kind"] for row in rows if row["type"] == "error"] == ["NotFound", "ScriptExhausted"]


def test_the_rows_are_those_of_all_events() -> None:
    """Each member of the union of events has a row."""
    kinds = {kind.__dataclass_fields__["type"].default for kind in typing.get_args(AgentEvent)}
    assert set(_FIELDS) == kinds


def test_prices_are_told(chats: Chats) -> None:
    """/cost adds up what answers used, by model, with the list price where the provider says none."""
    answers = [{"text": "Yes.", "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 10}}] * 2
    ran = chats.pipe("One\nTwo\n/cost\n", "-m", chats.script(*answers))
    assert "2 answers: 2,000,000 tokens read, 20 written" in ran.out
    assert "neither the provider nor the price list has a price" in ran.out


# --- what goes wrong -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("raises", "[failed]"),
        ("binary", "bytes"),
        ("flood", "characters in all"),
        ("nowhere", "There is no tool 'nowhere'"),
    ],
)
def test_whatever_a_tool_does_the_chat_goes_on(chats: Chats, tool: str, shown: str) -> None:
    """A tool that raises, gives binary or a hundred megabytes, or is not there is told in a few lines, and the model is asked on."""
    model = chats.script(call(tool), "On we go.")
    ran = chats.pipe("Go\n", "-m", model, "--tools", chats.tools(), "--budget", "20000")
    assert shown in ran.err
    assert len(ran.err) < 10_000
    assert "\x1b" not in ran.err
    assert ran.code == 0 or "tokens must be sent" in ran.err


def test_a_process_that_a_tool_takes_along_is_taken_up(chats: Chats) -> None:
    """os._exit in a tool ends the chat; the session is whole, the call unknown, and the next chat goes on."""
    words = ("chat", "--tools", chats.tools(), "--session", "dead", "--store", chats.store)
    assert fed(b"Go\n", *words, "--model", chats.script(call("dies"))).code == 9
    again = chats.pipe("", "-m", chats.script("I live."), "--tools", chats.tools(), "-s", "dead")
    assert "Its last turn was cut off: going on with it." in again.err
    assert "[unknown]" in again.err
    assert again.out == "I live.\n"


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        ({"error": {"kind": "AuthenticationFailed", "message": "no such key"}}, "AuthenticationFailed", "no such key"),
        ({"error": {"kind": "ModelUnavailable", "message": "no such model"}}, "ModelUnavailable", "no such model"),
        (
            {"text": "Half of", "error": {"kind": "RequestRefused", "message": "a\nlong\nstory"}},
            "RequestRefused",
            "a long story",
        ),
    ],
)
def test_a_provider_that_fails_is_told_in_one_line(chats: Chats, answer: object, kind: str, told: str) -> None:
    """The line says what failed; the next message is answered; the failure is in the log."""
    model = chats.script(answer, "Back again.")
    ran = chats.pipe("One\nTwo\n", "-m", model, "-s", "failing")
    assert ran.code == 0
    assert next(line for line in ran.err.splitlines() if line.startswith("!")).startswith(f"! {told}")
    assert ran.out.endswith("Back again.\n")
    store = open_store(str(chats.store), create=False)
    assert "error" in logged(store, "failing")
    store.close()
    assert chats.pipe("Once\n", "-m", chats.script(answer), "-s", f"only-{kind}").code == 3


def test_a_provider_is_asked_again_and_it_is_said(chats: Chats) -> None:
    """A rate limit, and an answer that breaks off in the middle, are told, and the model is asked again."""
    limit = {"text": "Half an", "error": {"kind": "RateLimited", "message": "slow down", "retry_after": 0.01}}
    ran = chats.pipe("One\n", "-m", chats.script(limit, "A whole answer."))
    assert "! slow down Asking again …" in ran.err
    assert ran.out == "Half an\nA whole answer.\n"


def test_a_turn_that_failed_is_tried_again_when_asked(chats: Chats) -> None:
    """/continue asks again after a failure, and says so when everything is answered."""
    refused = {"error": {"kind": "RequestRefused", "message": "not today"}}
    ran = chats.pipe("One\n/continue\n/continue\n", "-m", chats.script(refused, "Now."))
    assert ran.out == "Now.\n"
    assert "there is nothing to go on with" in ran.err


def test_with_redact_a_secret_reaches_no_file_and_no_request(chats: Chats) -> None:
    """A token that is typed, given to a tool and said by the model: neither the store's files nor the recorded request holds it."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    model = chats.script(call("weather", city=token), f"The token is {token}.")
    ran = chats.pipe(f"My token is {token}\n", "-m", model, "-s", "kept", "--redact", "--tools", chats.tools())
    assert ran.code == 0
    assert token.encode() not in b"".join(path.read_bytes() for path in chats.folder.glob("chat.db*"))
    for shown in ("--wire openai-chat", "--call 2 --json"):
        seen = run("view", "kept", *shown.split(), "--store", chats.store).out
        assert "redacted:github-token" in seen
        assert token not in seen


def test_a_block_that_is_refused_is_set_aside_and_the_turn_is_tried_again(chats: Chats) -> None:
    """A refusal that names its block is told with the handle; /quarantine sets that block aside, and the model is asked again without it."""
    said = "messages.1.content: blocked by a filter"
    model = chats.script({"error": {"kind": "RequestRefused", "message": said, "status": 400}}, "Fine.")
    ran = chats.pipe(
        "poison\n/quarantine\n/quarantine\n/quarantine nonsense\n", "-m", model, "-s", "bad", "--system", "Read."
    )
    assert ran.out == "Fine.\n"
    assert "/quarantine sets that block aside" in ran.err
    assert "No refusal named a block" in ran.err
    assert "'nonsense' is no handle" in ran.err
    seen = run("view", "bad", "--store", chats.store).out
    assert "set aside" in seen
    assert "poison" not in seen


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-5-mini", "openai-responses/gpt-5-mini", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-pro"],
)
def test_a_missing_key_is_told_and_the_message_is_kept(chats: Chats, model: str) -> None:
    """Without a key each vendor's client says so in one line; the message is in the session."""
    ran = chats.pipe("Hello\n", "-m", model, "-s", "keyless")
    (line,) = [line for line in ran.err.splitlines() if line.startswith("!")]
    assert line
    assert "_API_KEY" in ran.err
    assert ran.code == 3
    assert said(chats, "keyless") == ["user: Hello"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 3, "Which model is to answer?"),
        (["-m", "opnai/gpt-5"], 3, "'openai'"),
        (["-m", "scripted:missing.json"], 3, "missing.json"),
        (["-m", "scripted:a.json", "--tools", "missing.py"], 3, "is no file"),
        (["-m", "scripted:a.json", "--tools", "broken.py"], 3, "broken.py:2 raised ZeroDivisionError"),
        (["-m", "scripted:a.json", "--tools", "syntax.py"], 3, "syntax.py:1 raised SyntaxError"),
        (["-m", "scripted:a.json", "--tools", "empty.py"], 3, "has no tools"),
        (["-m", "scripted:a.json", "--mcp", "no-such-program-anywhere"], 3, "no-such-program-anywhere"),
        (["-m", "scripted:a.json", "--mcp", "a 'b"], 3, "is no command"),
        (["-m", "scripted:a.json", "--system", "@missing.txt"], 3, "missing.txt"),
        (["-m", "scripted:a.json", "--policy", "defalt"], 4, "default"),
        (["-m", "scripted:a.json", "--agent", "clerk"], 3, "--config"),
        (["-m", "scripted:a.json", "--session", "0123456789ab"], 4, "0123456789ab"),
        (["-m", "scripted:a.json", "--config", "missing.yaml"], 4, "missing.yaml"),
    ],
)  # fmt: skip
def test_wrong_words_are_told_before_anything_is_made(chats: Chats, words: list[str], code: int, told: str) -> None:
    """What the command names and is not there, or is wrong, ends it with its exit code, and no session is made."""
    chats.script("Yes.", name="a.json")
    for name, text in (("broken.py", "a = 1\na / 0\n"), ("syntax.py", "def :\n"), ("empty.py", "a = 1\n")):
        chats.tools(text, name)
    ran = chats.pipe("Hello\n", *words)
    assert (ran.code, told in ran.err) == (code, True), ran.err
    store = open_store(str(chats.store))
    assert list(store.sessions()) == []
    store.close()


# --- sessions ----------------------------------------------------------------------------------------------------------------------


def test_nothing_said_makes_no_session(chats: Chats) -> None:
    """A chat that ends before its first message leaves nothing behind; looking commands say that nothing was said."""
    ran = chats.pipe("/tree\n/view\n/undo\n/fork\n/rewind\n/cost\n/compact\n/continue\n", "-m", chats.script("Yes."))
    assert ran.err.count("Nothing was said yet.") == 7
    store = open_store(str(chats.store), create=False)
    assert list(store.sessions()) == []
    store.close()


def test_a_session_is_taken_up_with_the_model_it_had(chats: Chats) -> None:
    """By name or id, with what was said last; the model need not be named again; --system is for new sessions."""
    model = chats.script("The first.", "The second.")
    chats.pipe("One\n", "-m", model, "-s", "kept")
    ran = chats.pipe("Two\n", "-s", "kept")
    assert "kept (" in ran.err
    assert "> One\nThe first." in ran.err
    assert said(chats, "kept") == ["user: One", "assistant: The first.", "user: Two", "assistant: The first."]
    assert "has its system prompt already" in chats.pipe("", "-s", "kept", "--system", "Be brief.").err


def test_a_new_name_is_a_new_session_and_close_ones_are_told(chats: Chats) -> None:
    """Whoever mistypes the name of a session sees at once that this is a new one."""
    model = chats.script("Yes.")
    chats.pipe("One\n", "-m", model, "-s", "pelican")
    assert (
        "A new session, called 'pelicn'. (There is one called 'pelican'.)"
        in chats.pipe("", "-m", model, "-s", "pelicn").err
    )


def test_a_session_gets_a_name_and_is_listed(chats: Chats) -> None:
    """/save-as names it, before or after the first message; /sessions lists it with a star."""
    ran = chats.pipe("/save-as early\nOne\n/save-as late\n/sessions\n/save-as\n", "-m", chats.script("Yes."))
    assert "called 'early'" in ran.err
    (row,) = [line for line in ran.out.splitlines() if line.startswith("*")]
    assert row.endswith("late")
    assert "/save-as needs a name" in ran.err


def test_an_unanswered_message_is_answered_when_the_session_is_taken_up(chats: Chats) -> None:
    """A process that died between the message and the turn owes an answer."""
    store = open_store(str(chats.store))
    Session.create(store, "owed").root.put_text("Are you there?")
    store.close()
    ran = chats.pipe("", "-m", chats.script("I am."), "-s", "owed")
    assert "Its last message was not answered: going on with it." in ran.err
    assert ran.out == "I am.\n"


# --- branches, view, compaction ---------------------------------------------------------------------------------------------------


def test_branches_have_names_that_last(chats: Chats) -> None:
    """/fork, /rewind and /switch make and find branches by name, in this chat and in the next; nothing is taken from any of them."""
    model = chats.script("a1", "a2", "b3", "c2")
    lines = "q1\nq2\n/fork other\nq3\n/rewind 2\nq2 again\n/tree\n"
    ran = chats.pipe(lines, "-m", model, "-s", "tree")
    tree = [line.partition(" (")[0] for line in ran.out.splitlines()[-3:]]
    assert tree == ["  main", "    other", "*     rewind-1"]
    assert said(chats, "tree") == ["user: q1", "assistant: a1", "user: q2 again", "assistant: c2"]
    again = chats.pipe("/switch other\n/view\n/switch nowhere\n/switch main\n/fork other\n", "-s", "tree")
    assert "On the branch 'other' now: 6 messages." in again.err
    assert "b3" in again.out
    assert "There are: main, other, rewind-1." in again.err
    assert "There is a branch 'other' already." in again.err


def test_a_rewind_never_parts_a_call_from_its_result(chats: Chats) -> None:
    """The cut stands before a message of the user, behind whole rounds of tools."""
    model = chats.script(call("weather", city="Oslo"), "Cold.", "Bye.", "Well.")
    chats.pipe("q1\nq2\n/rewind\nq3\n", "-m", model, "--tools", chats.tools(), "-s", "whole")
    assert said(chats, "whole") == [
        "user: q1", "tool_call: ", "tool: Oslo: 7 degrees", "assistant: Cold.", "user: q3", "assistant: Well.",
    ]  # fmt: skip


def test_a_rewind_to_the_very_beginning_keeps_nothing_and_loses_nothing(chats: Chats) -> None:
    """All messages can be taken back; the branch they stand on is still there."""
    chats.pipe("q1\nq2\n/rewind 2\nq3\n", "-m", chats.script("a1", "a2", "a3"), "-s", "anew")
    assert said(chats, "anew") == ["user: q3", "assistant: a3"]
    assert "On the branch 'main' now: 4 messages." in chats.pipe("/switch main\n", "-s", "anew").err


def test_a_rewind_says_what_stays_done(chats: Chats) -> None:
    """Files that tools wrote since are named in the preview: a rewind changes no file."""
    tools = chats.tools(
        "from palaver import tool\n\n\n@tool\ndef write_file(path: str, content: str) -> str:\n"
        '    """Write a file."""\n    return "written"\n',
        "writing.py",
    )
    model = chats.script("a1", call("write_file", path="notes.txt", content="x"), "Done.")
    ran = chats.pipe("q1\nwrite it\n/rewind\n", "-m", model, "--tools", tools)
    assert "What tools did stays done: wrote notes.txt." in ran.err


def test_too_far_back_is_told(chats: Chats) -> None:
    """/rewind knows how many messages there are, and takes numbers only."""
    ran = chats.pipe("q1\n/rewind 2\n/rewind none\n/rewind 0\n", "-m", chats.script("a1"))
    assert "You said 1 message in this branch." in ran.err
    assert ran.err.count("takes a number from 1") == 2


def test_a_compaction_keeps_what_names_the_focus_and_is_taken_back(chats: Chats) -> None:
    """/compact FOCUS makes the view smaller and leaves what holds the word; /undo brings everything back; the log only grew."""
    answers = [f"Answer {number}: {'word ' * 300}" for number in range(6)]
    answers[1] = f"The heron: {'word ' * 300}"
    lines = "".join(f"q{number}\n" for number in range(6))
    model = chats.script(*answers)
    ran = chats.pipe(f"{lines}/compact heron\n/view\n/undo\n/view\n/undo\n", "-m", model, "-s", "long")
    smaller, _, whole = ran.out.partition("tokens (estimated); ")[2].partition("tokens (estimated)")
    del smaller, whole
    first, second = ran.out.split("(/view --call N).")[:2]
    after = first[first.index("# long") :]
    assert "The heron" in after
    assert "Answer 2" not in after
    assert all(f"Answer {number}" in second for number in (0, 2, 3, 4, 5))
    assert "by the policy palaver, without a summary, for no summarizer is set. /undo takes it back." in ran.err
    assert "Taken back:" in ran.err
    assert len(said(chats, "long")) == 12


def test_nothing_to_compact_is_told(chats: Chats) -> None:
    """A conversation that is all needed is not compacted, and nothing stays pinned for having tried."""
    failing = chats.script({"error": {"kind": "RequestRefused"}})
    ran = chats.pipe("q1\n/compact q1\n", "-m", failing, "-s", "short")
    assert "There is nothing to gain" in ran.err
    store = open_store(str(chats.store), create=False)
    assert Session.open("short", store).root.pins == ()
    store.close()


def test_the_view_is_that_of_the_next_and_of_past_calls(chats: Chats) -> None:
    """/view shows what the model would see; --call N the request that was sent; a number that is not there is told."""
    ran = chats.pipe("q1\nq2\n/view\n/view --call 1\n/view --call 7\n/view all\n", "-m", chats.script("a1", "a2"))
    assert "Calls of the model so far: 2" in ran.out
    assert '"content": "q1"' in ran.out.partition("so far: 2")[2]
    assert '"content": "q2"' not in ran.out.partition("so far: 2")[2]
    assert "The dialog has 2 recorded calls." in ran.err
    assert "/view takes nothing, or --call N." in ran.err


# --- models, tools, configurations ------------------------------------------------------------------------------------------------


def test_another_model_answers_from_now_on(chats: Chats) -> None:
    """/model changes who answers, and the session remembers it; one that is none changes nothing."""
    first, second = chats.script("I am one."), chats.script("I am two.", "Still two.", name="two.json")
    ran = chats.pipe(f"Who?\n/model {second}\nWho?\n/model what/ever\nWho?\n/model\n", "-m", first, "-s", "models")
    assert ran.out == "I am one.\nI am two.\nStill two.\n"
    assert "names no model" in ran.err
    assert f"{second} answers." in ran.err
    assert chats.pipe("Who?\n", "-s", "models").out == "I am two.\n"


def test_tools_of_files_and_servers_stand_together(chats: Chats) -> None:
    """/tools lists what may be called, and who is asked first; two with one name are refused."""
    model = chats.script("Yes.")
    ran = chats.pipe("/tools\n", "-m", model, "--tools", chats.tools())
    assert "remove   Remove a file.  (asks first)" in ran.out
    assert chats.pipe("/tools\n", "-m", model).out.startswith("No tools.")
    twice = chats.pipe("", "-m", model, "--tools", chats.tools(), "--tools", chats.tools(name="more_tools.py"))
    assert (twice.code, "Two tools are called 'weather'" in twice.err) == (3, True)


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("npx -y @scope/server-files /tmp", "server-files"),
        ("node /srv/weather.js stdio", "weather"),
        ("node /srv/server-maps/dist/index.js", "server-maps"),
        ("https://tools.example.org/mcp", "tools_example_org"),
        ("/usr/bin/7tools", "server_7tools"),
    ],
)
def test_a_server_is_named_after_what_it_is(spec: str, label: str) -> None:
    """The label is the host or the program, spelt as a label may be; two servers never have the same."""
    one, two = declared([spec, spec])
    assert (one.server_label, two.server_label) == (label, f"{label}_2")


def test_a_server_that_is_nothing_is_refused() -> None:
    """An empty command is no server."""
    with pytest.raises(InvalidInput, match="empty"):
        declared([""])


@pytest.mark.skipif(everything.why_missing() is not None, reason=str(everything.why_missing()))
def test_a_server_is_connected_to_once_for_the_whole_chat(chats: Chats) -> None:
    """Several turns call the tools of one process, which ends with the chat; a configuration's servers are kept likewise."""
    script = f"echo $$ >> {chats.folder}/pids; exec node {everything.PROGRAM} stdio"
    (chats.folder / "agents.yaml").write_text(SERVED.format(script=script), encoding="utf-8")
    model = chats.script(*(answer for _ in range(3) for answer in (call("echo", message="hello"), "Said.")))
    words = ("-m", model, "--mcp", f"sh -c '{script}'")
    ran = chats.pipe("One\nTwo\nThree\n", *words)
    assert ran.err.count("   Echo: hello") == 3
    assert ran.out == "Said.\n" * 3
    again = chats.pipe("One\nTwo\n", "-m", model, "--config", "agents.yaml")
    assert again.err.count("   Echo: hello") == 2
    pids = (chats.folder / "pids").read_text(encoding="utf-8").split()
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


SERVED = """
agent_configs:
  - name: echoes
    model_name: some-model
    system_prompt: Echo.
    mcp_servers:
      - {{server_label: all, command: sh, args: [-c, "{script}"]}}
"""

CONFIG = """
global: {model_name: some-model, invoker: {invoker: scripted, script: [Well met.]}}
agent_configs:
  - {name: clerk, system_prompt: You are a clerk.}
  - {name: cook, system_prompt: You are a cook.}
"""


def test_an_agent_of_a_configuration_answers(chats: Chats) -> None:
    """--config and --agent choose who answers, by its own prompt and model; --model puts another one in its place."""
    (chats.folder / "agents.yaml").write_text(CONFIG, encoding="utf-8")
    ran = chats.pipe("Hello\n", "--config", "agents.yaml", "--agent", "cook", "-s", "kitchen")
    assert ran.out == "Well met.\n"
    assert said(chats, "kitchen")[0] == "system: You are a cook."
    other = chats.pipe("Hello\n", "--config", "agents.yaml", "--agent", "cook", "-m", chats.script("Another."))
    assert other.out == "Another.\n"
    assert "Choose with --agent: clerk, cook." in chats.pipe("", "--config", "agents.yaml").err
    assert chats.pipe("", "--config", "agents.yaml", "--agent", "cok").code == 4


# --- decisions --------------------------------------------------------------------------------------------------------------------


def test_a_call_that_needs_agreement_waits_in_a_pipe(chats: Chats) -> None:
    """Nobody can be asked: it waits, /approve and /deny decide, and without either it waits for another chat."""
    model = chats.script(call("remove", "c1", path="a"), "One.", call("remove", "c2", path="b"), "Two.")
    lines = "/approve\nfirst\n/approve\nsecond\n/deny it is mine\n/deny\n"
    ran = chats.pipe(lines, "-m", model, "--tools", chats.tools())
    assert ran.out == "One.\nTwo.\n"
    assert "a is gone" in ran.err
    assert "user said: it is mine" in ran.err
    assert ran.err.count("No call waits for a decision.") == 2


def test_agreement_given_beforehand_is_recorded(chats: Chats) -> None:
    """--yes runs every call, and the log says that it was agreed to in this way."""
    model = chats.script(call("remove", path="a"), "Done.")
    ran = chats.pipe("Go\n", "-m", model, "--tools", chats.tools(), "--yes", "-s", "agreed")
    assert ran.out == "Done.\n"
    store = open_store(str(chats.store), create=False)
    assert "approval" in logged(store, "agreed")
    store.close()


# --- help -------------------------------------------------------------------------------------------------------------------------


def test_help_lists_every_command(chats: Chats) -> None:
    """/help has a line for each command; what is close to one is told."""
    ran = chats.pipe("/help\n/forkk\n/\n", "-m", chats.script("Yes."))
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("/")] == list(COMMANDS)
    assert "Close: /fork." in ran.err


def test_a_reader_that_goes_away_ends_the_chat(chats: Chats) -> None:
    """A pipe that nobody reads any more ends the chat with the code for that; the turn is there to be gone on with."""
    words = ["chat", "-m", chats.script("word " * 20_000, "More."), "-s", "head", "--store", str(chats.store)]
    with subprocess.Popen(
        [*PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"a\n")
        process.stdin.flush()
        process.stdout.read(10)
        process.stdout.close()
        process.stdin.close()
        assert process.wait(60) == 141
    assert said(chats, "head")[0] == "user: a"


def test_what_an_agent_remembers_is_of_the_subject_that_is_named(chats: Chats) -> None:
    """--subject: the same memory in the next session of the same one, none of it in another one's; without it the chat says where it stays."""
    keep = call("core_memory_append", label="human", content="Likes kingfishers.")

    def chat(*words: object) -> Ran:
        agent = {"name": "a", "model_name": "m", "system_prompt": "hi", "memory": {"blocks": {"human": ""}}}
        answers = [keep, "Noted."] if "first" in words else ["Hm."]
        path = chats.folder / "a.yaml"
        path.write_text(
            json.dumps({"agent_configs": [agent | {"invoker": {"invoker": "scripted", "script": answers}}]})
        )
        return chats.pipe("hello\n/view\n", "--config", path, *words)

    assert "Likes kingfishers." in chat("--subject", "ann", "-s", "first").out
    assert "Likes kingfishers." in chat("--subject", "ann", "-s", "second").out
    assert "Likes kingfishers." in chat("-s", "second").out
    assert "Likes kingfishers." not in chat("--subject", "bob", "-s", "third").out
    nobody = chat("-s", "fourth")
    assert "Likes kingfishers." not in nobody.out
    assert "--subject WHO has it remember WHO" in nobody.err
    refused = chat("--subject", "bob", "-s", "second")
    assert refused.code != 0
    assert "The session 'second' is ann's data." in refused.err
