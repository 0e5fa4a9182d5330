"""Files with the conversation: kept when a turn begins, brought back by a rewind, and nothing else of the user's is touched."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Session, SqliteStore
from palaver.agent import Agent, Checkpoint, CheckpointWarning, files_at, git_checkpoint
from palaver.agent.checkpoints import FILES, GitTree
from palaver.errors import InvalidInput, NotFound, PalaverError
from palaver.log import Custom, Handle
from palaver.providers import ScriptedProvider
from palaver.session import Dialog
from palaver.tools import tool
from tests.agent.helper import calling, entries, scripted
from tests.cli.commands import Ran, run

pytestmark = pytest.mark.skipif(which("git") is None, reason="no git on this machine")


def git(folder: Path, *words: str) -> str:
    """Run git as a person does."""
    about = ("-c", "user.name=Mara", "-c", "user.email=mara@example.org")
    ran = subprocess.run(["git", *about, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a work tree with a committed file, a staged one, a stash, and one that git ignores."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q")
    write(folder, {"a.txt": "one", ".gitignore": "*.log\n", "x.log": "kept out"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    write(folder, {"a.txt": "stashed"})
    git(folder, "stash", "-q")
    write(folder, {"staged.txt": "staged"})
    git(folder, "add", "staged.txt")
    return folder


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    """Write some files; None deletes one."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def files(folder: Path) -> dict[str, str]:
    """Return the files of a work tree."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths}


def own(folder: Path) -> tuple[object, ...]:
    """Return what is the user's own: the bytes of the index, HEAD, branches and the stash."""
    kept = [line for line in git(folder, "for-each-ref").splitlines() if "refs/palaver/" not in line]
    return (folder / ".git/index").read_bytes(), (folder / ".git/HEAD").read_text(), kept


def writer(folder: Path) -> Any:  # noqa: ANN401 - a tool
    """Return a tool that writes a file."""

    @tool(allow_repeat=True)
    def put(name: str, text: str) -> str:
        """Write a file."""
        write(folder, {name: text})
        return "written"

    return put


def worked(folder: Path, store: Path | None = None, hook: Checkpoint | None = None) -> Dialog:
    """Return a dialog in which an agent wrote files in two turns."""
    script = [
        calling("put", name="a.txt", text="two"),
        "Done.",
        calling("put", name="new/b.txt", text="b"),
        "Done again.",
    ]
    made = Agent(
        "clerk",
        "You write.",
        "gpt-5-mini",
        ScriptedProvider(script),
        tools=[writer(folder)],
        checkpoint=hook or git_checkpoint(folder),
        store=store,
    )
    made.open("main")
    made.respond("Change a.")
    write(folder, {"mine.txt": "by hand"})
    made.respond("Write b.")
    return made.current_dialog


def place(dialog: Dialog, text: str) -> Handle:
    """Return the handle of the message with a text."""
    return next(
        dialog.messages.handle(index) for index, message in enumerate(dialog.messages) if message.text_content() == text
    )


STATES = st.dictionaries(
    st.sampled_from(["a.txt", "d/e.txt", "d/f/g.txt", "staged.txt", "ü b.txt", "h"]),
    st.text("xyz\n", max_size=9),
    max_size=6,
)


