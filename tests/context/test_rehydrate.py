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
from palaver.context.work.reach import normal, reach_of_command, same_file
from palaver.messages import AssistantMessage, Message, ToolCallContent
from palaver.testing.logs import Log, user
from palaver.tokens import Budget
from palaver.view import View
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


CHANGES: tuple[Sequence[Message], ...] = (
    did("e", "Edit", {"file_path": "src/a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "./src//a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "/repo/src/a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "Edit", {"file_path": "src\\a.py", "old_string": "heron", "new_string": "stork"}),
    did("e", "apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-heron\n+stork\n*** End Patch"}),
    did("e", "append_file", {"path": "src/a.py", "content": "more\n"}),
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
    [AssistantMessage(contents=(ToolCallContent(id="e", name="Bash", args={"command": "truncate -s 0 src/a.py"}),))],
)


@pytest.mark.parametrize("since", CHANGES, ids=lambda since: json.dumps(since[0].tool_calls()[0].args)[:60])
@pytest.mark.parametrize("kept", [False, True], ids=["among what leaves", "in the tail"])
def test_b8_a_file_that_something_may_have_changed_is_not_brought_back_from_the_log(
    since: Sequence[Message], *, kept: bool
) -> None:
    """By a tool or a shell, under whatever spelling, with an end or without: the old text is not told as what the file says."""
    assert [text for text in life((), since, kept=kept) if "heron" in text] == []


@pytest.mark.parametrize("kept", [False, True])
def test_b8_a_file_of_which_nothing_more_is_said_is_brought_back(*, kept: bool) -> None:
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
    did("e", "Edit", {"file_path": "src/a.py", "old_string": "x", "new_string": "y"}, "not found", failed=True),
    did("e", "Edit", {"file_path": "lib/a.py", "old_string": "x", "new_string": "y"}),
    run("e", "cat > src/b.py <<'EOF'\nmore\nEOF\nsed -n '1,9p' src/b.py", ""),
    did("e", "TodoWrite", {"todos": []}),
    did("e", "Grep", {"pattern": "heron", "path": "src/a.py"}, "src/a.py:1"),
    did("e", "Read", {"file_path": "src/a.py", "offset": 2, "limit": 1}, "and said"),
)


@pytest.mark.parametrize("since", LOOKS, ids=lambda since: json.dumps(since[0].tool_calls()[0].args)[:60])
def test_b8_a_file_that_nothing_changed_is_brought_back_whole(since: Sequence[Message]) -> None:
    """A look at it or at a part of it, a failed edit, another file of that name: it says still what it said."""
    text = next(text for text in life((), since, kept=False) if text.startswith("[src/a.py, as it was last seen"))
    assert text.split("]\n", 1)[1].rstrip() == OLD.rstrip()


def test_b8_what_is_read_or_written_anew_is_what_the_file_says() -> None:
    """After a change, the text of the next whole read or write; under another spelling it is still one file."""
    for anew in (read("n", "/repo/src/a.py", "new text\n"), write("n", "./src/a.py", "new text\n")):
        (text,) = life((), [*run("e", "git pull"), *anew], kept=False)
        assert text.rstrip().endswith("new text")
        assert "heron" not in text


PARTS: tuple[tuple[Sequence[Message], str], ...] = (
    (did("r", "Read", {"file_path": "src/a.py", "offset": 900, "limit": 10}, OLD), "offset 900, limit 10"),
    (did("r", "view", {"path": "src/a.py", "view_range": [1, 40]}, OLD), "view_range [1,40]"),
    (read("r", "src/a.py", OLD + "\n(File has more lines. Use 'offset' to read on.)"), "as much as was shown"),
    (read("r", "src/a.py", OLD + "[output truncated]"), "as much as was shown"),
)


@pytest.mark.parametrize(("first", "part"), PARTS, ids=["lines", "range", "more", "cut"])
def test_b8_a_part_that_was_read_is_told_as_that_part(first: Sequence[Message], part: str) -> None:
    """Whoever writes a file from ten lines of it destroys it: so it says that they are ten lines, and which."""
    (text,) = life((), (), kept=False, first=first)
    assert text.startswith(f"[src/a.py, in part ({part}), as it was last seen; recall ")


@pytest.mark.parametrize(
    "first",
    [
        did("r", "Grep", {"pattern": "heron", "path": "src/a.py"}, OLD),
        did("r", "list_dir", {"path": "src/a.py"}, OLD),
        did("r", "append_to_file", {"path": "src/a.py", "content": OLD}),
        did("r", "write_file", {"path": "src/a.py", "content": OLD, "append": True}),
        did("r", "edit_lines", {"path": "src/a.py", "content": OLD, "start_line": 3, "end_line": 4}),
        did(
            "r", "str_replace_based_edit_tool", {"command": "insert", "path": "src/a.py", "insert_line": 1, "text": OLD}
        ),
    ],
    ids=lambda first: first[0].tool_calls()[0].name,
)
def test_b8_what_tells_about_a_file_or_adds_to_it_is_not_what_it_says(first: Sequence[Message]) -> None:
    """The hits of a search, a listing, what was added or put in the place of some lines: nothing of it comes back as the file."""
    assert life((), (), kept=False, first=first) == []
    assert all(act.shows == "" for act in acts_of(seen(_log(first)).exchanges).all if act.deed.wrote)


def _log(messages: Sequence[Message]) -> Log:
    log = Log()
    log.put(user("go"), *messages)
    return log


def test_b8_where_files_can_be_read_the_disk_says_what_they_say() -> None:
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
