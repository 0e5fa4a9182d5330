"""Walking: which files are a repository's own, whatever lies in its folders; and a folder is never an error but where it is the one that was named."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from palaver.errors import InvalidInput
from palaver.repomap import File, Limits, Repository, Tags, look
from palaver.repomap.walking import read, walk
from tests.repomap.made_up import SHOP, written


def paths(folder: Path, limits: Limits | None = None) -> list[str]:
    """Give the files that are found."""
    return list(walk(folder, limits or Limits()).paths)


def one(repository: Repository, path: str) -> File:
    """Give a file."""
    return next(file for file in repository.files if file.path == path)


def test_files_are_found_from_the_top_in_order(tmp_path: Path) -> None:
    """Files nearer to the top come first, then by name, whatever the order in which the disk has them."""
    written(tmp_path, {"b/c/d.py": "", "b/a.py": "", "z.py": "", "a.py": "", "ä.txt": ""})
    assert paths(tmp_path) == ["a.py", "z.py", "ä.txt", "b/a.py", "b/c/d.py"]


def test_git_ignores_the_same(tmp_path: Path) -> None:
    """What is found is what git would add: patterns of every folder, negated ones, of folders, of what is above, and of its own exclude file."""
    written(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\nbuild/\n/top.py\n# no pattern\n\na/**/deep.py\n",
            "a/.gitignore": "!*.log\nsecret.py\n",
            "a/secret.py": "",
            "a/x.log": "",
            "a/b/c/deep.py": "",
            "a/top.py": "",
            "top.py": "",
            "x.log": "",
            "keep.log": "",
            "build/made.py": "",
            "a/build/made.py": "",
            "excluded.py": "",
            "kept.py": "",
        },
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("excluded.py\n", "utf-8")
    asked = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert sorted(paths(tmp_path)) == sorted(asked.stdout.split())
    assert paths(tmp_path / "a") == [".gitignore", "top.py", "x.log"]
    assert paths(tmp_path / "build") == ["made.py"], "who names an ignored folder wants it"


def test_what_is_no_source_is_not_gone_into(tmp_path: Path) -> None:
    """Folders of version control, of packages and of Python's environments are passed over."""
    written(
        tmp_path,
        {
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "",
            "node_modules/y.js": "",
            ".git/z.py": "",
            "__pycache__/a.py": "",
            "a.py": "",
        },
    )
    assert paths(tmp_path) == ["a.py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Links to files, to folders above and out of the repository are counted and left alone; so are pipes, which nobody waits for."""
    inside = written(tmp_path / "inside", {"a.py": "x = 1\n", "d/b.py": ""})
    written(tmp_path, {"outside.py": "secret = 1\n"})
    (inside / "d/loop").symlink_to(inside)
    (inside / "self").symlink_to(inside / "self")
    (inside / "link.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(inside / "pipe.py")
    found = look(inside)
    assert [file.path for file in found.files] == ["a.py", "d/b.py"]
    assert found.left_out == {"link": 3, "no file": 1}


def test_a_file_that_becomes_something_else_is_not_read(tmp_path: Path) -> None:
    """Between being seen and being read a file may become a link, a pipe, a folder, or go: it is told why it is not read."""
    written(tmp_path, {"a.py": "x = 1\n"})
    (tmp_path / "link").symlink_to(tmp_path / "a.py")
    os.mkfifo(tmp_path / "pipe")
    assert read(tmp_path / "a.py", 100) == b"x = 1\n"
    assert read(tmp_path / "a.py", 3) == "too large"
    assert read(tmp_path / "link", 100) == "unreadable"
    assert read(tmp_path / "pipe", 100) == "no file"
    assert read(tmp_path, 100) == "no file"
    assert read(tmp_path / "gone", 100) == "unreadable"


@contextmanager
def nobody() -> Iterator[None]:
    """Be somebody who may not read everything; root may."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_what_may_not_be_read_is_counted() -> None:
    """Files and folders without permission are counted; a folder that was named and cannot be read is the caller's error."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        written(folder, {"a.py": "x = 1\n", "d/b.py": "", "c.py": "y = 1\n"})
        assert look(folder).left_out == {}
        (folder / "a.py").chmod(0)
        (folder / "d").chmod(0)
        with nobody():
            assert look(folder).left_out == {"unreadable": 2}
            with pytest.raises(InvalidInput, match="denied"):
                look(folder / "d")
    finally:
        (folder / "d").chmod(0o700)
        shutil.rmtree(folder)


def test_only_the_folder_that_was_named_can_be_wrong(tmp_path: Path) -> None:
    """A file, or nothing, in the place of the folder is an error in words."""
    written(tmp_path, {"a.py": ""})
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for wrong in ("a.py", "none", "loop"):
        with pytest.raises(InvalidInput, match="cannot be mapped"):
            look(tmp_path / wrong)


def test_files_that_nobody_wrote_have_only_a_name(tmp_path: Path) -> None:
    """Binary, minified, too large: each is counted by why, and listed."""
    written(
        tmp_path,
        {
            "binary.py": b"x = 1\0",
            "small.min.js": "var a=1;" * 2_000,
            "large.py": "x = 1\n" * 100_000,
            "wide.js": "function f(){}",
            "utf16.py": "x = 1\n".encode("utf-16"),
            "latin.py": "name = 'é'\n".encode("latin-1"),
            "mark.py": b"\xef\xbb\xbfdef marked(): pass\n",
        },
    )
    found = look(tmp_path)
    assert found.left_out == {"made by a program": 1, "no text": 2, "too large": 1}
    assert len(found.files) == 7
    tags = one(found, "latin.py").tags
    assert tags is not None
    assert tags.definitions[0].head[0].text == "name = '�'"
    marked = one(found, "mark.py").tags
    assert marked is not None
    assert marked.definitions[0].name == "marked"
    assert marked.definitions[0].head[0].text == "def marked(): pass"


def test_limits_are_kept_to_and_told(tmp_path: Path) -> None:
    """Of names, files, bytes and files without sense so many are looked at as was said; the rest is counted."""
    written(tmp_path, {f"f{number:02}.py": f"def f{number}(): pass\n" for number in range(20)})
    assert len(paths(tmp_path, Limits(entries=5))) == 5
    for limits in (Limits(files=7), Limits(total_bytes=7 * 15 - 5)):
        found = look(tmp_path, limits)
        assert sum(file.tags is not None for file in found.files) == 7
        assert len(found.files) == 20
        assert found.left_out == {"beyond the limit": 13}
    written(tmp_path, {f"e{number}.py": ("(" * 99 + "\n") * 200 for number in range(5)})
    found = look(tmp_path, Limits(given_up=3 * 20_000))
    assert found.left_out == {"beyond the limit": 22, "too intricate": 3}


def test_a_costly_pattern_is_no_pattern(tmp_path: Path) -> None:
    """Patterns that a name could make slow, and lines that are none, are counted and not tried; the others of the file hold."""
    slow = "*a*a*a*a*a*a*a*a*a*b"
    written(
        tmp_path,
        {".gitignore": f"{slow}\n\\\n[z-\n**/a/**/b/**/c/**/d\n*.log\n", "a" * 200: "", "x.log": "", "y.py": ""},
    )
    found = walk(tmp_path, Limits())
    assert found.paths == (".gitignore", "a" * 200, "y.py")
    assert 2 <= found.left_out["lines of .gitignore"] <= 4


def test_a_name_that_is_no_text_is_only_shown_as_one(tmp_path: Path) -> None:
    """A file whose name is no UTF-8, or holds a line's end, is a file like others."""
    try:
        (tmp_path / os.fsdecode(b"b\xff.py")).write_bytes(b"def odd(): pass\n")
    except OSError:
        pytest.skip("this disk takes no such names")
    (tmp_path / "a\nb.py").write_bytes(b"def even(): pass\n")
    found = look(tmp_path)
    assert sum(file.tags is not None for file in found.files) == 2
    assert len(found.digest) == 64


def test_a_digest_says_what_a_map_depends_on(tmp_path: Path) -> None:
    """The same names and sources have the same digest, in another folder too; one more byte of a source, or one more name, another."""
    first = look(written(tmp_path / "one", SHOP)).digest
    other = written(tmp_path / "other", SHOP)
    assert look(other).digest == first
    (other / "README.md").write_text("# Another\n", "utf-8")
    assert look(other).digest == first
    (other / "shop/till.py").write_text("x = 1\n", "utf-8")
    changed = look(other).digest
    assert changed != first
    (other / "new.txt").touch()
    assert look(other).digest not in {first, changed}


def test_what_did_not_change_is_not_parsed_again(tmp_path: Path) -> None:
    """Files are known by their content: what is known is used, wherever it lies, and what is gone is forgotten."""
    known: dict[str, Tags | None] = {}
    look(written(tmp_path, SHOP), None, known)
    before = dict(known)
    (tmp_path / "shop/till.py").rename(tmp_path / "shop/moved.py")
    again = look(tmp_path, None, known)
    assert known == before
    assert all(known[key] is before[key] for key in known)
    (tmp_path / "shop/shelf.py").unlink()
    look(tmp_path, None, known)
    assert len(known) == len(before) - 1
    assert one(again, "shop/moved.py").tags is not None


def test_a_tree_that_changes_while_it_is_looked_at_is_no_error(tmp_path: Path) -> None:
    """Files and folders that come, go, grow and become links meanwhile: each look gives something, and the last one what is there then."""
    done = threading.Event()
    written(tmp_path, SHOP)

    def stir() -> None:
        for turn in range(1_000_000):
            if done.is_set():
                return
            place = tmp_path / f"d{turn % 3}"
            written(place, {"a.py": "def came(): pass\n" * (turn % 50), "deep/b.py": "x = 1\n"})
            (place / "link.py").symlink_to(place / "a.py")
            shutil.rmtree(place)

    thread = threading.Thread(target=stir)
    thread.start()
    try:
        for _ in range(40):
            assert len(look(tmp_path).files) >= len(SHOP)
    finally:
        done.set()
        thread.join()
    assert [file.path for file in look(tmp_path).files] == sorted(SHOP, key=lambda path: (path.count("/"), path))
