"""The report: one file that needs nothing beside it, with the exact view behind every call it shows."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import InvalidInput
from palaver.lab import Results, Settings, run_lab, shown
from palaver.lab.report import Report, specs, write_pictures, write_report
from palaver.lab.report.chosen import Worst, chosen, worst
from palaver.lab.report.views import _units
from palaver.lab.results import PARTS, ReplayRow
from tests.lab.sessions import coding

POLICIES = ("palaver", "lllm", "swe-agent")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a small run over two sessions, one of them with hostile words and a hostile name."""
    place = tmp_path_factory.mktemp("lab")
    coding(place / "one.jsonl", rounds=14)
    text = coding(place / "plain.jsonl", rounds=8).read_text("utf-8")
    (place / "plain.jsonl").unlink()
    hostile = json.dumps(HOSTILE)[1:-1]
    (place / f"{HOSTILE.replace('/', '|')}.jsonl").write_text(
        text.replace("nothing", hostile).replace("Make", hostile), "utf-8"
    )
    asked = Settings(
        paths=tuple(sorted(place.glob("*.jsonl"))),
        policies=POLICIES,
        model="claude-sonnet-4-5",
        budget=5_000,
        resamples=50,
    )
    run_lab(asked, place / "out")
    return place / "out"


@pytest.fixture(scope="module")
def written(folder: Path) -> tuple[Report, str]:
    """Give the report, and its text."""
    made = write_report(folder, folder / "report.html")
    return made, made.path.read_text("utf-8")


def data_of(text: str) -> dict[str, Any]:
    """Give what the page draws."""
    packed = re.search(r'<script id="data" type="application/gzip">([^<]*)</script>', text)
    assert packed is not None
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return found


def test_the_page_needs_nothing_beside_it(written: tuple[Report, str]) -> None:
    """No element of it names a file or an address, and its policy lets the browser load none."""
    made, text = written
    markup = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(?:link|iframe|img|object|embed|base)\b|\b(?:src|href)\s*=", markup)
    assert not re.search(r"<script[^>]*\bsrc\s*=", text)
    assert "default-src 'none'" in text
    assert made.size == len(text.encode()) < 3_000_000
    assert text.count("<script") == 3


def test_nothing_that_a_session_says_is_markup(written: tuple[Report, str]) -> None:
    """Names and words with tags in them stand escaped or packed: the page has its own scripts and no other."""
    _, text = written
    assert "alert(1)" not in re.sub(r"&lt;.*?&gt;", "", text)
    said = json.dumps(data_of(text), ensure_ascii=False)
    assert "alert(1)" in said


def test_every_call_that_is_shown_has_its_exact_view(folder: Path, written: tuple[Report, str]) -> None:
    """The blocks behind a call, put together as the page does it, are those of the view made again, and its digest is that of the results."""
    made, text = written
    data = data_of(text)
    assert set(data["chosen"]) == set(made.sessions) == set(Results(folder).sessions())
    checked = 0
    for key, found in data["chosen"].items():
        for policy, calls in found["calls"].items():
            numbers: list[int] = []
            for at, values in enumerate(calls):
                prefix, more = found["views"]["views"][policy][at]
                numbers = [*numbers[:prefix], *more]
                assert found["views"]["digests"][policy][at] == values[-1]
                if at % 6 == 5:
                    run = Results(folder).run
                    assert run is not None
                    asked = Settings(
                        paths=tuple(map(Path, run.sources)), policies=(policy,), model=run.model, budget=run.budget
                    )
                    again = shown(asked, key, values[0])
                    assert again.row.digest == values[-1]
                    assert [tuple(found["views"]["units"][number]) for number in numbers] == list(
                        _units(again.step.view)
                    )
                    checked += 1
    assert checked >= 6


def test_the_same_run_gives_the_same_file(folder: Path, written: tuple[Report, str]) -> None:
    """The report is a function of the run: written again, it has the same bytes."""
    again = write_report(folder, folder / "again.html")
    assert sha256(again.path.read_bytes()).digest() == sha256(written[0].path.read_bytes()).digest()


