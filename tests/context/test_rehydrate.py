"""Files brought back say what the file says: not where something may have changed it since, and a part as a part."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context import Ledger, Meter, compose, planner
from palaver.context.presets import ClaudeCode
from palaver.context.rehydrate import Rehydrating
from palaver.context.work.acts import acts_of
from palaver.context.work.paths import normal, same_file
from palaver.context.work.reach import reach_of_command
from palaver.messages import AssistantMessage, Message, ToolCallContent
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing.logs import Log, user
from palaver.tokens import Budget
from palaver.view import Drop, Plan, View
from tests.context.helper import COUNTER, fitted, seen, texts
from tests.context.work import did, read, run, write

OLD = "the heron stood in line 1\nand said what no other file says\n"
WIDE = "word " * 1_500


def back(view: View) -> list[str]:
    """Give the files that are brought back, by the first line of each and what follows."""
    found = (x for x in view.exchanges if x.derived and x.turns[0].blocks[0].derived == "file")
    return [text for x in found for text in texts(View(dialog_id=view.dialog_id, at=0, exchanges=(x,)))]


def life(
    before: Sequence[Message],
    since: Sequence[Message],
    *,
    kept: bool,
    first: Sequence[Message] | None = None,
    later: Sequence[Message] = (),
) -> list[str]:
    """Read a file, then let something happen, among what leaves or in the tail that stays, and give the files that are brought back."""
    log = Log()
    log.put(user("Fix it."), *run("a", "ls"), *before)
    log.put(*(read("r", "src/a.py", OLD) if first is None else first))
    runs = [run(f"c{n}", f"pytest -q tests/test_{n}.py", WIDE) for n in range(8)]
    parts = (*runs[:-1], since, runs[-1]) if kept else (since, *runs)
    log.put(*(message for part in parts for message in part), *later, user("Go on."))
    return back(fitted(seen(log), ClaudeCode(keep_tail=2_000 if kept else 400), 8_000).view)


SNIPPET = "The file has been updated:\n 9\tdef main():\n 10\t    exit_code = 1\n 11\t    stork"
STEP = "Thought: x\nAction: {}\nAction Input: {}"
EDIT: dict[str, object] = {"file_path": "src/a.py", "old_string": "heron", "new_string": "stork"}

CHANGES: tuple[Sequence[Message], ...] = (
    did("e", "Edit", {"file_path": "src/a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "./src//a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "/repo/src/a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "src\\a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-heron\n+stork\n*** End Patch"}),
    did("e", "Edit", {"file_path": "SRC/A.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "append_file", {"path": "src/a.py", "content": "more\n"}),
    did("e", "apply_diff", {"path": "src/a.py", "diff": "<<<<<<< SEARCH\nheron\n=======\nstork\n>>>>>>> REPLACE"}),
    did("e", "Edit", EDIT, SNIPPET),
    did("e", "Edit", EDIT, "timed out after 60 s", failed=True),
    did("e", "MultiEdit", {"file_path": "src/a.py", "edits": []}, "1 of 2 edits applied", failed=True),
    did("e", "Write", {"file_path": "src/a.py", "content": "stork"}, "File written. Lint: E999", failed=True),
    did("e", "mcp__disk__swap", {"source": "src/a.py", "destination": "src/b.py"}),
    did("e", "Task", {"prompt": "Put the stork into src/a.py, please."}),
    run("e", "sed -i s/heron/stork/ src/a.py", ""),
    run("e", "cd src && sed -i s/heron/stork/ a.py", ""),
    run("e", "python tools/mend.py --file=src/a.py", ""),
    run("e", "sed -i s/heron/stork/ src/*.py", ""),
    run("e", "rm src/a.py", ""),
    run("e", "rm -rf src", ""),
    run("e", "mv ./src /tmp/old", ""),
    run("e", "cat b.py > src/a.py", ""),
    run("e", "git checkout HEAD~3", ""),
    run("e", "git stash", ""),
    run("e", "ruff format .", ""),
    run("e", "npx eslint --fix", ""),
    run("e", "make all", ""),
    run("e", "git -C /repo checkout .", ""),
    run("e", "grep -rl heron src | xargs sed -i s/heron/stork/", ""),
    run("e", "patch -p1 < fix.diff", ""),
    did("e", "terminal", {"input": "git checkout ."}),
    did("e", "Task", {"prompt": "Refactor all of it."}),
    did("e", "Task", {"prompt": "Refactor again."}, "it was stopped", failed=True),
    run("e", "sed -i s/heron/owl/ src/a.py", "no space left on device", failed=True),
    run("e", "cat x | uniq - src/a.py", ""),
    run("e", "bin/test", ""),
    [AssistantMessage(contents=(ToolCallContent(id="e", name="Bash", args={"command": "truncate -s 0 src/a.py"}),))],
)


def _named(since: Sequence[Message]) -> str:
    """Name a case by what was asked and how the answer begins."""
    said = " ".join(message.text_content() or "" for message in since[1:])
    return f"{json.dumps(since[0].tool_calls()[0].args)[:60]} {said[:10]}"


@pytest.mark.parametrize("since", CHANGES, ids=_named)
@pytest.mark.parametrize("kept", [False, True], ids=["among what leaves", "in the tail"])
def test_a_file_that_something_may_have_changed_is_not_brought_back_from_the_log(
    since: Sequence[Message], *, kept: bool
) -> None:
    """By a tool or a shell, under whatever spelling, with an end or without: the old text is not told as what the file says."""
    assert [text for text in life((), since, kept=kept) if "heron" in text] == []


@pytest.mark.parametrize("kept", [False, True])
def test_a_file_of_which_nothing_more_is_said_is_brought_back(*, kept: bool) -> None:
    """The same conversation with a call that names no file: the file comes back, so what is tested above can fail."""
    (text,) = life((), run("e", "pytest -q", ""), kept=kept)
    assert OLD in text + "\n"


@pytest.mark.parametrize("since", CHANGES[:3])
def test_what_comes_behind_the_cut_changes_nothing_in_front_of_it(since: Sequence[Message]) -> None:
    """The file stays as it was told when it was brought back, so that the prefix is met; what changed it stands behind it, in its place."""
    (text,) = life((), (), kept=False, later=since)
    assert text.split("]\n", 1)[1] == OLD


LOOKS: tuple[Sequence[Message], ...] = (
    run("e", "cat src/a.py | head -5; grep -n heron src/a.py", OLD),
    run("e", "pytest -q tests/test_b.py", "1 passed"),
    run("e", "git status && git diff", ""),
    did("e", "Edit", {"file_path": "lib/a.py", "old_string": "x", "new_string": "y"}),
    run("e", "cat > src/b.py <<'EOF'\nmore\nEOF\nsed -n '1,9p' src/b.py", ""),
    did("e", "TodoWrite", {"todos": []}),
    did("e", "Grep", {"pattern": "heron", "path": "src/a.py"}, "src/a.py:1"),
    did("e", "Read", {"file_path": "src/a.py", "offset": 2, "limit": 1}, "and said"),
)


@pytest.mark.parametrize("since", LOOKS, ids=lambda since: json.dumps(since[0].tool_calls()[0].args)[:60])
def test_a_file_that_nothing_changed_is_brought_back_whole(since: Sequence[Message]) -> None:
    """A look at it or at a part of it, a failed edit, another file of that name: it says still what it said."""
    text = next(text for text in life((), since, kept=False) if text.startswith("[src/a.py, as it was last seen"))
    assert text.split("]\n", 1)[1].rstrip() == OLD.rstrip()


def test_what_is_read_or_written_anew_is_what_the_file_says() -> None:
    """After a change, the text of the next whole read or write; under another spelling it is still one file."""
    for anew in (read("n", "/repo/src/a.py", "new text\n"), write("n", "./src/a.py", "new text\n")):
        (text,) = life((), [*run("e", "git pull"), *anew], kept=False)
        assert text.rstrip().endswith("new text")
        assert "heron" not in text


PARTS: tuple[tuple[Sequence[Message], str], ...] = (
    (did("r", "Read", {"file_path": "src/a.py", "offset": 900, "limit": 10}, OLD), "offset 900, limit 10"),
    (did("r", "view", {"path": "src/a.py", "view_range": [1, 40]}, OLD), "view_range [1,40]"),
    (read("r", "src/a.py", OLD + "\n(File has more lines. Use 'offset' to read on.)"), "as much as was shown"),
    (
        did(
            "r",
            "read_file",
            {"target_file": "src/a.py", "start_line_one_indexed": 1, "should_read_entire_file": False},
            OLD,
        ),
        "start_line_one_indexed 1",
    ),
    (did("r", "view_file", {"AbsolutePath": "src/a.py", "StartLine": 0, "EndLine": 1}, OLD), "StartLine 0, EndLine 1"),
    (did("r", "read_file", {"filePath": "src/a.py", "startLine": 1, "endLine": 2}, OLD), "startLine 1, endLine 2"),
    (did("r", "read_text_file", {"path": "src/a.py", "head": 2}, OLD), "head 2"),
    (read("r", "src/a.py", OLD + "[output truncated]"), "as much as was shown"),
)


@pytest.mark.parametrize(
    ("first", "part"), PARTS, ids=["lines", "range", "more", "cursor", "windsurf", "copilot", "head", "cut"]
)
def test_a_part_that_was_read_is_told_as_that_part(first: Sequence[Message], part: str) -> None:
    """Whoever writes a file from ten lines of it destroys it: so it says that they are ten lines, and which."""
    (text,) = life((), (), kept=False, first=first)
    assert text.startswith(f"[src/a.py, in part ({part}), as it was last seen; recall ")


@pytest.mark.parametrize(
    "first",
    [
        did("r", "Grep", {"pattern": "heron", "path": "src/a.py"}, OLD),
        did("r", "list_dir", {"path": "src/a.py"}, OLD),
        did("r", "str_replace_editor", {"command": "view", "path": "/repo/src"}, OLD),
        did("r", "get_file_contents", {"owner": "o", "repo": "r", "path": "src/a.py", "ref": "v1.0"}, OLD),
        did("r", "read_file", {"path": "src/a.py", "sha": "c0ffee"}, OLD),
        did("r", "read_file", {"path": "src/a.py", "untold": "x"}, OLD),
        did("r", "create_file", {"path": "src/a.py", "content": OLD}, "Ran into [Errno 2] No such file or directory"),
        did("r", "write_file", {"path": "src/a.py", "content": OLD, "position": "end"}),
        did("r", "append_to_file", {"path": "src/a.py", "content": OLD}),
        did("r", "write_file", {"path": "src/a.py", "content": OLD, "append": True}),
        did("r", "edit_lines", {"path": "src/a.py", "content": OLD, "start_line": 3, "end_line": 4}),
        did(
            "r", "str_replace_based_edit_tool", {"command": "insert", "path": "src/a.py", "insert_line": 1, "text": OLD}
        ),
    ],
    ids=lambda first: f"{first[0].tool_calls()[0].name} {sorted(first[0].tool_calls()[0].args)}",
)
def test_what_tells_about_a_file_or_adds_to_it_is_not_what_it_says(first: Sequence[Message]) -> None:
    """The hits of a search, a listing, what was added or put in the place of some lines: nothing of it comes back as the file."""
    assert life((), (), kept=False, first=first) == []
    assert all(act.shows == "" for act in acts_of(seen(_log(first)).exchanges).all if act.deed.wrote)


OLDER = "the file says heron here\n"


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ("report.xml", run("e", "pytest --junitxml=report.xml -q", "1 passed")),
        ("tests/data/a.yml", run("e", "pytest --force-regen -q", "1 passed")),
        ("Cargo.lock", run("e", "cargo build", "ok")),
        ("src/__snapshots__/a.snap", run("e", "jest", "1 snapshot written")),
        ("src/a.py", [*CHANGES[0], *did("q", "get_file_contents", {"owner": "o", "path": "src/a.py"}, OLDER)]),
        ("src/a.py", [user("<bash-input>git checkout .</bash-input>"), user("<bash-stdout>Updated</bash-stdout>")]),
        ("src/a.py", [user("<command-name>/init</command-name>")]),
        ("src/a.py", [user("I have just reverted src/a.py to the version of yesterday.")]),
        ("src/a.py", [user("I ran `git checkout .`, go on.")]),
        ("src/a.py", did("q", "read_file", {"path": "src/a.py"}, "Error: file src/a.py does not exist")),
        (
            "src/a.py",
            run("e", "pytest -q", "ok\n<system-reminder>Note: src/a.py was modified by a linter.</system-reminder>"),
        ),
    ],
    ids=[
        "report",
        "data",
        "lock",
        "snapshot",
        "remote",
        "own command",
        "mark",
        "own words",
        "own deed",
        "refused",
        "reminder",
    ],
)
def test_what_a_checker_writes_another_version_or_the_user_forgets_a_file(path: str, since: Sequence[Message]) -> None:
    """Reports, lock files and snapshots are written by checkers; upstream's text is not the file's; and the user works there, too."""
    assert [text for text in life((), since, kept=False, first=read("r", path, OLDER)) if "heron" in text] == []


@pytest.mark.parametrize(
    "result",
    [
        "The content was successfully saved to src/a.py.\n\nAlong with your edits, the user's editor applied auto-formatting:\n\n+the  stork",
        "Successfully overwrote file: src/a.py. User modified the `content` to be: the stork",
        "File written with warnings: it does not parse",
        "Wrote src/a.py, reformatted by black",
        "Wrote 1 of 2 lines to src/a.py, disk full",
        "created: false, reason: exists",
        "Wrote 0 bytes to src/a.py",
        "Wrote 1 line to src/a.py",
        "The content at line 7 of src/a.py has been updated",
        "File has been created at src/a.py.new since src/a.py is locked",
        "The file src/a.py has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1\tthe  stork stood",
        "Wrote src/a.py\n 1\tand said what no other file says\n 2\tthe heron stood in line 1",
    ],
    ids=[
        "formatted",
        "modified",
        "warnings",
        "reformatted",
        "in part",
        "not",
        "nothing",
        "a line",
        "at a line",
        "elsewhere",
        "shown",
        "in another order",
    ],
)
def test_what_was_written_otherwise_is_not_told_as_it_was_asked_for(result: str) -> None:
    """An editor or the user may change what is written: the result says so, and the model's own words are no longer the file."""
    first = did("w", "write_to_file", {"path": "src/a.py", "content": OLD}, result)
    assert [text for text in life((), (), kept=False, first=first) if "heron" in text] == []


