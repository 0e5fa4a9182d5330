"""Replays of small sessions: what is billed, what is remembered, what goes wrong."""

import json
import resource
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.lab import (
    CallRow,
    Results,
    Settings,
    Table,
    entrant,
    run_lab,
    sheet,
    shown,
)
from palaver.lab.conformance import broken_laws
from palaver.lab.loading import Loaded, loaded
from palaver.lab.prices import LOOKUP_OUTPUT, SEARCH_TOKENS
from palaver.lab.sessions import LabSession, measured
from palaver.messages import words_of
from palaver.tokens import counter
from tests.lab.planted import ForgetsReads, Remembers
from tests.lab.sessions import asking, coding

PLANTED = Path(__file__).with_name("planted.py")
MODEL = "claude-sonnet-4-5"


def settings(*paths: Path, policies: tuple[str, ...] = ("full", "palaver"), **words: object) -> Settings:
    """Ask for a small window."""
    return Settings(paths=paths, policies=policies, model=MODEL, window=16_000, resamples=20, **words)  # type: ignore[arg-type]


def run(folder: Path, *paths: Path, policies: tuple[str, ...] = ("full", "palaver"), **words: object) -> Table:
    """Run the lab."""
    return run_lab(settings(*paths, policies=policies, **words), folder)


def rows(folder: Path, policy: str) -> list[CallRow]:
    """Read all calls of a policy."""
    results = Results(folder)
    return [row for key in results.sessions() for row in results.calls(key, policy)]


def test_what_is_left_out_of_nothing_costs_what_grows(tmp_path: Path) -> None:
    """Where everything is shown, each call reads what the one before sent and writes what is new; all references are in view."""
    run(tmp_path / "out", coding(tmp_path / "one.jsonl", rounds=6), policies=("full",))
    found = rows(tmp_path / "out", "full")
    assert len(found) == 12
    assert [row.mark for row in found] == [""] * 12
    for before, row in pairwise(found):
        assert row.stable == before.tokens
        assert row.read == (row.stable if row.stable >= 1_024 else 0)
        assert row.written == row.tokens - row.read
    assert all(row.references == row.in_view for row in found)
    assert sum(row.references for row in found) > 0
    results = Results(tmp_path / "out")
    (replay,) = (row for key in results.sessions() for row in results.replays(key))
    assert replay.optimum is not None
    assert replay.cost >= replay.optimum - 1e-9
    assert replay.cost == pytest.approx(sum(row.cost for row in found))
    assert replay.stable == replay.stable_of


def test_a_cache_is_cold_after_an_hour(tmp_path: Path) -> None:
    """The call after the pause reads nothing from the cache; without recorded times every one does, and that is said."""
    run(tmp_path / "a", coding(tmp_path / "one.jsonl", rounds=8, pause=4), policies=("full",))
    cold = [row for row in rows(tmp_path / "a", "full") if not row.warm]
    assert [row.call for row in cold] == [1, 9]
    assert cold[1].read == 0
    assert cold[1].gap == 3_600
    found = run(tmp_path / "b", coding(tmp_path / "two.jsonl", rounds=8, pause=4, dated=False), policies=("full",))
    assert [row.warm for row in rows(tmp_path / "b", "full")].count(False) == 1
    assert {"no timestamps", "no usage"} <= {problem.kind for problem in found.problems}


def test_policies_that_drop_what_was_read_are_caught(tmp_path: Path) -> None:
    """The planted bad policies break no law. They show less of what comes next than any other, and cost more for it, by far where nothing says where it is."""
    silent, bad = f"{PLANTED}:ForgetsReadsSilently", f"{PLANTED}:ForgetsReads"
    path = coding(tmp_path / "one.jsonl", size=400)
    found = run(tmp_path / "out", path, policies=("full", "palaver", "openhands", bad, silent))
    by_name = {row.policy: row for row in found.rows}
    recall, bills, charged = (
        {name: row.scores[score].value or 0.0 for name, row in by_name.items()} for score in ("frr", "bill", "recalls")
    )
    others = by_name.keys() - {bad, silent}
    for name in (bad, silent):
        assert by_name[name].status == "ok"
        assert not by_name[name].best
        assert recall[name] < min(recall[other] for other in others) - 0.2
        assert bills[name] > max(bills[other] for other in others)
        assert charged[name] > 0.4 * bills[name]  # more than it saves, though a line says where everything is
    assert bills[silent] > 1.3 * max(bills[other] for other in others)
    assert charged[silent] > 1.5 * charged[bad]
    assert by_name["openhands"].best or by_name["palaver"].best