def test_any_state_comes_back_and_nothing_else_changes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever was written, changed and deleted since; the index, HEAD, branches, stash and ignored files are as before."""
    folder = tmp_path_factory.mktemp("law")
    git(folder, "init", "-q")
    write(folder, {".gitignore": "*.log\n", "a.txt": "one"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")

    def become(state: Mapping[str, str]) -> None:
        write(folder, dict.fromkeys(set(files(folder)) - {".gitignore", "x.log"}))
        write(folder, state)

    @settings(max_examples=15)
    @given(STATES, STATES)
    def law(first: dict[str, str], second: dict[str, str]) -> None:
        hook = git_checkpoint(folder)
        become(first)
        before, kept = files(folder), hook.snapshot()
        assert hook.snapshot() == kept, "the same files give the same snapshot"
        become(second)
        write(folder, {"x.log": "ignored"})
        mine = own(folder)
        hook.restore(json.loads(json.dumps(kept)))
        assert files(folder) == before | {"x.log": "ignored"}
        assert own(folder) == mine

    law()


def test_each_turn_records_the_files_it_began_with(tree: Path) -> None:
    """One record a turn, in the log and in no view; what a person changed between turns is in the next."""
    mine = own(tree)
    dialog = worked(tree)
    kept = [
        entry.data["snapshot"] for entry in entries(dialog) if isinstance(entry, Custom) and entry.custom_type == FILES
    ]
    assert len(kept) == 2
    assert [git(tree, "show", f"{each['commit']}:a.txt") for each in kept] == ["one", "two"]
    assert git(tree, "show", f"{kept[1]['commit']}:mine.txt") == "by hand"
    assert own(tree) == mine
    assert FILES not in str([message.to_dict() for message in dialog.messages])


def test_the_state_for_an_entry(tree: Path) -> None:
    """Between turns it is what the next turn began with, exactly; within a turn, what this one began with, and the calls it lacks are counted."""
    dialog = worked(tree)
    first, second = (files_at(dialog, place(dialog, text)) for text in ("Change a.", "Done."))
    assert first is not None
    assert second is not None
    assert (first.calls, second.calls) == (0, 0)
    assert first.snapshot != second.snapshot
    within = files_at(dialog, place(dialog, "written"))
    assert within is not None
    assert (within.snapshot, within.calls) == (second.snapshot, 0), "no tool ran between the result and the next turn"
    call = next(dialog.messages.handle(at) for at, message in enumerate(dialog.messages) if message.is_function_call)
    assert files_at(dialog, call) == first


def test_a_snapshot_that_fails_is_said_and_the_turn_goes_on(tree: Path) -> None:
    """The log and a warning say why; a rewind to there finds no state of that turn. A value that is not JSON fails alike."""

    def fails() -> object:
        raise OSError("no room left")

    for snapshot, said in ((fails, "no room left"), (object, "")):
        hook = Checkpoint(snapshot, lambda _kept: None)
        agent, _ = scripted(["Done."], checkpoint=hook)
        with pytest.warns(CheckpointWarning, match=said):
            answer = agent.respond("Work.")
        assert answer.content == "Done."
        (record,) = [
            each for each in entries(agent.current_dialog) if isinstance(each, Custom) and each.custom_type == FILES
        ]
        assert said in record.data["error"]
        assert files_at(agent.current_dialog, place(agent.current_dialog, "Work.")) is None
    with pytest.raises(InvalidInput, match="checkpoint"):
        scripted([], checkpoint=fails)
    with pytest.raises(InvalidInput, match="no work tree"):
        git_checkpoint(tree.parent)


def test_a_snapshot_of_another_tree_is_refused(tree: Path) -> None:
    """Only a commit that this tree keeps as a snapshot is restored: no other commit, no text, no value of another hook."""
    before = files(tree)
    head = git(tree, "rev-parse", "HEAD").strip()
    for snapshot in ({"commit": head}, {"commit": "0" * 40}, {"commit": "--help"}, {"commit": 7}, "x", None, {}):
        with pytest.raises(NotFound):
            GitTree.of(tree).restore(snapshot)
    assert files(tree) == before


def test_removed_snapshots_are_said_and_nothing_else_goes(tree: Path) -> None:
    """The command of the guide removes the refs of all snapshots, and so their commits; the user's own stay, and going back says what is missing."""
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
    (command,) = (line for line in guide.splitlines() if line.startswith("git for-each-ref"))
    hook = git_checkpoint(tree)
    mine, snapshot = own(tree), hook.snapshot()
    subprocess.run(command, shell=True, cwd=tree, check=True)  # noqa: S602 - a line of our own guide
    assert git(tree, "for-each-ref", "refs/palaver") == ""
    git(tree, "gc", "-q", "--prune=now")
    with pytest.raises(NotFound):
        hook.restore(snapshot)
    with pytest.raises(subprocess.CalledProcessError):
        git(tree, "cat-file", "-e", snapshot["commit"])
    assert own(tree) == mine
    hook.restore(hook.snapshot())