@pytest.mark.parametrize(
    "result",
    [
        "File created successfully at: src/a.py",
        "The file /repo/src/a.py has been updated.",
        "Wrote 59 bytes to 'src/a.py'.",
        '{"success": true, "path": "src/a.py"}',
        "The file src/a.py has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1\tthe heron stood in line 1\n",
    ],
    ids=["at", "absolute", "bytes", "json", "shown"],
)
def test_what_was_written_as_it_was_asked_for_is_told(result: str) -> None:
    """Where a result says that the file was written, and shows no line that is not of it, the file says what was sent."""
    (text,) = life((), (), kept=False, first=did("w", "Write", {"file_path": "src/a.py", "content": OLD}, result))
    assert text.split("]\n", 1)[1] == OLD


SPELLINGS = (
    *("a.py", "repo/src/a.py", "../src/a.py", "$PWD/src/a.py", "${folder}/src/a.py", "@src/a.py", "`src/a.py`"),
    *('"src/a.py"', "~/repo/src/a.py", "@acme/src/a.py", "file:///repo/src/a.py", "src/../src/a.py", "SRC\\a.py"),
)


@pytest.mark.parametrize("known", ["src/a.py", "/repo/src/a.py"])
@pytest.mark.parametrize("spelled", SPELLINGS)
def test_an_edit_under_another_spelling_forgets_the_file(known: str, spelled: str) -> None:
    """In which folder a call works is not known: what may be the same file is taken for it."""
    edit = did("e", "Edit", {**EDIT, "file_path": spelled})
    assert [each for each in life((), edit, kept=False, first=read("r", known, OLD)) if "heron" in each] == []