def test_laws_are_held_to_before() -> None:
    """A policy that depends on what it was asked before is caught; a lawful one, even a bad one, is not."""
    remembers = broken_laws(lambda: Remembers(MODEL), MODEL)
    assert any("two views" in said or "composing a composed view" in said for said in remembers)
    assert broken_laws(lambda: ForgetsReads(MODEL), MODEL) == ()


def test_a_policy_that_fails_or_breaks_a_law_is_named(tmp_path: Path) -> None:
    """By raising, by ending the program, or by dropping what every view must show: its status says so, and the others are replayed."""
    tired, leaves, unlawful = (f"{PLANTED}:{name}" for name in ("TiresOfIt", "Leaves", "DropsTheAsk"))
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("full", tired, leaves, unlawful))
    status = {row.policy: (row.status, row.sessions) for row in found.rows}
    assert status == {"full": ("ok", 1), tired: ("failed", 0), leaves: ("failed", 0), unlawful: ("invalid", 0)}
    (told,) = [each for each in found.problems if (each.kind, each.policy) == ("policy failed", tired)]
    assert "RuntimeError: too long for me" in told.text
    assert told.call == len(rows(tmp_path / "out", tired)) + 1
    assert any("SystemExit" in problem.text for problem in found.problems if problem.policy == leaves)
    assert any("every view must show" in problem.text for problem in found.problems if problem.policy == unlawful)


def test_a_recorded_summary_stands_for_the_record(tmp_path: Path) -> None:
    """From where one was recorded the newest is shown instead of the record, and charged; before it the record stands, for nothing."""
    path = coding(tmp_path / "one.jsonl", summary="So far value_7 was repaired, zzsummary.")
    found = run(tmp_path / "out", path, policies=("openhands",), stand_ins=("fold", "recorded"))
    assert {row.status for row in found.rows} == {"ok"}
    charged = {row.stand_in: row.scores["summaries"].value or 0.0 for row in found.rows}
    assert charged["fold"] == 0 < charged["recorded"]
    told = [row for row in rows(tmp_path / "out", "openhands") if row.stand_in == "recorded" and row.mark == "cut"]
    last = told[-1]
    asked = settings(path, policies=("openhands",), stand_ins=("recorded",))
    with shown(asked, last.session, last.call) as call:
        view = call.step.view
    assert any("zzsummary" in words_of(block.content) for each in view.exchanges for block in each.blocks())


def test_what_no_lookup_finds_is_paid_for_too(tmp_path: Path) -> None:
    """What a search finds and what it does not cost the same, to the last digit; only the first counts as reached."""
    charged = {}
    for name, reached in (("wordc", 1), ("nothing", 0)):
        out = tmp_path / name
        run(out, asking(tmp_path / f"{name}.json", {2: name}), policies=("lllm",), budget=5_000)
        (row,) = (row for row in rows(out, "lllm") if row.references)
        assert (row.references, row.in_view, row.reached, row.recalls) == (1, 0, reached, 2)
        price = sheet(MODEL)
        asked, brought = 2 * LOOKUP_OUTPUT, row.recall_tokens
        by_hand = 2 * row.tokens * price.cache_read + asked * price.output + (brought + asked) * price.cache_write
        assert row.recall_cost == pytest.approx(by_hand, abs=1e-8)
        assert brought > SEARCH_TOKENS
        charged[name] = brought
    assert charged["wordc"] == charged["nothing"]


def test_figures_do_not_depend_on_who_else_is_compared(tmp_path: Path) -> None:
    """A policy has the same rows alone, before and behind others, lookups and charges included; but for the time that it took."""
    path = coding(tmp_path / "one.jsonl")
    found = []
    for number, policies in enumerate((("aider",), ("lllm", "aider"), ("aider", "lllm"))):
        run(tmp_path / str(number), path, policies=policies, budget=4_000)
        found.append([replace(row, planning=0.0, dialog="") for row in rows(tmp_path / str(number), "aider")])
    assert found[0] == found[1] == found[2]
    assert sum(row.recalls for row in found[0]) > 3