@pytest.mark.parametrize(
    ("kept", "ignored"), [("notes.txt", "notes.txt"), ("n/m.txt", "n"), ("n", "n/m.txt"), ("n/m.txt", "n/m.txt/k")]
)
def test_an_ignored_file_in_the_way_stays(tree: Path, kept: str, ignored: str) -> None:
    """A file that git ignores is in no snapshot: where one is in the way, nothing is restored at all."""
    hook = git_checkpoint(tree)
    write(tree, {kept: "old"})
    snapshot = hook.snapshot()
    write(tree, {kept: None, ".gitignore": "n\nnotes.txt\nm.txt\n", "a.txt": "changed"})
    if (tree / "n").is_dir():
        (tree / "n").rmdir()
    write(tree, {ignored: "precious"})
    before = files(tree)
    with pytest.raises(PalaverError, match="in the way"):
        hook.restore(snapshot)
    assert files(tree) == before


# --- the command line -----------------------------------------------------------------------------------------------------------------


def rewind(tree: Path, store: Path, monkeypatch: pytest.MonkeyPatch, *words: object) -> Ran:
    """Run the command in the work tree."""
    monkeypatch.chdir(tree)
    return run("branch", "rewind", *words, "--files", "--store", store)


def test_a_rewind_brings_files_back_and_is_undone(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It first says what would change, and changes nothing; then conversation and files go back together, and undoing brings both back."""
    store = tree.parent / "store.db"
    dialog = worked(tree, store)
    to, before, mine = place(dialog, "Change a."), files(tree), own(tree)
    asked = rewind(tree, store, monkeypatch, to)
    assert (asked.code, "--yes does it" in asked.out) == (0, True)
    assert all(line in asked.out for line in ("M a.txt", "D new/b.txt", "D mine.txt"))
    assert files(tree) == before
    done = rewind(tree, store, monkeypatch, to, "--yes")
    assert (done.code, "continues" in done.out) == (0, True), done
    assert files(tree) == {"a.txt": "one", ".gitignore": "*.log\n", "x.log": "kept out", "staged.txt": "staged"}
    with SqliteStore(store) as opened:
        session = Session.open(opened, dialog.session_id)
        assert [message.text_content() for message in session.root.messages][-1] == "Change a."
    assert rewind(tree, store, monkeypatch, dialog.session_id, "--undo").code == 0
    undone = rewind(tree, store, monkeypatch, dialog.session_id, "--undo", "--yes")
    assert (undone.code, files(tree), own(tree)) == (0, before, mine), undone
    with SqliteStore(store) as opened:
        assert Session.open(opened, dialog.session_id).root.dialog_id == dialog.dialog_id


def test_a_rewind_elsewhere_changes_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another folder, without a kept state, or after another hook, neither the files nor the conversation go back."""
    store, other = tree.parent / "store.db", tree.parent / "other"
    other.mkdir()
    dialog = worked(tree, store)
    to, before = place(dialog, "Done."), files(tree)
    assert rewind(other, store, monkeypatch, to, "--yes").code == 3
    git(other, "init", "-q")
    assert rewind(other, store, monkeypatch, to, "--yes").code == 4
    plain = worked(tree, tree.parent / "plain.db", Checkpoint(lambda: 7, lambda _kept: None))
    assert "Another hook" in rewind(tree, tree.parent / "plain.db", monkeypatch, place(plain, "Done."), "--yes").err
    assert files(tree) == before
    with SqliteStore(store) as opened:
        assert Session.open(opened, dialog.session_id).root.dialog_id == dialog.dialog_id
    assert [path.name for path in other.iterdir()] == [".git"]