@pytest.mark.parametrize(
    ("known", "other"), [("src/a.py", "lib/a.py"), ("/repo/src/a.py", "/repo/lib/a.py"), ("/repo/src/a.py", "lib/a.py")]
)
def test_an_edit_of_another_file_of_that_name_forgets_nothing(known: str, other: str) -> None:
    """Two paths that say all they can, of which none is the end of the other, are of two files."""
    edit = did("e", "Edit", {**EDIT, "file_path": other})
    assert [each for each in life((), edit, kept=False, first=read("r", known, OLD)) if "heron" in each]


@pytest.mark.parametrize(
    "spelled", ["C:\\w\\src\\a.py", "/c/w/src/a.py", "/mnt/c/w/src/a.py", "/cygdrive/c/w/src/a.py"]
)
def test_a_drive_is_one_however_it_is_spelt(spelled: str) -> None:
    """Windows, WSL, Git Bash and Cygwin name one file in ways of their own."""
    edit = did("e", "Edit", {**EDIT, "file_path": spelled})
    assert [each for each in life((), edit, kept=False, first=read("r", "c:/w/src/a.py", OLD)) if "heron" in each] == []


@pytest.mark.parametrize(
    "call",
    [
        did("e", "delete_file", {"path": "src"}),
        did("e", "move_file", {"path": "src/"}),
        did("e", "Edit", {**EDIT, "file_path": "src/*.py"}),
        did("e", "Edit", {**EDIT, "file_path": "src/{a,b}.py"}),
        did("e", "Edit", {**EDIT, "file_path": "src/a.py:12"}),
    ],
    ids=lambda call: json.dumps(call[0].tool_calls()[0].args)[:40],
)
@pytest.mark.parametrize("known", ["src/a.py", "/repo/src/a.py"])
def test_a_call_that_names_more_than_a_file_forgets_all_of_it(known: str, call: Sequence[Message]) -> None:
    """What takes a folder away takes its files, and a pattern names nobody knows which."""
    assert [each for each in life((), call, kept=False, first=read("r", known, OLD)) if "heron" in each] == []


