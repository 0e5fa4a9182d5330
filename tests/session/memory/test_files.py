"""Files for a model: names that lead nowhere else, texts that stay, and what a fork has of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Dialog, Files, MemoryConflict, MemoryFull, NotFound, Session, SqliteStore
from palaver.errors import InvalidInput
from palaver.session.memory import files as limits
from palaver.session.memory import notes

BAD = [
    "",
    "/",
    "/etc/passwd",
    "../up",
    "a/../../b",
    "~/.ssh/id",
    "a\\b",
    "c:/x",
    "a\0b",
    "a\nb",
    "x" * 256,
    "..",
    ".",
    "a/..",
    "*",
    "two\u2028lines",
    "two\x85lines",
    "\u202egnp.exe",
    "\ufeffa",
    "a\ud800b",
]


def files() -> Files:
    """Give files in a dialog of their own."""
    return Files(Dialog(owner="a"))


@pytest.mark.parametrize("name", BAD)
def test_no_name_leads_out(name: str) -> None:
    """Law 12: upward, absolute, of a home, with what shells and systems read: refused by everything that takes a name."""
    here = files()
    for act in (
        here.read,
        here.delete,
        here.history,
        lambda one: here.write(one, "x"),
        lambda one: here.edit(one, "a", "b"),
    ):
        with pytest.raises(InvalidInput):
            act(name)
    assert here.list() == ()


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_is_one_name_or_none(name: str) -> None:
    """Whatever is given: refused, or written under one spelling, by which it is read, listed and found."""
    here = files()
    try:
        written = here.write(name, "text")
    except InvalidInput:
        return
    assert here.read(written.path) == here.read(name) == written
    assert [one.path for one in here.list()] == [written.path]
    assert not written.path.startswith(("/", "~"))
    assert ".." not in written.path.split("/")


def test_writing_reading_editing_and_deleting() -> None:
    """A file is what was written last; every earlier text stays in its history; deleting takes it away and a new one may come."""
    here = files()
    here.write("notes/plan.md", "one\ntwo\n", by="ada")
    here.append("notes/plan.md", "three")
    changed = here.edit("./notes//plan.md", "two", "TWO")
    assert changed.text == here.read("notes/plan.md").text == "one\nTWO\nthree"
    assert [one.text for one in here.history("notes/plan.md")] == ["one\ntwo\n", "one\ntwo\nthree", "one\nTWO\nthree"]
    here.delete("notes/plan.md")
    with pytest.raises(NotFound):
        here.read("notes/plan.md")
    here.write("notes/plan.md", "")
    assert here.read("notes/plan.md").text == ""


def test_an_edit_names_what_stands_there_once() -> None:
    """Nowhere, or twice: a conflict with the text as it stands, and nothing is written; an empty text is no name of a place."""
    here = files()
    here.write("a", "x y x")
    for old in ("z", "x"):
        with pytest.raises(MemoryConflict) as caught:
            here.edit("a", old, "!")
        assert caught.value.value == "x y x"
    with pytest.raises(InvalidInput):
        here.edit("a", "", "!")
    assert here.read("a").text == "x y x"
    with pytest.raises(NotFound) as near:
        here.edit("aa", "x", "y")
    assert near.value.close == ("a",)


def test_limits_hold_and_nothing_is_written_beyond_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file, all of them together, and how many: each a typed error with both figures."""
    monkeypatch.setattr(limits, "LARGEST", 10)
    monkeypatch.setattr(limits, "MOST_CHARACTERS", 15)
    monkeypatch.setattr(limits, "MOST_FILES", 3)
    here = files()
    with pytest.raises(MemoryFull) as caught:
        here.write("a", "x" * 11)
    assert (caught.value.size, caught.value.limit) == (11, 10)
    here.write("a", "x" * 10)
    with pytest.raises(MemoryFull):
        here.write("b", "x" * 6)
    for name in ("b", "c"):
        here.write(name, "")
    with pytest.raises(MemoryFull):
        here.write("d", "")
    assert [one.path for one in here.list()] == ["a", "b", "c"]


def test_a_fork_has_what_there_was_and_goes_on_by_itself() -> None:
    """Files are as of the fork on both sides, and what either writes then is its own."""
    dialog = Dialog(owner="a")
    dialog.put_text("hello")
    mine = Files(dialog)
    mine.write("shared", "before")
    theirs = Files(dialog.reload().fork())
    mine.write("shared", "mine")
    theirs.write("own", "theirs")
    assert theirs.read("shared").text == "before"
    assert [one.path for one in mine.list()] == ["shared"]
    assert [one.path for one in theirs.list()] == ["own", "shared"]


