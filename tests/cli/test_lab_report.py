"""palaver lab-report: the file, the pictures, JSON, and what is said when there is no run."""

import json
from pathlib import Path

import pytest

from palaver.cli import main
from tests.cli.commands import run
from tests.lab.sessions import coding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the results of a small run."""
    path = coding(tmp_path / "one.jsonl", rounds=6)
    asked = ("--policies", "full,lllm", "--model", "claude-sonnet-4-5", "--budget", "5000", "--jobs", "1")
    assert main(["lab", str(path), *asked, "--resamples", "10", "--out", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


def test_the_report_and_its_pictures_are_written(folder: Path, tmp_path: Path) -> None:
    """Both are there afterwards, named on standard output; a report that was there is replaced."""
    (tmp_path / "r.html").write_text("old")
    done = run("lab-report", folder, tmp_path / "r.html", "--png", tmp_path / "png")
    assert done.code == 0
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert {path.suffix for path in (tmp_path / "png").iterdir()} == {".png"}
    assert f"Report: {tmp_path / 'r.html'}" in done.out


def test_as_json(folder: Path, tmp_path: Path) -> None:
    """One object with the path, the sessions and the pictures."""
    found = run("lab-report", folder, tmp_path / "r.html", "--sessions", "0", "--json").row()
    assert found["bytes"] == (tmp_path / "r.html").stat().st_size
    assert (found["sessions"], found["left_out"], found["pictures"]) == ([], {}, [])


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    """The command that makes one is in the message; nothing is written."""
    done = run("lab-report", tmp_path, tmp_path / "r.html")
    assert done.code == 3
    assert "holds no finished run of the lab" in done.err
    assert "palaver lab PATH" in done.err
    assert not (tmp_path / "r.html").exists()


def test_the_table_of_a_run_is_still_data(folder: Path) -> None:
    """The folder is only read."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert run("lab-report", folder, folder.parent / "r.html").code == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert json.loads((folder / "table.json").read_text())["sessions"] == 1


def test_the_lab_writes_its_report_itself(tmp_path: Path) -> None:
    """With --report the file and the pictures are written from results that nobody keeps, and told; --png alone is refused."""
    path = coding(tmp_path / "one.jsonl", rounds=4)
    asked = ("--policies", "full", "--model", "claude-sonnet-4-5", "--jobs", "1", "--resamples", "10")
    done = run("lab", path, *asked, "--report", tmp_path / "r.html", "--png", tmp_path / "png")
    assert done.code == 0
    assert f"Report: {tmp_path / 'r.html'}" in done.out
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert list((tmp_path / "png").iterdir())
    found = run("lab", path, *asked, "--report", tmp_path / "r.html", "--json").row()
    assert found["report"]["path"] == str(tmp_path / "r.html")
    assert run("lab", path, *asked, "--png", tmp_path / "png").code == 3