def test_what_a_harness_says_behind_a_file_is_not_of_it() -> None:
    """A reminder behind the lines of a file that was read is left out, and the file is told whole."""
    reminder = "\n\n<system-reminder>\nConsider whether this is malware.\n</system-reminder>\n"
    (text,) = life((), (), kept=False, first=read("r", "src/a.py", OLD + reminder))
    assert text.split("]\n", 1)[1].rstrip() == OLD.rstrip()
    assert "in part" not in text


@pytest.mark.parametrize(
    "first",
    [
        read("r", "src/a.py", "x" + "\n" * 400_000 + "y"),
        read("r", "src/a.py", "<system-reminder>" * 40_000 + "</system-reminder>"),
        did("w", "Write", {"file_path": "src/a.py", "content": "x"}, "(a,b){return(a+b)};" * 20_000),
        did(
            "w", "Write", {"file_path": "src/a.py", "content": "x\n" * 50_000}, "Wrote src/a.py\n" + " 1\tx\n" * 50_000
        ),
    ],
    ids=["blank lines", "reminders", "one line", "many lines"],
)
def test_a_result_of_any_shape_is_read_at_once(first: Sequence[Message]) -> None:
    """What a harness puts behind a file, and how a write's result begins, are looked for in time that grows with the text, not with its square."""
    assert len(life((), (), kept=False, first=first)) <= 1


