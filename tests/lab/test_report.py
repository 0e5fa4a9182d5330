"""The report: the picture of a comparison, and the page on which a policy leads to its sessions and calls."""

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.study import PAGE, pictures
from palaver.lab import PolicyRow, Score
from palaver.lab.report import PolicyMark, mark_of, picture
from tests.cli.commands import run
from tests.explorer.browser import browser
from tests.lab.sessions import asking, coding

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>&'\""


def drawn(*marks: PolicyMark) -> ET.Element:
    """Return a picture, read as XML."""
    return ET.fromstring(picture(dict(enumerate(marks)), title=HOSTILE, unit="dollars"))  # noqa: S314 - it is ours


def mark(name: str, bill: float, evidence: float, *, wide: float = 0.0, best: bool = False) -> PolicyMark:
    """Return a mark with intervals of the same width in both figures, or with none."""
    bills, shares = (
        Score(value=each, low=each - wide if wide else None, high=each + wide if wide else None)
        for each in (bill, evidence)
    )
    return PolicyMark(name, bills, shares, best)


def test_marks_are_where_their_figures_are() -> None:
    """The dearer a policy the further right, the more evidence the higher; a full mark is Pareto-optimal; the tip has figures and intervals."""
    svg = drawn(mark("cheap", 0.25, 0.5, best=True), mark("dear", 0.75, 0.5, wide=0.125), mark("good", 0.5, 0.9))
    links = svg.findall(f"{SVG}a")
    assert [link.get("data-policy") for link in links] == ["0", "1", "2"]
    circles = [link.find(f"{SVG}circle") for link in links]
    cheap, dear, good = (
        {name: circle.get(name, "") for name in ("cx", "cy", "fill")} for circle in circles if circle is not None
    )
    assert float(cheap["cx"]) < float(good["cx"]) < float(dear["cx"])
    assert float(good["cy"]) < float(cheap["cy"]) == float(dear["cy"])
    assert (cheap["fill"], dear["fill"]) == ("currentColor", "none")
    tips = [link.findtext(f"{SVG}title") for link in links]
    assert tips[0] == "cheap: bill 0.250, evidence 0.500"
    assert tips[1] == "dear: bill 0.750 (0.625 to 0.875), evidence 0.500 (0.375 to 0.625)"
    assert {text.text for text in svg.iter(f"{SVG}text")} >= {"cheap", "dear", "good", HOSTILE}


def test_names_cover_no_other_name() -> None:
    """Twelve policies at one place have their names one below the other, or at its sides."""
    svg = drawn(*(mark(f"policy {number}", 1.0, 0.5) for number in range(12)))
    places = [
        (text.get("x"), text.get("y")) for text in svg.iter(f"{SVG}text") if (text.text or "").startswith("policy")
    ]
    assert len(places) == len(set(places)) == 12


def test_intervals_are_those_of_differences() -> None:
    """With the default policy in the run, the interval of the difference is around its figure; alone, a policy has its own interval."""
    scores = {"bill": Score(value=2.0, low=1.0, high=9.0), "evidence": Score(value=0.5, low=0.1, high=0.9)}
    default = PolicyRow(
        policy="palaver", stand_in="fold", scores={"bill": Score(value=3.0), "evidence": Score(value=0.75)}
    )
    differences = {
        "bill": Score(value=-1.0, low=-1.5, high=-0.5),
        "evidence": Score(value=-0.25, low=-0.375, high=-0.125),
    }
    row = PolicyRow(policy="pi", stand_in="fold", scores=scores, differences=differences)
    against = mark_of("pi", row, default, best=False)
    assert against == PolicyMark(
        "pi", Score(value=2.0, low=1.5, high=2.5), Score(value=0.5, low=0.375, high=0.625), best=False
    )
    assert mark_of("pi", row, None, best=False) == PolicyMark("pi", scores["bill"], scores["evidence"], best=False)
    assert mark_of("pi", PolicyRow(policy="pi", stand_in="fold"), None, best=False) is None


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Return the page of a run over sessions of two tools, one of them with a hostile name."""
    coding(tmp_path / "one.jsonl", rounds=6)
    hostile = asking(tmp_path / f"{HOSTILE.replace('/', '-')}.json", {2: "use"})
    made = tmp_path / "page.html"
    words = ("--policies", "palaver,full,lllm", "--model", "claude-sonnet-4-5", "--budget", "4000", "--jobs", "1")
    ran = run("lab", tmp_path / "one.jsonl", hostile, *words, "--html", made)
    assert ran.code == 0, ran
    assert f"Wrote {made}, {made.stat().st_size:,} bytes." in ran.err
    assert made.stat().st_mode & 0o777 == 0o600
    return made


def test_the_page_has_figures_and_no_words(page: Path) -> None:
    """Every session is under every policy with its figures and the calls that lack most; nothing that was said is in the file."""
    text = page.read_text()
    assert "You must never touch the tests directory." not in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert {each["name"] for each in data["policies"]} == {"palaver", "full", "lllm"}
    assert [each["tool"] for each in data["sessions"]] == ["claude-code", "chat-completions"]
    for rows in data["replays"]:
        assert [row[0] for row in rows] == [0, 1]
        assert all(len(calls) == 3 and evidence <= references for _, _, evidence, references, calls in rows)
    full = next(number for number, each in enumerate(data["policies"]) if each["name"] == "full")
    assert all(row[2] == row[3] for row in data["replays"][full]), "it leaves nothing out"


def test_a_mark_leads_to_session_and_call(page: Path, tmp_path: Path) -> None:
    """In a browser: nothing is asked of any network, no script of a name runs; the command that a call leads to shows its view."""
    with browser(tmp_path / "profile") as tab:
        tab.open(page.as_uri())
        assert (tab.told, tab.asked) == ([], [page.as_uri()])
        assert tab.ask("document.querySelectorAll('figure svg').length") == 1 + 2 + 2
        tab.tab_to("figure[data-name='claude-code'] a")
        name = tab.ask("document.activeElement.querySelector('title').textContent.split(':')[0]")
        tab.press("Enter")
        assert tab.text("#chosen h2") == f"{name}, claude-code: 1 session"
        tab.tab_to("#chosen button")
        call = tab.ask("document.activeElement.textContent")
        tab.press("Enter")
        assert str(tmp_path / "one.jsonl") in tab.text("#place p")
        assert tab.text("#place pre:last-child") == f"palaver open -- {tmp_path / 'one.jsonl'}"
        words = shlex.split(tab.text("#place pre").replace("call.html", str(tmp_path / "call.html")))
        tab.ask(
            "document.querySelector('figure[data-name=\"chat-completions\"] a circle').dispatchEvent(new MouseEvent('click', { bubbles: true }))"
        )
        assert "chat-completions" in tab.text("#chosen")
        assert tab.told == []
    assert words[0] == "palaver"
    ran = run(*words[1:])
    assert (ran.code, ran.out) == (0, ""), ran
    assert (tmp_path / "call.html").read_text().startswith("<!DOCTYPE html>\n<html data-exported")
    at = words.index("--html")
    row = run(*words[1:at], "--json", *words[at + 2 :]).row()
    assert (row["policy"], row["call"]) == (name, int(call))


def test_the_study_shows_the_pictures_of_its_tables() -> None:
    """`python -m bench.study --pictures` writes what is there."""
    made = pictures(PAGE.read_text(encoding="utf-8"))
    assert len(made) == 2
    assert {name: (PAGE.parent / name).read_text(encoding="utf-8") for name in made} == made
