"""Readings: a model whose pattern is spelt for another tool is never left to believe that there is nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import CallContext, Dialog, Files
from palaver.session.memory import file_tools, recall_tools
from palaver.session.memory.patterns import Pattern, as_text

TEXTS = {
    "notes/plan.md": "foo one\nbar two\ncall(x) three\nword here\naa + b\nHeron",
    "README.md": "Read me.",
    "src/a.ts": "x",
    "src/b.tsx": "y",
}


def used(dialog: Dialog, name: str, **arguments: object) -> str:
    """Call one of the tools."""
    tools = (*file_tools(dialog), *recall_tools(dialog))
    function = next(tool for tool in tools if tool.name == name).function
    assert function is not None
    said = function(context=CallContext(), **arguments)
    return said if isinstance(said, str) else f"error: {said.content}"


@pytest.fixture
def dialog() -> Dialog:
    """A dialog with files."""
    made = Dialog(owner="a")
    files = Files(made)
    for name, text in TEXTS.items():
        files.write(name, text)
    return made


@pytest.mark.parametrize(
    ("pattern", "read", "first"),
    [
        (r"foo\|bar", "`foo|bar`", "notes/plan.md:1: foo one"),
        (r"\(foo\|bar\) two", "`(foo|bar) two`", "notes/plan.md:2: bar two"),
        (r"fo\{2\}", "`fo{2}`", "notes/plan.md:1: foo one"),
        (r"fo\+", "`fo+`", "notes/plan.md:1: foo one"),
        (r"call(x)\|zzz", r"`call\(x\)|zzz`", "notes/plan.md:3: call(x) three"),
        (r"call(\|zzz(", r"`call\(|zzz\(`", "notes/plan.md:3: call(x) three"),
        (r"(foo|bar)\? zz\|two", r"`\(foo\|bar\)? zz|two`", "notes/plan.md:2: bar two"),
        ("call(x)", r"`call\(x\)`", "notes/plan.md:3: call(x) three"),
        ("call(", r"`call\(`", "notes/plan.md:3: call(x) three"),
        ("aa + b", r"`aa \+ b`", "notes/plan.md:5: aa + b"),
        ("/foo/", "`foo`", "notes/plan.md:1: foo one"),
        ("/HERON/i", "`HERON`", "notes/plan.md:6: Heron"),
        ("heron", "without regard to capitals", "notes/plan.md:6: Heron"),
        (r"ZZZ\|HERON", "`ZZZ|HERON`, and without regard to capitals", "notes/plan.md:6: Heron"),
    ],
)
def test_what_finds_nothing_is_read_as_it_was_meant(dialog: Dialog, pattern: str, read: str, first: str) -> None:
    """The answer says that nothing fits as it stands, how it was read, and what that finds, page by page."""
    head, *lines = used(dialog, "file_grep", pattern=pattern).splitlines()
    assert head.startswith(f"No line fits `{pattern}` as it stands: ")
    assert read in head
    assert lines[0] == first
    assert used(dialog, "file_grep", pattern=pattern, offset=99).splitlines() == [head, "No more lines fit."]


@pytest.mark.parametrize("pattern", [r"\<word\>", r"^foo\b", r"call\(x\)", "foo|bar", r"aa \+ b"])
def test_what_finds_something_is_taken_as_it_stands(dialog: Dialog, pattern: str) -> None:
    """No word about how it was read; the same as for a program."""
    lines = used(dialog, "file_grep", pattern=pattern).splitlines()
    assert lines == [f"{one.path}:{one.line}: {one.text}" for one in Files(dialog).grep(pattern).found]
    assert used(dialog, "file_grep", pattern=pattern, offset=99) == "No more lines fit."


def test_a_bar_behind_a_backslash_that_finds_bars_is_explained(dialog: Dialog) -> None:
    """A table has bars: what stands on either side may be there as well, and the answer says how that is asked."""
    Files(dialog).write("table.md", "| foo | bar |")
    said = used(dialog, "file_grep", pattern=r"foo \| bar")
    assert said.splitlines() == [
        "(`\\|` is looked for as a bar here; either of two is `a|b`.)",
        "table.md:1: | foo | bar |",
    ]


@pytest.mark.parametrize("pattern", ["nope", r"nope\|never", "/nope/", "nope(", r"no\nline", "нет"])
def test_that_there_is_nothing_is_said_with_what_was_looked_through(dialog: Dialog, pattern: str) -> None:
    """Nothing in any reading: the number of files, or what is wrong with the pattern; never a bare nothing."""
    said = used(dialog, "file_grep", pattern=pattern)
    assert "No line of 4 files fits" in said or said.startswith("error: 'nope(' is no pattern: a ( that nothing closes")
    assert ("looked at by itself" in said) == ("\\n" in pattern)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "*.md"}, "It fits a name, README.md and others: file_glob finds names"),
        ({"pattern": "README"}, "It fits a name, README.md: file_glob finds names"),
        (
            {"pattern": "foo", "files_like": "nowhere"},
            "No name fits files_like=`nowhere`, so nothing was searched. There are: README.md,",
        ),
        ({"pattern": "foo", "files_like": "notes"}, "notes/plan.md:1: foo one"),
        ({"pattern": "foo", "files_like": r".*\.md"}, "notes/plan.md:1: foo one"),
        ({"pattern": "x", "files_like": "*.{ts,tsx}"}, "src/a.ts:1: x"),
        ({"pattern": "(?=foo)"}, "error: '(?=foo)' is no pattern: a group that looks around"),
        ({"pattern": "((a{99}){99}){99}"}, "error: The pattern is too large."),
    ],
)
def test_names_and_lines_are_told_apart(dialog: Dialog, arguments: dict[str, str], said: str) -> None:
    """A glob where an expression is wanted, an expression where a glob is, a folder, no such name: each is named, and nothing is silently left out."""
    assert said in used(dialog, "file_grep", **arguments)


@pytest.mark.parametrize(
    ("pattern", "how", "found"),
    [
        ("*.{ts,tsx}", "", "src/a.ts"),
        ("notes/", "is a folder", "notes/plan.md"),
        ("notes", "is a folder", "notes/plan.md"),
        ("plan", "these hold 'plan'", "notes/plan.md"),
        ("readme*", "without regard to", "README.md"),
        (r".*\.md", "as a regular expression", "README.md"),
        ("^src", "as a regular expression", "src/a.ts"),
        ("zzz", "No name fits `zzz`. There are: README.md, notes/plan.md, src/a.ts, src/b.tsx.", ""),
        ("[", "No name fits `[`.", ""),
    ],
)
def test_globs_are_read_as_they_were_meant(dialog: Dialog, pattern: str, how: str, found: str) -> None:
    """Braces, folders, parts of names, capitals and regular expressions; where nothing fits, what there is."""
    said = used(dialog, "file_glob", pattern=pattern)
    assert how in said
    assert ("as it stands" in said) == bool(how and found)
    assert not found or f"{found} (" in said


def test_braces_are_bounded(dialog: Dialog) -> None:
    """Forty pairs of braces would be a million million names: the first of them are looked for; a name with braces is found as it is."""
    Files(dialog).write("{a,b}.md", "braces")
    assert "{a,b}.md" in used(dialog, "file_glob", pattern="{a,b}.md")
    assert "No name fits" in used(dialog, "file_glob", pattern="{a,b}" * 40)


def test_a_store_without_files_says_so(dialog: Dialog) -> None:
    """Whatever is asked; and a folder that is none is told with what there is."""
    assert used(Dialog(owner="b"), "file_grep", pattern="x") == "There are no files."
    assert "There are no files." in used(Dialog(owner="b"), "file_glob", pattern="x")
    assert used(dialog, "file_list", folder="zzz").startswith("There is no folder `zzz`. There are: README.md")
    assert used(dialog, "file_list", offset=99) == "There are no more: 4 in all."


def test_words_joined_by_or_are_told_one_by_one(dialog: Dialog) -> None:
    """A search of the history wants all words; where no message holds all, it says which are there."""
    dialog.put_text("The heron stands in the water.")
    for query in ("heron OR gull", "heron|gull", r"heron\|gull"):
        said = used(dialog, "search_history", query=query)
        assert said.startswith("Nothing holds all words of")
        assert "By themselves are found: heron." in said
    assert "None of them is found by itself." in used(dialog, "search_history", query="gull cormorant")


@given(st.text(max_size=20))
def test_a_text_is_found_by_its_expression(text: str) -> None:
    """Whatever signs it has, but for a break of lines."""
    assert Pattern(as_text(text)).found(f"before {text} behind")