def test_the_table_has_every_policy_and_every_problem_is_told(written: tuple[Report, str]) -> None:
    """The tables are there without JavaScript."""
    _, text = written
    for policy in POLICIES:
        assert f"<td>{policy}</td>" in text or f"<td>* {policy}</td>" in text
    assert "What a reader must know" in text
    assert "The agent's steps are the recorded ones" in text.replace("&#x27;", "'")


def test_pictures_are_png_and_differ(folder: Path) -> None:
    """The front, and composition and cache of the worst session, drawn."""
    paths = write_pictures(folder, folder / "png")
    assert len(paths) == 3
    drawn = [path.read_bytes() for path in paths]
    assert all(picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) > 5_000 for picture in drawn)
    assert len(set(drawn)) == 3


def test_charts_stack_all_parts_of_a_view() -> None:
    """Each part has a colour of its own, and the names of the data are those of the results."""
    assert list(specs.COLOURS) == list(PARTS)
    assert len(set(specs.COLOURS.values())) == len(PARTS)
    layers = specs.composition()["spec"]["layer"]
    assert layers[0]["transform"][0]["fold"] == list(PARTS)


def test_a_file_that_is_gone_leaves_its_figures(folder: Path, tmp_path: Path) -> None:
    """Where a recorded file is not there any more the report is written all the same, and says which views it lacks."""
    shutil.copytree(folder, tmp_path / "out")
    for path in (tmp_path / "out" / "sessions").glob("*.jsonl"):
        first, _, rest = path.read_text("utf-8").partition("\n")
        row = {**json.loads(first), "source": str(tmp_path / "gone.jsonl")}
        path.write_text(f"{json.dumps(row)}\n{rest}", "utf-8")
    made = write_report(tmp_path / "out", tmp_path / "r.html")
    assert set(made.left_out) == set(made.sessions)
    data = data_of(made.path.read_text("utf-8"))
    assert all(one["views"] is None and one["calls"] for one in data["chosen"].values())


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """The error names the folder and the command that makes a run; nothing is written."""
    with pytest.raises(InvalidInput, match="holds no finished run"):
        write_report(tmp_path, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def row(session: str, policy: str, **fields: Any) -> ReplayRow:  # noqa: ANN401 - fields of a row
    """Give a replay."""
    return ReplayRow(session=session, policy=policy, stand_in="fold", calls=1, **fields)


def test_the_worst_come_first() -> None:
    """What failed, then what broke laws, then what lost most, then what cost most over the cheapest."""
    rows = [
        row("a", "p", references=10, in_view=9, cost=1.0),
        row("b", "p", references=10, in_view=2, cost=1.0),
        row("c", "p", status="failed"),
        row("d", "p", broken=2),
        row("e", "p", references=10, in_view=9, cost=3.0),
        row("e", "q", references=10, in_view=10, cost=1.0),
    ]
    found = worst(rows, "fold")
    assert [one.session for one in found] == ["c", "d", "b", "e", "a", "e"]
    assert isinstance(found[3], Worst)
    assert found[3].extra == 2.0
    assert chosen(found, ("q", "p"), 2) == ("e", "c")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium on this machine")
def test_a_browser_draws_it(written: tuple[Report, str], tmp_path: Path) -> None:
    """In Chromium, without a network: the page comes to its end, with three charts and the table of the worst sessions drawn."""
    command = [
        str(shutil.which("chromium")), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
        f"--user-data-dir={tmp_path}", "--dump-dom", written[0].path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=100, check=True)
    drawn = done.stdout.decode()
    assert 'data-ready="true"' in drawn
    for chart in ("front", "composition", "cache"):
        assert re.search(rf'<div id="{chart}"[^>]*>.*?<svg', drawn, re.DOTALL)
    assert drawn.count("<tr tabindex") == 6
