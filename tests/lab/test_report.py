"""The report: one file that needs nothing beside it, with the exact view behind every call it shows."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidInput
from palaver.lab import Problem, Results, Settings, entrant, run_lab, sheet, shown
from palaver.lab.loading import loaded
from palaver.lab.report import Report, specs, write_pictures, write_report
from palaver.lab.report.chosen import Worst, chosen, told, worst
from palaver.lab.report.drawing import packed
from palaver.lab.report.labels import LINE, Point, placed
from palaver.lab.report.views import _units, views_of
from palaver.lab.results import PARTS, ReplayRow
from palaver.lab.scores import table
from palaver.lab.sessions import Session
from palaver.tokens import counter
from tests.lab.browser import CHROMIUM, Page, browser
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
        assert re.search(rf'<th scope="row"[^>]*>(?:\* )?(?:# )?<span>{policy}</span>', text)
    assert not re.search(r"<th(?! scope=)[ >]", re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL))
    assert "Less palaver, session by session" in text
    assert "What a reader must know" in text
    assert "The agent's steps are the recorded ones" in text.replace("&#x27;", "'")


def test_pictures_are_png_and_differ(folder: Path) -> None:
    """Both fronts, and composition and cache of the worst session, drawn."""
    paths = write_pictures(folder, folder / "png")
    assert [path.stem.rpartition("-")[2] for path in paths] == ["front", "evidence", "composition", "cache"]
    drawn = [path.read_bytes() for path in paths]
    assert all(picture.startswith(b"\x89PNG\r\n\x1a\n") and 5_000 < len(picture) < 400_000 for picture in drawn)
    assert len(set(drawn)) == 4


def test_a_picture_is_packed_without_changing_a_pixel() -> None:
    """Deflated in haste and in three chunks it comes out smaller, as one chunk, with the same bytes inside and what stood around them."""
    pixels = b"".join(b"\x00" + bytes([row % 7]) * 400 for row in range(200))
    hasty = zlib.compress(pixels, 1)
    chunks = [
        (b"IHDR", b"h" * 13),
        *((b"IDAT", hasty[at : at + 900]) for at in range(0, len(hasty), 900)),
        (b"IEND", b""),
    ]
    made = packed(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks))
    small = zlib.compress(pixels, 8)
    assert made == b"\x89PNG\r\n\x1a\n" + _chunk(*chunks[0]) + _chunk(b"IDAT", small) + _chunk(b"IEND", b"")
    assert packed(made) == made


def _chunk(kind: bytes, said: bytes) -> bytes:
    return len(said).to_bytes(4, "big") + kind + said + zlib.crc32(kind + said).to_bytes(4, "big")


@given(st.lists(st.tuples(st.integers(0, 780), st.integers(0, 360), st.integers(1, 14)), min_size=1, max_size=20))
@settings(max_examples=60)
def test_no_name_covers_another_or_a_point(found: list[tuple[int, int, int]]) -> None:
    """Wherever twenty points lie, also all in one place, each name stands in the chart, on no other name and on no point."""
    points = [Point(x, y, "m" * letters) for x, y, letters in found]
    labels = placed(points, [], 780, 360)
    for number, (label, point) in enumerate(zip(labels, points, strict=True)):
        wide = 6.7 * len(point.name)
        assert 0 <= label.x <= 780 - wide
        for other, named in zip(labels[:number], points[:number], strict=True):
            apart = other.x >= label.x + wide or label.x >= other.x + 6.7 * len(named.name)
            assert apart or abs(other.y - label.y) >= LINE - 1.01
        assert not any(label.x < one.x < label.x + wide and abs(one.y - label.y) < LINE / 2 for one in points)


def test_labels_stand_where_the_chart_has_room() -> None:
    """In the units of the chart: beside its point, and of three that coincide one is led to by a line; the axes hold all points."""
    points: list[dict[str, Any]] = [
        {"name": name, "label": name, "best": best, "bill": bill, "frr": frr}
        for name, best, bill, frr in (
            ("a", True, 1.0, 0.5),
            ("b", True, 2.0, 0.9),
            ("c", False, 2.0, 0.7),
            ("d", False, 2.0, 0.7),
            ("e", False, 2.0, 0.7),
        )
    ]
    found = {one["name"]: one for one in specs.labelled(points)}
    assert [found[name]["lead_x"] is None for name in "abcde"] == [True, True, True, True, False]
    assert found["c"]["label_y"] == pytest.approx(0.7)
    scale = specs.front("USD", points)["layer"][0]["encoding"]["x"]["scale"]
    assert scale["domain"][0] < min(one["bill"] for one in points)
    assert scale["domain"][1] > max(one["bill"] for one in points)
    assert len(specs.labelled(points[:1])) == 1
    assert specs.front("USD", [])["layer"]


def test_charts_stack_all_parts_of_a_view() -> None:
    """Each part has a colour of its own, and the names of the data are those of the results."""
    assert list(specs.COLOURS) == list(PARTS)
    assert len(set(specs.COLOURS.values())) == len(PARTS)
    layers = specs.composition(["a"])["spec"]["layer"]
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


def test_a_report_of_results_from_before_lacks_what_they_lack(folder: Path, tmp_path: Path) -> None:
    """Of a run from before evidence was measured there is the one chart, and no figure of the other measure: none, and not 0."""
    shutil.copytree(folder, tmp_path / "old")
    for path in (tmp_path / "old" / "sessions").glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join(json.dumps(_before(each)) + "\n" for each in rows), "utf-8")
    place = tmp_path / "old" / "table.json"
    found = json.loads(place.read_text("utf-8"))
    found["rows"] = [{**_before(each), "scores": _before(each["scores"])} for each in found["rows"]]
    place.write_text(json.dumps(found), "utf-8")
    text = write_report(tmp_path / "old", tmp_path / "r.html").path.read_text("utf-8")
    data = data_of(text)
    assert [len(data["fronts"][name]["points"]) for name in ("front", "evidence")] == [len(POLICIES), 0]
    at = data["columns"].index("evidence")
    assert {values[at] for one in data["chosen"].values() for calls in one["calls"].values() for values in calls} == {
        None
    }
    assert "Less palaver" not in text


def _before(values: dict[str, Any]) -> dict[str, Any]:
    """Give values without what was added since."""
    added = ("evidence", "best_evidence", "differences", "beats", "limit")
    return {name: value for name, value in values.items() if not name.startswith(added)}


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """The error names the folder and the command that makes a run; nothing is written."""
    with pytest.raises(InvalidInput, match="holds no finished run"):
        write_report(tmp_path, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def row(session: str, policy: str, **fields: Any) -> ReplayRow:  # noqa: ANN401 - fields of a row
    """Give a replay."""
    return ReplayRow(session=session, policy=policy, stand_in="fold", **{"calls": 1, **fields})


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


def test_a_session_is_told_once_with_all_that_failed_on_it() -> None:
    """Under the policy that did worst on it; the others that failed or broke laws are named beside it."""
    rows = [
        row("a", "p", references=10, in_view=2),
        row("a", "q", status="stopped", error="ended"),
        row("a", "r", broken=1),
        row("b", "p", references=10, in_view=5),
        row("b", "q", references=10, in_view=10),
    ]
    found = told(worst(rows, "fold"), 5)
    assert [(one.worst.session, one.worst.policy, one.failed) for one in found] == [("a", "q", ("r",)), ("b", "p", ())]
    assert len(told(worst(rows, "fold"), 1)) == 1


def test_a_report_of_many_sessions_stays_small(folder: Path, tmp_path: Path) -> None:
    """Of 2,000 sessions, one of them vast, it has a bounded part, says what it leaves out, and names every policy that failed."""
    run = Results(folder).run
    assert run is not None
    replays, out = [], tmp_path / "many"
    (out / "sessions").mkdir(parents=True)
    keys = [f"{number:012x}" for number in range(2_000)]
    for number, key in enumerate(keys):
        calls = 100_000 if number == 7 else 2
        lines: list[dict[str, Any]] = [
            {
                "record": "session",
                "session": key,
                "run": run.key,
                "source": f"{number}.jsonl",
                "name": f"session {number}",
                "calls": calls,
            }
        ]
        for policy in POLICIES[:2]:
            failed = number in {7, 1_990} and policy == "lllm"
            replay = row(
                key, policy, references=100, in_view=100 - number % 90, cost=1.0, status="failed" if failed else "ok"
            )
            replays.append(replay)
            lines.append({"record": "replay", **replay.to_dict()})
        (out / "sessions" / f"{key}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    problems = [Problem(kind="no usage", text="None.", session=key) for key in keys]
    asked = replace(run, policies=POLICIES[:2])
    Results(out).finish(table(asked, replays, keys=keys, problems=problems))
    made = write_report(out, tmp_path / "many.html")
    assert made.size < 1_700_000
    assert len(made.sessions) == 5
    assert "100,000 calls" in made.shortened[keys[7]]
    text = made.path.read_text("utf-8")
    data = data_of(text)
    assert data["all"] == 2_000
    told_keys = [one["session"] for one in data["worst"]]
    assert len(set(told_keys)) == len(told_keys) == 24
    assert {keys[7], keys[1_990]} == set(told_keys[:2])
    assert "1,980 more" in text
    assert "lllm (failed on 2 of 2,000)" in re.sub("</?span>", "", text)
    assert data["gaps"].keys() == {*made.shortened, *made.left_out}


def test_views_that_are_too_large_are_left_out_and_named(folder: Path) -> None:
    """Up to a bound they are kept, call for call; the policies of which some are missing are named."""
    source = folder.parent / "one.jsonl"
    (loaded_one,) = (one for one in loaded(source) if not isinstance(one, Problem))
    session = Session.of(loaded_one, "key", "run", counter("claude-sonnet-4-5"))
    entrants = [entrant(name, "claude-sonnet-4-5", budget=5_000) for name in POLICIES]
    whole = views_of(session, entrants, "fold", sheet("claude-sonnet-4-5"), 10_000_000)
    assert (whole.cut, list(whole.views)) == ((), list(POLICIES))
    some = views_of(session, entrants, "fold", sheet("claude-sonnet-4-5"), whole.size - 1)
    assert some.size < whole.size
    assert some.cut
    assert set(some.cut) <= set(POLICIES)
    for policy, views in some.views.items():
        assert views == whole.views[policy][: len(views)]
        assert (len(views) == len(whole.views[policy])) == (policy not in some.cut)
    none = views_of(session, entrants, "fold", sheet("claude-sonnet-4-5"), 0)
    assert (none.cut, none.size) == (POLICIES, 0)


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
    assert len(re.findall(r'<button type="button" class="link">[^<]* · [0-9a-f]{12}</button>', drawn)) == 2


@pytest.fixture(scope="module")
def page(written: tuple[Report, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Give the report, open in a browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        opened.open(written[0].path.as_uri(), 1_280, 900)
        yield opened


_AT = "document.activeElement"
_CONTROLS = "[...document.querySelectorAll('button, select, input, summary, [tabindex=\"0\"]')]"


def test_every_control_is_reached_by_the_keyboard(page: Page) -> None:
    """Going through the page with Tab comes to everything that can be worked, each with an outline; of radio buttons to the one that is chosen."""
    page.ask(f"{_CONTROLS}.filter((one) => one.checkVisibility()).forEach((one, at) => (one.dataset.at = at))")
    everything = set(
        page.ask(
            f"{_CONTROLS}.filter((one) => one.dataset.at && !(one.type === 'radio' && !one.checked)).map((one) => one.dataset.at)"
        )
    )
    assert len(everything) > 20
    page.ask("document.body.focus()")
    reached = set()
    for _ in range(2 * len(everything)):
        page.press("Tab")
        at = page.ask(f"{_AT}.dataset.at")
        if at is not None:
            reached.add(at)
            outline = page.ask(f"getComputedStyle({_AT}).outlineStyle + ' ' + getComputedStyle({_AT}).outlineWidth")
            assert outline == "solid 3px", page.ask(f"{_AT}.outerHTML")
    assert reached == everything
    names = page.ask(
        f"{_CONTROLS}.map((one) => (one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.textContent).trim())"
    )
    assert all(names)


def test_a_call_is_opened_and_left_by_the_keyboard(page: Page) -> None:
    """A policy's name opens the session on which it did worst; what was opened has the focus, and gives it back to where it was."""
    page.ask("document.querySelector('tr[data-policy=\"lllm\"] button').focus()")
    page.press("Enter")
    page.until(f"{_AT}.id === 'call-title'")
    assert page.ask(f"{_AT}.textContent").endswith("under lllm")
    assert page.ask("document.getElementById('call-facts').textContent.includes('of them as content')")
    page.press("Tab")
    assert page.ask(f"{_AT}.id") == "back"
    page.press("Space")
    assert page.ask(f"{_AT}.textContent") == "lllm"