MARKS = (
    *("Observation: ", "Observation:\n", "[Tool result]: ", "**Observation:** ", "> Observation: ", "\nObservation: "),
    *("Result: ", "Output:\n", "Result of read_file: "),
)
STATE = "\n(Open file: n/a)\n(Current directory: /repo)\nbash-$ "


@pytest.mark.parametrize(
    ("mark", "state"),
    [*((mark, "") for mark in MARKS), ("", STATE), ("Observation: ", STATE), ("OBSERVATION:\n", STATE)],
)
@pytest.mark.parametrize(
    "stub",
    [
        "File unchanged since last read. The content from the earlier Read tool_result is still current.",
        "[[NOTE] This file read has been removed to save space in the context window.]",
    ],
)
def test_in_a_text_protocol_a_stub_is_not_the_file_either(mark: str, stub: str, state: str) -> None:
    """What an output begins with there is no word of the tool's: a stub behind it is one, and does not overtake the text that it refers to."""
    asked = AssistantMessage(content=STEP.format("read_file", '{"path": "src/a.py"}'))
    first, since = [asked, user(mark + OLD + state)], [asked, user(mark + stub + state)]
    (text,) = life((), since, kept=False, first=first)
    assert text.split("]\n", 1)[1].rstrip() == OLD.rstrip()
    acts = acts_of(seen(_log([*first, *since])).exchanges)
    assert acts.outdated == {}
    assert [act.shows for act in acts.all] == ["src/a.py", ""]


@pytest.mark.parametrize(
    "stub",
    [
        "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still current.",
        "[[NOTE] This file read has been removed to save space in the context window.]",
        "The user doesn't want to proceed with this tool use.",
    ],
)
@pytest.mark.parametrize("behind", ["", f"\n<system-reminder>\n{'Use the list. ' * 90}\n</system-reminder>"])
def test_what_stands_in_the_place_of_a_read_is_not_the_file(stub: str, behind: str) -> None:
    """Where a harness shows nothing because the file was shown before, it is told as it was shown, whatever the harness says behind that."""
    (text,) = life((), did("e", "Read", {"file_path": "src/a.py"}, stub + behind), kept=False)
    assert OLD in text + "\n"


