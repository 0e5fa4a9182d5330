"""Which files of a folder belong to a repository, and what is read of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from palaver.repomap import look
from palaver.repomap.files import ScanLimits, read, walk
from tests.repomap.made_up import SHOP, written


def paths(folder: Path, limits: ScanLimits | None = None) -> list[str]:
    """Return the files of a folder."""
    return walk(folder, limits or ScanLimits()).paths


def test_the_same_files_are_ignored_as_in_git(tmp_path: Path) -> None:
    """Patterns of every folder, negated ones, those of folders above, and `.git/info/exclude`; a named folder is never ignored."""
    ignore = "*.log\n!keep.log\nbuild/\n/top.py\n# a comment\n\na/**/deep.py\n"
    written(tmp_path, {".gitignore": ignore, "a/.gitignore": "!*.log\nsecret.py\n"})
    names = (
        "a/secret.py a/x.log a/b/c/deep.py a/top.py top.py x.log keep.log build/made.py a/build/b.py excluded.py b.py"
    )
    written(tmp_path, dict.fromkeys(names.split(), ""))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("excluded.py\n", "utf-8")
    listing = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"]
    ran = subprocess.run(listing, check=True, capture_output=True, text=True)
    assert sorted(paths(tmp_path)) == sorted(ran.stdout.split())
    assert paths(tmp_path / "a") == [".gitignore", "top.py", "x.log"]
    assert paths(tmp_path / "build") == ["made.py"]


def test_foreign_folders_are_skipped(tmp_path: Path) -> None:
    """Version control, installed packages and virtual environments."""
    names = "env/pyvenv.cfg env/lib/x.py node_modules/y.js .git/z.py __pycache__/a.py a.py"
    assert paths(written(tmp_path, dict.fromkeys(names.split(), ""))) == ["a.py"]


def test_links_and_pipes_are_counted_not_read(tmp_path: Path) -> None:
    """No link leads out of the folder or in a circle, and no pipe blocks."""
    inside = written(tmp_path / "inside", {"a.py": "x = 1\n", "d/b.py": ""})
    written(tmp_path, {"outside.py": "secret = 1\n"})
    (inside / "d/loop").symlink_to(inside)
    (inside / "self").symlink_to(inside / "self")
    (inside / "link.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(inside / "pipe.py")
    found = look(inside)
    assert [file.path for file in found.files] == ["a.py", "d/b.py"]
    assert found.left_out == {"link": 3, "not a file": 1}


def test_a_file_that_changed_its_kind_is_not_read(tmp_path: Path) -> None:
    """Between listing and reading a file may become a link, a pipe or a folder."""
    written(tmp_path, {"a.py": "x = 1\n"})
    (tmp_path / "link").symlink_to(tmp_path / "a.py")
    os.mkfifo(tmp_path / "pipe")
    assert read(tmp_path / "a.py", 100) == b"x = 1\n"
    assert read(tmp_path / "a.py", 3) == "too large"
    assert {read(tmp_path / name, 100) for name in ("link", "gone")} == {"unreadable"}
    assert {read(tmp_path / name, 100) for name in ("pipe", ".")} == {"not a file"}


def test_files_that_are_not_source_have_only_a_name(tmp_path: Path) -> None:
    """Binary, generated and large files are counted by reason; a byte order mark and Latin-1 are read."""
    files: dict[str, str | bytes] = {
        "small.min.js": "var a=1;" * 2_000,
        "large.py": "x = 1\n" * 100_000,
        "binary.py": b"x = 1\0",
    }
    files |= {"utf16.py": "x = 1\n".encode("utf-16"), "latin.py": "name = 'é'\n".encode("latin-1")}
    found = look(written(tmp_path, files | {"mark.py": b"\xef\xbb\xbfdef marked(): pass\n"}))
    assert found.left_out == {"generated": 1, "binary": 2, "too large": 1}
    heads = {file.path: each.head[0].text for file in found.files if file.tags for each in file.tags.definitions}
    assert heads == {"latin.py": "name = '\ufffd'", "mark.py": "def marked(): pass"}


def test_limits_hold_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Names, files and bytes; a file that exceeds the parser's bounds counts twenty times its size."""
    written(tmp_path, {f"f{number:02}.py": f"def f{number}(): pass\n" for number in range(20)})
    assert len(paths(tmp_path, ScanLimits(entries=5))) == 5
    for limits in (ScanLimits(files=7), ScanLimits(total_bytes=7 * 15 - 5)):
        found = look(tmp_path, limits)
        assert sum(file.tags is not None for file in found.files) == 7
        assert (len(found.files), found.left_out) == (20, {"beyond the limit": 13})
    written(tmp_path, {f"e{number}.py": ("(" * 99 + "\n") * 200 for number in range(5)})
    assert look(tmp_path, ScanLimits(total_bytes=20 * 3 * 20_000)).left_out == {
        "beyond the limit": 22,
        "too intricate": 3,
    }


def test_costly_patterns_are_skipped(tmp_path: Path) -> None:
    """A pattern that a name could make slow, and an invalid one, are counted; the others of the file hold."""
    patterns = "*a*a*a*a*a*a*a*a*a*b\n\\\n[z-\n**/a/**/b/**/c/**/d\n*.log\n"
    found = walk(written(tmp_path, {".gitignore": patterns, "a" * 200: "", "x.log": "", "y.py": ""}), ScanLimits())
    assert found.paths == [".gitignore", "a" * 200, "y.py"]
    assert 2 <= found.left_out["lines of .gitignore"] <= 4


def test_files_are_found_by_foreign_paths(tmp_path: Path) -> None:
    """The longest common end decides; a bare name needs exactly one file."""
    found = look(written(tmp_path, {**SHOP, "other/__init__.py": ""}))
    for name in ("shop/till.py", "/elsewhere/of/shop/till.py", "C:\\work\\.\\shop\\till.py", "till.py"):
        assert found.find([name, "__init__.py"]) == {"shop/till.py"}, name
    assert found.find(["none.py", "", ".."]) == set()