def test_stand_ins_bracket_what_a_summary_is_worth(tmp_path: Path) -> None:
    """With the oracle no fewer references are in view than with nothing, and each is declared."""
    path, stand_ins = coding(tmp_path / "one.jsonl"), ("fold", "empty", "oracle")
    found = run(tmp_path / "out", path, policies=("openhands",), stand_ins=stand_ins, budget=3_000)
    recall = {row.stand_in: row.scores["frr"].value or 0.0 for row in found.rows}
    assert recall["oracle"] > max(recall["fold"], recall["empty"])
    charged = {row.stand_in: row.scores["summaries"].value for row in found.rows}
    assert charged["empty"] == charged["fold"] == 0
    assert (charged["oracle"] or 0) > 0
    best = {row.stand_in for row in found.rows if row.best}
    assert best - {"oracle"} == best != set(), "nobody can have the oracle"


def test_runs_give_the_same_and_are_taken_up(tmp_path: Path) -> None:
    """Two runs over one file give the same rows; a run that lost a session's file makes only that one again."""
    paths = [coding(tmp_path / f"{name}.jsonl", rounds=5 + len(name)) for name in ("a", "bb")]
    one = run(tmp_path / "one", *paths)
    two = run(tmp_path / "two", *paths, jobs=2)
    assert _figures(one) == _figures(two)
    here, there = rows(tmp_path / "one", "palaver"), rows(tmp_path / "two", "palaver")
    assert [row.digest for row in here] == [row.digest for row in there]
    results = Results(tmp_path / "one")
    kept, lost = list(results.sessions())
    stamp = (tmp_path / "one" / "sessions" / f"{kept}.jsonl").stat().st_mtime_ns
    (tmp_path / "one" / "sessions" / f"{lost}.jsonl").unlink()
    for path in (tmp_path / "one" / "files").iterdir():
        path.unlink()
    again = run_lab(settings(*paths), tmp_path / "one", resume=True)
    assert _figures(again) == _figures(one)
    assert (tmp_path / "one" / "sessions" / f"{kept}.jsonl").stat().st_mtime_ns == stamp
    with pytest.raises(InvalidInput, match="already has results"):
        run_lab(settings(*paths), tmp_path / "one")
    with pytest.raises(InvalidInput, match="other settings"):
        run_lab(settings(*paths, policies=("full",)), tmp_path / "one", resume=True)


def _figures(table: Table) -> object:
    return [
        (row.policy, row.calls, row.cuts, {name: score for name, score in row.scores.items() if name != "planning"})
        for row in table.rows
    ]


def test_entrants_are_made_or_refused_with_a_reason(tmp_path: Path) -> None:
    """Names, configurations and classes in files; what is none of them is refused in words."""
    assert entrant("swe-agent(n=3,polling=2)", MODEL).manager.__dict__["n"] == 3
    assert entrant(f"{PLANTED}:TiresOfIt", MODEL, window=9_000).own
    assert entrant("palaver", MODEL, budget=5_000).budget.limit == 5_000
    with pytest.raises(NotFound):
        entrant("polaver", MODEL)
    (tmp_path / "broken.py").write_text("raise SystemExit(0)\n")
    for asked, said in (
        (f"{PLANTED}:Nobody", "has no class"),
        (f"{tmp_path}/gone.py:X", "no file"),
        (f"{tmp_path}/broken.py:X", "SystemExit"),
        ("swe-agent(n)", "not key=value"),
    ):
        with pytest.raises(InvalidInput, match=said):
            entrant(asked, MODEL)
    with pytest.raises(InvalidInput, match="is not a stand-in"):
        run(tmp_path / "o", policies=("full",), stand_ins=("guess",))
    with pytest.raises(InvalidInput, match="given twice"):
        run(tmp_path / "o", policies=("full", "full"))