def test_files_are_there_in_the_next_process(tmp_path: Path) -> None:
    """Durable like everything else: a store that is opened again has them, and another reader sees what was written meanwhile."""
    with SqliteStore(tmp_path / "s.db") as store:
        session = Session.create(store, "s", owner="a")
        dialog = session.root
        here, there = Files(dialog), Files(dialog)
        here.write("a", "1")
        assert there.read("a").text == "1"
        there.edit("a", "1", "2")
        assert here.read("a").text == "2"
    with SqliteStore(tmp_path / "s.db") as store:
        assert Files(Session.open("s", store).root).read("a").text == "2"


def test_writers_beside_each_other_lose_nothing(tmp_path: Path) -> None:
    """Eight threads append to one file: every line is there once, or its writer was told."""
    with SqliteStore(tmp_path / "s.db") as store:
        dialog = Session.create(store, "s", owner="a").root
        here = Files(dialog)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: Files(dialog).append("log", f"{number}\n"), range(40)))
        assert sorted(map(int, here.read("log").text.split())) == list(range(40))


def test_lists_globs_and_greps() -> None:
    """By folder, by name through folders, and by lines; a page says whether there is more."""
    here = files()
    for name in ("a.md", "notes/b.md", "notes/deep/c.md", "notes/d.txt", "other/b.md"):
        here.write(name, f"first line of {name}\nsecond {'needle' if name.endswith('md') else 'hay'}\n")
    assert [one.path for one in here.list("notes")] == ["notes/b.md", "notes/d.txt", "notes/deep/c.md"]
    assert [one.path for one in here.glob("*.md")] == ["a.md", "notes/b.md", "notes/deep/c.md", "other/b.md"]
    assert [one.path for one in here.glob("notes/*.md")] == ["notes/b.md"]
    assert [one.path for one in here.glob("notes/**")] == ["notes/b.md", "notes/d.txt", "notes/deep/c.md"]
    assert [one.path for one in here.glob("**/b.*")] == ["notes/b.md", "other/b.md"]
    assert [one.path for one in here.glob("n?tes/**/c.md")] == ["notes/deep/c.md"]
    found = here.grep("^second need", glob="notes/**")
    assert [(one.path, one.line) for one in found.found] == [("notes/b.md", 2), ("notes/deep/c.md", 2)]
    assert not found.more
    page = here.grep("NEEDLE", ignore_case=True, limit=2, skip=1)
    assert [one.path for one in page.found] == ["notes/b.md", "notes/deep/c.md"]
    assert page.more


def test_a_search_reads_to_the_end_of_all_files() -> None:
    """Five million characters before the line that fits: it is found, and there is no more."""
    here = files()
    for number in range(20):
        here.write(f"{number:02}", ("x" * 999 + "\n") * 250)
    here.write("last", "y" * 900 + "\nz")
    found = here.grep("z")
    assert [(one.path, one.line) for one in found.found] == [("last", 2)]
    assert not found.more
    assert found.files == 21


def test_a_search_that_would_cost_too_much_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text times what the pattern weighs is bounded; the error says what to do, and fewer files can be searched."""
    monkeypatch.setattr(limits, "_MOST_WORK", 10_000)
    here = files()
    here.write("large", "x" * 900)
    here.write("small", "x" * 9)
    assert here.grep("x{9}").found
    with pytest.raises(InvalidInput, match="too large for so much text"):
        here.grep("x{20}")
    assert here.grep("x{20}", glob="small").found == ()


def test_what_cannot_be_a_name_is_said_again_in_part() -> None:
    """Ten megabytes of a name are no ten megabytes of an error."""
    with pytest.raises(InvalidInput) as caught:
        files().write("x" * 10_000_000, "")
    assert len(str(caught.value)) < 300


def test_files_among_many_other_entries_are_read_as_those_that_stand_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """However notes stand in the log, near or far: the same files, also when one of them was erased."""
    for close in (0, 10**9):
        monkeypatch.setattr(notes, "_CLOSE", close)
        session = Session.create(owner="a")
        dialog = session.root
        here = Files(dialog)
        for number in range(6):
            Files(dialog).write(f"{number}", f"text {number}")
            for _ in range(number):
                dialog.reload().put_text("something else")
        assert [one.text for one in here.list()] == [f"text {number}" for number in range(6)]
        place = here.read("3").handle
        session.erase(entries=[place])
        assert [one.path for one in here.list()] == ["0", "1", "2", "4", "5"]