def test_a_part_that_was_read_does_not_take_the_place_of_the_whole() -> None:
    """A file that was written whole, and of which the first line was read then, is told whole; nor was the write done over by that."""
    first = write("w", "src/a.py", OLD)
    since = did("e", "read_text_file", {"path": "src/a.py", "head": 1}, "the heron stood in line 1")
    (text,) = life((), since, kept=False, first=first)
    assert text.split("]\n", 1)[1].rstrip() == OLD.rstrip()
    assert not acts_of(seen(_log([*first, *since])).exchanges).overwritten


def test_calls_of_one_response_may_have_run_in_any_order() -> None:
    """A read beside a command that may change anything tells nothing; beside one that looks, it tells the file."""
    for command, told in (("make all", 0), ("git status", 1)):
        calls: tuple[tuple[str, str, dict[str, object], str], ...] = (
            ("r", "Read", {"file_path": "src/a.py"}, OLD),
            ("q", "Bash", {"command": command}, "ok"),
        )
        asked = AssistantMessage(contents=tuple(ToolCallContent(id=k, name=n, args=a) for k, n, a, _ in calls))
        answers = [did(k, n, a, said)[1] for k, n, a, said in reversed(calls)]
        assert len(life((), (), kept=False, first=[asked, *answers])) == told


@pytest.mark.parametrize(
    ("said", "answer", "told"),
    [
        (STEP.format("list_dir", '{"path": "."}'), "Observation: a.py", 1),
        (STEP.format("write_file", '{"path": "src/a.py", "content": "stork"}'), "Observation: done", 0),
        (STEP.format("write_file", '{"path": "src/a.py", "content": "stork"}'), "Stop. What are you doing?", 0),
        (STEP.format("bash", '{"command": "git checkout ."}'), "Updated 3 paths from the index", 0),
        (
            STEP.format("write_file", '{"path": "src/a.py", "content": "stork"}')
            + "\n"
            + STEP.format("list_dir", '{"path": "."}'),
            "Observation: done",
            0,
        ),
    ],
    ids=["looks", "answered", "interrupted", "bare output", "two actions"],
)
@pytest.mark.parametrize("kept", [False, True])
def test_a_call_in_words_counts_whether_its_output_is_known_or_not(
    said: str, answer: str, told: int, *, kept: bool
) -> None:
    """In a text protocol, too, nobody knows how far a call without an answer came; and what begins an output is not of the file."""
    asked = AssistantMessage(content=STEP.format("read_file", '{"path": "src/a.py"}'))
    since = [AssistantMessage(content=said), user(answer)]
    found = [text for text in life((), since, kept=kept, first=[asked, user("Observation: " + OLD)]) if "heron" in text]
    assert [text.split("]\n", 1)[1].rstrip() for text in found] == [OLD.rstrip()] * told


def _worked(dialog: Dialog, messages: Sequence[Message]) -> Dialog:
    for message in messages:
        dialog.append(message)
    return dialog


@pytest.mark.parametrize("way", ["goes on", "window", "rewind", "dropped"])
def test_what_a_view_does_not_hold_may_have_changed_a_file(way: str) -> None:
    """An edit in the hole of a window, behind a place that was gone back to, or in an exchange that was left out without a text."""
    dialog = Session.create(MemoryStore(), "heron", owner="coder").root
    dialog.put_text("Fix it.")
    _worked(dialog, read("r", "src/a.py", OLD))
    dialog.put_text("Go on.")
    place = dialog.view().exchanges[-1].first
    if way != "goes on":
        _worked(dialog, CHANGES[0])
    dialog.put_text("Well done.")
    if way == "window":
        dialog = dialog.fork(last_n=1, first_k=3)
    elif way == "rewind":
        dialog = dialog.rewind(place).apply()
    elif way == "dropped":
        dialog.commit(Plan(policy="mine", drops=(Drop(index=3),)), model="gpt-4o")
    _worked(dialog, [m for n in range(8) for m in run(f"c{n}", f"pytest -q tests/test_{n}.py", WIDE)])
    dialog.put_text("Go on.")
    assert len(back(dialog.compose(ClaudeCode(keep_tail=400), 8_000, model="gpt-4o").view)) == (way == "goes on")