def test_results_of_two_codes_are_not_mixed(tmp_path: Path) -> None:
    """A run is not taken up where palaver's code, its version or a user's policy has changed since: it is told which."""
    path, mine = coding(tmp_path / "one.jsonl", rounds=3), tmp_path / "mine.py"
    mine.write_text(
        "from palaver.context.presets.own import FullContext\nclass Mine(FullContext):\n    name = 'mine'\n"
    )
    asked = settings(path, policies=("full", f"{mine}:Mine"))
    first = run_lab(asked, tmp_path / "out")
    assert _figures(run_lab(asked, tmp_path / "out", resume=True)) == _figures(first)
    mine.write_text(mine.read_text() + "    keeps = 3\n")
    with pytest.raises(InvalidInput, match="other settings: the source of a policy differ"):
        run_lab(asked, tmp_path / "out", resume=True)
    for field, other, said in (
        ("code", "1", "the code of palaver"),
        ("version", "1", "the version of palaver"),
        ("schema", 1, "the meaning"),
    ):
        stored = {**first.run.to_dict(), field: other, "key": "other", "own": {}, "policies": ["full"]}
        (tmp_path / "out" / "run.json").write_text(json.dumps(stored))
        with pytest.raises(InvalidInput, match=said):
            run_lab(settings(path, policies=("full",)), tmp_path / "out", resume=True)


def test_odd_sources_are_named(tmp_path: Path) -> None:
    """A session under two names counts once; one that was cut off is replayed as far as it goes."""
    path = coding(tmp_path / "one.jsonl", rounds=3)
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    torn = coding(tmp_path / "torn.jsonl", rounds=5)
    torn.write_bytes(torn.read_bytes()[:-60])
    found = run(tmp_path / "out", path, tmp_path / "copy.jsonl", torn, policies=("full",))
    assert found.sessions == len(found.keys) == 2
    told = {problem.kind: problem for problem in found.problems}
    assert "one.jsonl" in told["twice"].source + told["twice"].text
    assert told["damaged"].text.startswith("It is incomplete: line ")


def test_results_that_cannot_be_written_name_the_file(tmp_path: Path) -> None:
    """On a disk on which nothing more can be written what is there is whole, and the run can be taken up."""
    path = coding(tmp_path / "one.jsonl", rounds=3)
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"sessions.*jsonl"):
            run(out, path, policies=("full",))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(out.rglob("*.part"))
    assert run_lab(settings(path, policies=("full",)), out, resume=True).rows[0].status == "ok"


def test_provider_view_starts_at_recorded_compaction(tmp_path: Path) -> None:
    """Before the block every call has the whole view; from the first call after it, only what follows the block, with one record before it."""
    path = coding(tmp_path / "one.jsonl", rounds=8)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    answers = [line["message"]["content"] for line in lines if line["type"] == "assistant"]
    answers[8].insert(0, {"type": "compaction", "content": "Four numbers are repaired.", "signature": "c2ln"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(tmp_path / "out", path, policies=("full", "provider"))
    whole, since = rows(tmp_path / "out", "full"), rows(tmp_path / "out", "provider")
    assert [row.tokens for row in since[:9]] == [row.tokens for row in whole[:9]]
    saved = [other.tokens - row.tokens for row, other in zip(since[9:], whole[9:], strict=True)]
    assert saved[0] > 3_000
    assert set(saved) == {saved[0]}
    assert [row.mark for row in since] == ["cut" if number == 9 else "" for number in range(16)]
    assert all(row.stable == before.tokens for before, row in pairwise(since[9:]))


def test_provider_views_are_made_from_the_log(tmp_path: Path) -> None:
    """Where nothing was compacted by a provider and the view is cut, each next one starts from the log, as an agent's does, and cuts are still counted."""
    (found,) = (each for each in loaded(coding(tmp_path / "one.jsonl")) if isinstance(each, Loaded))
    session = LabSession.of(found, "one", "run", counter(MODEL))
    (under,) = measured(session, entrant("provider", MODEL, window=16_000), "fold", sheet(MODEL))
    steps = list(under.replay.steps())
    assert all(step.given is step.log for step in steps)
    cuts = [step for step in steps if step.cut]
    assert 1 < len(cuts) < len(steps) / 4
