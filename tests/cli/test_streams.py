"""Around the commands: Ctrl-C, a kill, a full disk, a reader that goes away, terminals of every kind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.cli.terminal import progress, table
from tests.cli.chats import Terminal
from tests.cli.commands import PROGRAM, Palaver, child, rollout, talk
from tests.formats.samples import Claude, call, text

ENDS = """
import contextlib, io, os, signal, sys
from palaver.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["import", sys.argv[3], "--store", sys.argv[4]])
signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), getattr(signal, sys.argv[2])))
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
sys.exit(main(sys.argv[5:]))
"""
"""The entry point, after a first import, that gets a signal after so many seconds of its own work, so that no test waits.

The first import loads the command and has pydantic build what it checks with: its compiled code takes an interrupt for an answer.
"""


def long_talk(turns: int = 600) -> bytes:
    """A session whose import takes several durable steps: calls with results, a rewind in the middle."""
    session = Claude()
    for turn in range(turns):
        session.user(f"u{turn}", f"question {turn} " + "because " * 60)
        session.model(f"a{turn}", f"m{turn}", text(f"answer {turn}"), call(f"t{turn}"))
        session.result(f"r{turn}", f"t{turn}", f"result {turn} " + "line " * 60)
    session.user("again", "another question", after=f"r{turns // 2}")
    session.model("other", "other", text("another way"))
    return session.bytes()


TO_A_FILE = """
import os, sys
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 1)
from palaver.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""The entry point with standard output in a file; standard error is what it was."""


def test_results_go_to_a_file_while_a_bar_is_shown(palaver: Palaver) -> None:
    """With standard error on a terminal, what is printed meanwhile goes where standard output does."""
    file, out = palaver.file("talk.jsonl", talk()), palaver.folder / "out.txt"
    terminal = Terminal(TO_A_FILE, out, "import", "-v", file, "--store", palaver.store)
    try:
        assert terminal.ended() == 0
    finally:
        terminal.end()
    assert out.read_text("utf-8").startswith("new ")
    assert "new " not in terminal.text


@pytest.mark.parametrize(("signal", "code", "seconds"), [("SIGINT", 130, 0.2), ("SIGKILL", -9, 0.1)])
def test_an_import_that_was_cut_off_is_taken_up(palaver: Palaver, signal: str, code: int, seconds: float) -> None:
    """After Ctrl-C, or a kill, at any moment no half session is to be seen, the store is sound, and the same import completes it."""
    file = palaver.file("talk.jsonl", long_talk())
    first = [str(palaver.file("short.jsonl", long_talk(1))), str(palaver.folder / "first.db")]
    ran = subprocess.run(
        [sys.executable, "-c", ENDS, str(seconds), signal, *first, "import", str(file), "--store", str(palaver.store)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (code, "")
    assert "Traceback" not in ran.stderr
    assert ("interrupted" in ran.stderr) == (signal == "SIGINT")
    if palaver.store.exists() and palaver.store.stat().st_size:  # an empty file is what is left of making a store
        assert palaver("doctor").code == 0
        assert palaver("sessions", "--json").rows() == []
    row = palaver("import", file, "--json").row()
    other = Palaver(palaver.folder / "other")
    whole = other("import", file, "--json").row()

    assert (row["records"], row["messages"], row["dialogs"]) == (whole["records"], whole["messages"], 2)
    assert said(palaver) == said(other)
    assert palaver("import", file, "--json").row()["outcome"] == "unchanged"
    assert len(palaver("sessions", "--json").rows()) == 1


def said(palaver: Palaver) -> list[list[dict[str, object]]]:
    """Return the entries of every dialog of the session `talk`."""
    dialogs = [row["dialog"] for row in palaver("branch", "tree", "talk", "--json").rows()]
    shown = [palaver("show", dialog, "--json").rows() for dialog in dialogs]
    return [[{key: row[key] for key in row if key != "handle"} for row in rows] for rows in shown]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_standard_output_that_is_full(stocked: Palaver) -> None:
    """What cannot be written is told by its own exit code and one line; the interpreter adds nothing to it."""
    for words in ("show talk --store STORE", "sessions --json --store STORE", "--help"):
        with Path("/dev/full").open("wb") as full:
            command = [*PROGRAM, *words.replace("STORE", str(stocked.store)).split()]
            ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert ran.returncode == 8, words
        assert ran.stderr == f"palaver: the output cannot be written: {os.strerror(errno.ENOSPC)}.\n", words


def test_a_reader_that_goes_away(palaver: Palaver) -> None:
    """A pipe into `head` ends the command without a complaint; its exit code says that not all was written."""
    palaver.imported(long_talk(400))
    command = [*PROGRAM, "show", "talk", "--store", str(palaver.store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert ran.stdout.readline()
        ran.stdout.close()
        complaint = ran.stderr.read()
    assert (ran.returncode, complaint) == (141, b"")


# --- terminals --------------------------------------------------------------------------------------------------------------------


SEVERAL = """
import json, sys
from palaver.cli import main
codes = [main(words) for words in json.loads(sys.argv[1])]
sys.exit(max(codes))
"""


def on_a_terminal(store: Path, *commands: str, **environment: str) -> tuple[int, str]:
    """Run commands in a child whose three streams are a terminal, and return the largest exit code and what the terminal got."""
    words = json.dumps([[*one.split(), "--store", str(store)] for one in commands])
    terminal = Terminal(SEVERAL, words, **{"COLUMNS": "80", "PAGER": "cat", **environment})
    try:
        terminal.keys("n\n")  # to whatever is asked
        return terminal.ended(), terminal.raw
    finally:
        terminal.end()


def test_progress_and_colours_are_for_terminals(palaver: Palaver) -> None:
    """A pipe, --json and NO_COLOR (https://no-color.org) get neither."""
    file = palaver.file("talk.jsonl", long_talk(100))
    store = palaver.folder / "a.db"
    assert "\x1b[" in on_a_terminal(store, f"import {file}")[1]
    assert "\x1b[" not in on_a_terminal(palaver.folder / "b.db", f"import {file} --json")[1]
    assert "\x1b[31m" in on_a_terminal(store, "view nothing")[1]
    assert "\x1b[31m" not in on_a_terminal(store, "view nothing", NO_COLOR="1")[1]
    bar = on_a_terminal(palaver.folder / "c.db", f"import {palaver.file('a' * 99 + '.jsonl', long_talk(100))}")[1]
    assert "0 of 1 file: aaaa" in bar, "the name is cut, not the bar"
    assert "0 of 1 file: " + "a" * 40 not in bar
    piped = palaver("import", file)
    assert (piped.err, "\x1b" in piped.out + palaver("view", "nothing").err) == ("", False)


def test_progress_in_a_pipe_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A line says how much is done, now and then, without control characters; nothing follows it at once, nor where it is hidden."""
    with progress(hidden=False, every=0) as show:
        show("1 file one\x1b[2K.jsonl", 5, 20)
        show("reading", 0, None)
    with progress(hidden=False) as show:
        show("too soon", 1, 2)
    with progress(hidden=True, every=0) as show:
        show("hidden", 1, 2)
    assert capsys.readouterr() == ("", " 25%  1 file one\u241b[2K.jsonl\nreading\n")


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202egnp.exe\u202c \u2066x\u2069 title"
"""An escape sequence, a C1 control, and bidirectional controls that turn a name around."""

SHOWN = (
    "show talk --entries",
    "search title",
    "recall {handle}",
    "sessions",
    "view talk --wire anthropic",
    "view talk --json",
    "export talk --to openai-chat",
    "branch pin {handle}",
    "compact talk",
    "doctor --all",
    "calls talk",
)


def test_what_was_recorded_never_commands_a_terminal(palaver: Palaver) -> None:
    """Control characters are pictures, C1 and bidirectional controls escapes, wherever they were recorded (law 12); a pipe gets them."""
    session = Claude()
    session.user("u1", f"Look. {HOSTILE}")
    session.model("a1", "m1", text(HOSTILE), call("t1", command=HOSTILE))
    session.result("r1", "t1", HOSTILE * 40)
    session.model("a2", "m2", text("It is red. " + "word " * 900))
    session.user("u2", "And?")
    session.model("a3", "m3", text("Done."))
    palaver.imported(session.bytes())
    palaver("import", palaver.file("\x1b]0;owned\x07\u202e.jsonl", rollout()))
    handle = next(row["handle"] for row in palaver("show", "talk", "--json").rows() if "owned" in str(row))
    plain, others = (
        ("show talk", "view talk", "export talk --to markdown"),
        [one.format(handle=handle) for one in SHOWN],
    )
    for commands in (plain, others):
        code, got = on_a_terminal(palaver.store, *commands)
        assert code == 0, got
        assert not set("\x07\x9b\u202e\u202c\u2066\u2069") & set(got)
        assert "\x1b]0;" not in got
        assert "\\u202e" in got
    for words in plain:
        assert HOSTILE in palaver(*words.split()).out


def test_a_pager_shows_long_output(palaver: Palaver) -> None:
    """On a terminal what is printed goes through $PAGER, already without control characters; with --json and in a pipe it does not."""
    palaver.imported(talk())
    pager = palaver.file("pager.sh", "#!/bin/sh\necho paged; cat\n")
    pager.chmod(0o700)
    seen = on_a_terminal(palaver.store, "show talk", PAGER=str(pager))[1]
    assert "paged" in seen.splitlines()
    assert "It is red." in seen
    assert "\x1b]0;" not in seen
    assert "paged" not in on_a_terminal(palaver.store, "show talk --json", PAGER=str(pager))[1]


def test_an_id_of_digits_is_not_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are aligned to the left, whatever digits they have; figures and numbers of calls to the right."""
    table(("session", "tokens"), [("123456789012", "12"), ("210987654321", "1,912")])
    assert capsys.readouterr().out.splitlines()[0] == "session       tokens"
    table(("number of it",), [("1200",)])
    assert capsys.readouterr().out.splitlines()[1] == "        1200"


def test_any_width_and_locale_will_do(stocked: Palaver) -> None:
    """Every report is printed on a narrow terminal; under the C locale what was said is UTF-8, and nothing crashes."""
    commands = ("sessions", "doctor", "view talk --explain", "calls talk")
    assert on_a_terminal(stocked.store, *commands, COLUMNS="20")[0] == 0
    assert max(map(len, on_a_terminal(stocked.store, "sessions", "calls talk", COLUMNS="42")[1].splitlines())) <= 42
    for environment in ({"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}):
        ran = child("show", "talk", "--store", stocked.store, **environment)
        assert (ran.code, ran.err, "狀態" in ran.out) == (0, "", True), environment
    assert on_a_terminal(stocked.store, "show talk", "search 狀態", LC_ALL="C")[0] == 0