@pytest.mark.parametrize(
    "last",
    [
        did("n", "Edit", EDIT, words=WIDE),
        did("n", "Read", {"file_path": "src/a.py"}, "new text", words=WIDE),
        did("n", "Bash", {"command": "make"}, words=WIDE),
        did("n", "Bash", {"command": "ls"}, words=WIDE),
    ],
    ids=["edit", "read", "any", "looks"],
)
def test_what_is_told_does_not_depend_on_whether_the_newest_call_is_answered(last: Sequence[Message]) -> None:
    """The result of a call in flight comes behind the files, which are in front of the cut: where the cut is one, they are the same."""
    compared = 0
    for words in range(1_000, 3_000, 100):
        told = []
        for parts in (last[:1], last):
            log = _log([*read("r", "src/a.py", OLD), *read("q", "src/b.py", OLD)])
            log.put(
                *(m for n in range(4) for m in run(f"c{n}", f"pytest -q tests/test_{n}.py", "word " * words)), *parts
            )
            made = fitted(seen(log), ClaudeCode(keep_tail=400), 8_000)
            cut = [drop.index for drop in made.plan.drops]
            told.append((cut, [text.split("; recall")[0] for text in back(made.view)]))
        compared += told[0][0] == told[1][0] != []
        assert told[0] == told[1] or told[0][0] != told[1][0]
    assert compared


def _log(messages: Sequence[Message]) -> Log:
    log = Log()
    log.put(user("go"), *messages)
    return log


def test_where_files_can_be_read_the_disk_says_what_they_say() -> None:
    """What a file says now stands there, whatever happened since, and one that is not there any more is not brought back."""
    log = _log([*read("r", "src/a.py", OLD), *read("q", "src/b.py", OLD), *CHANGES[0]])
    log.put(*(m for n in range(8) for m in run(f"c{n}", f"pytest -q tests/test_{n}.py", WIDE)), user("Go on."))
    ledger = Ledger(meter=Meter(COUNTER), files={"src/a.py": "what it says now"}.get)
    made = compose(seen(log), planner(ClaudeCode()), Budget.of_input(8_000), COUNTER, ledger=ledger)
    (text,) = back(made.view)
    assert text.endswith("what it says now")


def test_what_the_files_have_does_not_depend_on_what_else_a_cut_leaves() -> None:
    """A sixth of the room, whatever tail is kept."""
    assert {file.each for file in (Rehydrating(stand_in=None),)} == {5_000}  # type: ignore[arg-type] # nothing is asked of it
    page = "\n".join(f"line {n}" for n in range(3_000))
    log = _log(read("r", "src/a.py", page))
    log.put(*(m for n in range(30) for m in run(f"c{n}", f"pytest -q tests/test_{n}.py", WIDE)), user("Go on."))
    sizes = []
    for keep_tail in (0, 500, 2_000):
        view = fitted(seen(log), ClaudeCode(keep_tail=keep_tail), 18_000).view
        sizes.append([Meter(COUNTER).text(text) for text in back(view)])
    assert sizes[0] == sizes[1] == sizes[2]
    assert 2_000 < sizes[0][0] <= 3_000


PATHS = st.lists(st.sampled_from(["a", "b.py", "src", ".", "é x"]), min_size=1, max_size=4)


@given(PATHS, st.sampled_from(["", "./", "/", "//", "C:/"]), st.sampled_from(["/", "//", "/./", "\\"]))
def test_paths_are_compared_as_what_they_name(parts: list[str], front: str, between: str) -> None:
    """Dots, doubled and other slashes are nothing; normal is normal; a relative path is the end of its absolute one, and no other's."""
    path = normal(front + between.join(parts))
    assert normal(path) == path
    assert same_file(path, normal((front or "./") + "/".join(parts)))
    relative = normal("/".join(parts))
    assert relative == "." or same_file(relative, normal(f"/somewhere/{relative}"))
    assert relative == "." or not same_file(normal(f"/one/{relative}"), normal(f"/two/{relative}"))


@given(st.text(max_size=60), st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12))
def test_a_command_reaches_what_it_names_whatever_it_says(noise: str, name: str) -> None:
    """Any text is read without a failure, and a file that `touch` names is reached under any folder."""
    reach_of_command(noise)
    path = normal(f"src/{name}")
    if path.startswith("src/") and not set(name) & set("\n'\"\\"):
        assert reach_of_command(f"touch '{name}'").has(path)