def test_a_call_is_named_by_the_keyboard(page: Page) -> None:
    """By policy and number; by what comes next: a call, a cut, something lost; where there is none that is said."""
    page.ask(
        "document.getElementById('policy').value = 'lllm'; document.getElementById('number').select(); document.getElementById('number').focus()"
    )
    page.press("7", "Enter")
    assert re.match(r"Call 7 of .* under lllm$", page.ask("document.getElementById('call-title').textContent"))
    for button, says in (("previous", "Call 6 "), ("next", "Call 7 "), ("cut", "Call "), ("lost", "Call ")):
        page.ask(f"document.getElementById('{button}').focus()")
        page.press("Enter")
        assert page.ask("document.getElementById('call-title').textContent").startswith(says)
        if button == "cut":
            assert page.ask("document.getElementById('call-facts').textContent.includes('(cut)')")
    for number, button, says in (("1", "previous", "no call before"), ("999", "cut", "no cut after")):
        page.ask(f"document.getElementById('number').value = {number}; document.getElementById('{button}').focus()")
        page.press("Enter")
        assert says in page.ask("document.getElementById('said').textContent")


def test_policies_are_chosen_by_the_keyboard(page: Page) -> None:
    """One that is taken out is in no table and no chart until all are wanted again; what counts as kept is chosen with the arrows."""
    lines = "[...document.querySelectorAll('tr[data-policy]')].filter((one) => one.checkVisibility()).map((one) => one.dataset.policy)"
    drawn, rows = (f"document.getElementById('{chart}').textContent" for chart in ("front", "composition"))
    assert set(page.ask(lines)) == set(POLICIES)
    assert "lllm" in page.ask(rows)
    page.ask(
        "[...document.querySelectorAll('#policies label')].find((one) => one.textContent === 'lllm').querySelector('input').focus()"
    )
    page.press("Space")
    page.until(f"!({drawn}).includes('lllm')")
    assert set(page.ask(lines)) == set(POLICIES) - {"lllm"}
    page.until(f"!({rows}).includes('lllm')")
    assert "palaver" in page.ask(drawn)
    page.ask("document.querySelector('input[name=counted]:checked').focus()")
    page.press("ArrowRight")
    page.until(f"({drawn}).includes('evidence')")
    page.ask("document.getElementById('all').focus()")
    page.press("Enter")
    page.until(f"({drawn}).includes('lllm')")
    assert set(page.ask(lines)) == set(POLICIES)
