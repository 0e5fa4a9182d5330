"""Replays of small sessions: what is billed, what is remembered, what goes wrong."""

import json
import os
import resource
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.lab import (
    CallRow,
    ReplayRow,
    Results,
    Settings,
    Table,
    broken_laws,
    command,
    entrant,
    run_lab,
    sheet,
    shown,
)
from palaver.lab.prices import LOOKUP_OUTPUT, SEARCH_TOKENS
from tests.lab.planted import DropsTheAsk, ForgetsReads, Remembers
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


def replays(folder: Path) -> dict[str, ReplayRow]:
    """Read the replays of one session, by policy."""
    results = Results(folder)
    return {row.policy: row for key in results.sessions() for row in results.replays(key)}


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
    replay = replays(tmp_path / "out")["full"]
    assert replay.optimum is not None
    assert replay.cost >= replay.optimum - 1e-9
    assert replay.cost == pytest.approx(sum(row.cost for row in found))
    assert replay.stable == replay.stable_of


def test_the_parts_of_a_view_add_up(tmp_path: Path) -> None:
    """At every call of every policy the parts are the whole, and reads and writes are the request."""
    run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("palaver", "swe-agent", "openhands"))
    for policy in ("palaver", "swe-agent", "openhands"):
        found = rows(tmp_path / "out", policy)
        assert any(row.mark for row in found)
        for row in found:
            assert sum(row.composition.values()) == row.tokens == row.read + row.written
            assert 0 <= row.in_view <= row.reached <= row.references
            assert row.broken == 0


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
    found = run(
        tmp_path / "out",
        coding(tmp_path / "one.jsonl", size=400),
        policies=("full", "palaver", "openhands", bad, silent),
    )
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


def test_an_unlawful_policy_is_named_and_not_replayed(tmp_path: Path) -> None:
    """What it breaks is told, it stands in the table as invalid, and the others are replayed."""
    bad = f"{PLANTED}:DropsTheAsk"
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl", rounds=4), policies=("full", bad))
    row = next(row for row in found.rows if row.policy == bad)
    assert (row.status, row.sessions) == ("invalid", 0)
    assert row.broken > 0
    told = [problem for problem in found.problems if problem.kind == "invalid policy"]
    assert told
    assert all(problem.policy == bad for problem in told)
    assert any("every view must hold" in problem.text for problem in told)
    assert next(row for row in found.rows if row.policy == "full").sessions == 1


def test_laws_are_held_to_before() -> None:
    """A policy that depends on what it was asked before is caught, and one that changes its words to and fro; a lawful one, even a bad one, is not; nor is the default."""
    assert any("every view must hold" in said for said in broken_laws(lambda: DropsTheAsk(MODEL), MODEL))
    assert any(
        "two views" in said or "composing twice" in said for said in broken_laws(lambda: Remembers(MODEL), MODEL)
    )
    assert broken_laws(lambda: ForgetsReads(MODEL), MODEL) == ()
    assert broken_laws(lambda: entrant("palaver", MODEL).manager, MODEL) == ()


def test_a_policy_that_fails_half_way_is_named(tmp_path: Path) -> None:
    """Its rows end with the call before, its status says so, and the problem names session and call."""
    bad = f"{PLANTED}:TiresOfIt"
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("full", bad))
    row = next(row for row in found.rows if row.policy == bad)
    assert (row.status, row.failed, row.sessions) == ("failed", 1, 0)
    (told,) = [problem for problem in found.problems if problem.kind == "policy failed"]
    assert "RuntimeError: too long for me" in told.text
    assert told.session
    assert told.call == len(rows(tmp_path / "out", bad)) + 1
    assert next(row for row in found.rows if row.policy == "full").status == "ok"


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
    view = shown(asked, last.session, last.call).step.view
    assert any("zzsummary" in str(block.content) for each in view.exchanges for block in each.blocks())


def test_what_no_lookup_finds_is_paid_for_too(tmp_path: Path) -> None:
    """What a search finds and what it does not cost the same, to the last digit; only the first counts as reached."""
    charged = {}
    for name, reached in (("wordc", 1), ("nothing", 0)):
        out = tmp_path / name
        run(out, asking(tmp_path / f"{name}.json", {2: name}), policies=("lllm",), budget=5_000)
        (row,) = (row for row in rows(out, "lllm") if row.references)
        assert (row.references, row.in_view, row.reached, row.recalls, row.refetched) == (1, 0, reached, 2, 1 - reached)
        price = sheet(MODEL)
        asked, brought = 2 * LOOKUP_OUTPUT, row.recall_tokens
        by_hand = 2 * row.tokens * price.cache_read + asked * price.output + (brought + asked) * price.cache_write
        assert row.recall_cost == pytest.approx(by_hand, abs=1e-8)
        assert brought > SEARCH_TOKENS
        charged[name] = brought
    assert charged["wordc"] == charged["nothing"]


def test_nothing_that_is_missing_is_free(tmp_path: Path) -> None:
    """Wherever a call refers to something that its view does not hold, it is charged: there, or since it was got at before."""
    run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("lllm", "swe-agent", "aider"), budget=3_000)
    missing = 0
    for policy in ("lllm", "swe-agent", "aider"):
        had = 0
        for row in rows(tmp_path / "out", policy):
            had = 0 if row.mark == "cut" else had
            if row.in_view < row.references:
                missing += 1
                assert row.recall_cost > 0
                assert row.recalls > 0 or had > 0
            had += row.recall_tokens
    assert missing > 10


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
    found = run(
        tmp_path / "out",
        coding(tmp_path / "one.jsonl"),
        policies=("openhands",),
        stand_ins=("fold", "empty", "oracle"),
        budget=3_000,
    )
    recall = {row.stand_in: row.scores["frr"].value or 0.0 for row in found.rows}
    assert recall["empty"] < recall["oracle"]
    charged = {row.stand_in: row.scores["summaries"].value for row in found.rows}
    assert charged["empty"] == charged["fold"] == 0
    assert (charged["oracle"] or 0) > 0
    assert any("fold, empty, oracle" in said for said in found.run.assumptions)
    best = {row.stand_in for row in found.rows if row.best}
    assert best, "one of those that can be had is on the front"
    assert recall["oracle"] > max(recall["fold"], recall["empty"])
    assert "oracle" not in best, "though none has as much in view: nobody can have it"


def test_runs_give_the_same_and_are_taken_up(tmp_path: Path) -> None:
    """Two runs over one file give the same rows; a run that lost a session's file makes only that one again."""
    paths = [coding(tmp_path / f"{name}.jsonl", rounds=5 + len(name)) for name in ("a", "bb")]
    one = run(tmp_path / "one", *paths)
    two = run(tmp_path / "two", *paths, jobs=2)
    assert _figures(one) == _figures(two)
    for policy in ("full", "palaver"):
        here, there = rows(tmp_path / "one", policy), rows(tmp_path / "two", policy)
        assert [(row.session, row.call, row.tokens, row.digest) for row in here] == [
            (row.session, row.call, row.tokens, row.digest) for row in there
        ]
    results = Results(tmp_path / "one")
    kept, lost = list(results.sessions())
    stamp = (tmp_path / "one" / "sessions" / f"{kept}.jsonl").stat().st_mtime_ns
    (tmp_path / "one" / "sessions" / f"{lost}.jsonl").unlink()
    for path in (tmp_path / "one" / "files").iterdir():
        path.unlink()
    again = run_lab(settings(*paths), tmp_path / "one", resume=True)
    assert _figures(again) == _figures(one)
    assert (tmp_path / "one" / "sessions" / f"{kept}.jsonl").stat().st_mtime_ns == stamp
    with pytest.raises(InvalidInput, match="holds results already"):
        run_lab(settings(*paths), tmp_path / "one")
    with pytest.raises(InvalidInput, match="other settings"):
        run_lab(settings(*paths, policies=("full",)), tmp_path / "one", resume=True)


def _figures(table: Table) -> object:
    return [
        (row.policy, row.calls, row.cuts, {name: score for name, score in row.scores.items() if name != "planning"})
        for row in table.rows
    ]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """An unknown format, a missing file and an empty one are problems; the session beside them is replayed."""
    (tmp_path / "in").mkdir()
    coding(tmp_path / "in" / "good.jsonl", rounds=3)
    (tmp_path / "in" / "notes.txt").write_text("nothing of any format\n")
    (tmp_path / "in" / "empty.jsonl").write_bytes(b"")
    found = run(tmp_path / "out", tmp_path / "in", tmp_path / "gone.jsonl", policies=("full",))
    unreadable = {Path(problem.source).name for problem in found.problems if problem.kind == "unreadable"}
    assert unreadable == {"notes.txt", "empty.jsonl", "gone.jsonl"}
    assert found.sessions == 1


def test_any_call_can_be_shown_again(tmp_path: Path) -> None:
    """The view made again has the digest of the row; the command for it names file, policy, session and call."""
    path = coding(tmp_path / "one.jsonl")
    found = run(tmp_path / "out", path, policies=("openhands",))
    row = next(row for row in reversed(rows(tmp_path / "out", "openhands")) if row.left_out)
    again = shown(settings(path, policies=("openhands",)), row.session[:8], row.call)
    assert again.row.digest == row.digest
    assert again.step.view.omissions
    assert command(found.run, row, str(path)).endswith(f"--window 16000 --show {row.session}:{row.call}")
    with pytest.raises(NotFound):
        shown(settings(path), row.session, 10_000)
    with pytest.raises(NotFound):
        shown(settings(path), "ffffffffffff", 1)


def test_entrants_are_made_or_refused_with_a_reason(tmp_path: Path) -> None:
    """Names, configurations and classes in files; what is none of them is refused in words."""
    assert entrant("swe-agent(n=3,polling=2)", MODEL).manager.__dict__["n"] == 3
    assert entrant(f"{PLANTED}:TiresOfIt", MODEL, window=9_000).own
    assert entrant("palaver", MODEL, budget=5_000).budget.limit == 5_000
    with pytest.raises(NotFound):
        entrant("polaver", MODEL)
    (tmp_path / "broken.py").write_text("raise RuntimeError('no')\n")
    for asked, said in (
        (f"{PLANTED}:Nobody", "has no class"),
        (f"{PLANTED}:NoPolicy", "no context manager"),
        (f"{tmp_path}/gone.py:X", "no file"),
        (f"{tmp_path}/broken.py:X", "RuntimeError: no"),
        ("swe-agent(n)", "not key=value"),
        ("swe-agent(n=3", "no closing bracket"),
        ("null", "is no policy"),
    ):
        with pytest.raises(InvalidInput, match=said):
            entrant(asked, MODEL)
    with pytest.raises(InvalidInput, match="is not a stand-in"):
        run(tmp_path / "o", policies=("full",), stand_ins=("guess",))
    with pytest.raises(InvalidInput, match="named twice"):
        run(tmp_path / "o", policies=("full", "full"))


@pytest.mark.parametrize("said", ["", "[]", '{"a": 1}'])
def test_a_folder_with_something_else_is_refused(tmp_path: Path, said: str) -> None:
    """What is called as a run is called, and is none, is told as the folder's fault; it is not written over."""
    (tmp_path / "run.json").write_text(said)
    with pytest.raises(InvalidInput, match=r"run\.json is damaged"):
        run_lab(settings(coding(tmp_path / "one.jsonl", rounds=2)), tmp_path, resume=True)
    assert (tmp_path / "run.json").read_text() == said


def test_results_of_two_codes_are_not_mixed(tmp_path: Path) -> None:
    """A run is not taken up where palaver's code, its version or a user's policy has changed since: it is told which; nothing is written."""
    path, mine = coding(tmp_path / "one.jsonl", rounds=3), tmp_path / "mine.py"
    mine.write_text(
        "from palaver.context.presets.own import FullContext\nclass Mine(FullContext):\n    name = 'mine'\n"
    )
    policies = ("full", f"{mine}:Mine")
    first = run(tmp_path / "out", path, policies=policies)
    assert set(first.run.own) == {f"{mine}:Mine"}
    assert first.run.code
    assert _figures(run_lab(settings(path, policies=policies), tmp_path / "out", resume=True)) == _figures(first)
    mine.write_text(mine.read_text() + "    keeps = 3\n")
    assert entrant(f"{mine}:Mine", MODEL).manager.__class__.__dict__["keeps"] == 3  # what is there now, not what was
    with pytest.raises(InvalidInput, match="other settings: the source of a policy differ"):
        run_lab(settings(path, policies=policies), tmp_path / "out", resume=True)
    place = tmp_path / "out" / "run.json"
    for field, said in (
        ("code", "the code of palaver"),
        ("version", "the version of palaver"),
        ("schema", "the meaning"),
    ):
        place.write_text(json.dumps({**first.run.to_dict(), field: 1, "key": "other", "own": {}, "policies": ["full"]}))
        before = place.read_bytes()
        with pytest.raises(InvalidInput, match=said):
            run_lab(settings(path, policies=("full",)), tmp_path / "out", resume=True)
        assert place.read_bytes() == before


def test_a_session_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """Under another name it is the same session: it is replayed once, and said."""
    path = coding(tmp_path / "one.jsonl", rounds=3)
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    found = run(tmp_path / "out", tmp_path / "one.jsonl", tmp_path / "copy.jsonl", policies=("full",))
    assert found.sessions == len(found.keys) == 1
    (told,) = [problem for problem in found.problems if problem.kind == "twice"]
    assert {Path(told.source).name, Path(told.text.split(",")[0].split()[-1]).name} == {"one.jsonl", "copy.jsonl"}


def test_results_are_private(tmp_path: Path) -> None:
    """Only the owner can read what was replayed, whatever the umask."""
    before = os.umask(0)
    try:
        run(tmp_path / "out", coding(tmp_path / "one.jsonl", rounds=3), policies=("full",))
    finally:
        os.umask(before)
    found = list((tmp_path / "out").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in found if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out", *found) if path.is_dir()} == {0o700}


def test_every_human_message_is_counted(tmp_path: Path) -> None:
    """Law 10: with a record all are kept; a policy that only says how much it dropped keeps fewer."""
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("palaver", "fold", "default"), budget=3_000)
    kept = {row.policy: row.scores["humans"].value for row in found.rows}
    assert (kept["palaver"], kept["fold"]) == (1.0, 1.0)
    assert any(row.left_out for row in rows(tmp_path / "out", "fold"))


def test_a_session_that_is_not_whole_is_named(tmp_path: Path) -> None:
    """A file that was cut off is replayed as far as it goes, and what is missing is said with its place."""
    path = coding(tmp_path / "torn.jsonl", rounds=5)
    path.write_bytes(path.read_bytes()[:-60])
    found = run(tmp_path / "out", path, policies=("full",))
    (told,) = [problem for problem in found.problems if problem.kind == "damaged"]
    assert told.text.startswith("It is not whole: line ")
    assert (Path(told.source).name, bool(told.session), found.sessions) == ("torn.jsonl", True, 1)


def test_a_policy_for_which_the_window_is_too_small_is_named(tmp_path: Path) -> None:
    """Where a system's own division leaves no room, it is said, and the others are replayed."""
    small = "claude-code(reserve=20000)"
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl", rounds=3), policies=("full", small))
    row = next(row for row in found.rows if row.policy == small)
    assert (row.status, row.sessions) == ("invalid", 0)
    assert any("cannot hold what must be sent" in problem.text for problem in found.problems)


def test_a_policy_that_ends_the_program_is_named(tmp_path: Path) -> None:
    """It ends neither the run nor the others: it is one that failed; a file that does so when it is loaded is refused."""
    bad = f"{PLANTED}:Leaves"
    found = run(tmp_path / "out", coding(tmp_path / "one.jsonl"), policies=("full", bad))
    assert {row.policy: row.status for row in found.rows} == {"full": "ok", bad: "failed"}
    assert any("SystemExit" in problem.text for problem in found.problems if problem.policy == bad)
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(InvalidInput, match="SystemExit"):
        entrant(f"{tmp_path / 'leaves.py'}:Mine", MODEL)
    with pytest.raises(InvalidInput, match="names no class"):
        entrant(str(PLANTED), MODEL)


def test_results_that_cannot_be_written_name_the_file(tmp_path: Path) -> None:
    """A file in the place of the folder, and a disk on which nothing more can be written: what is there is whole, and the run can be taken up."""
    path = coding(tmp_path / "one.jsonl", rounds=3)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="is a file"):
        run(tmp_path / "file", path, policies=("full",))
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


def test_what_was_brought_back_is_written_anew_by_a_cold_cache(tmp_path: Path) -> None:
    """After an hour a request costs what it brought back in the price of writing, not of reading."""
    path = coding(tmp_path / "one.jsonl", rounds=32, pause=16)
    run(tmp_path / "out", path, policies=("openhands",), budget=4_000)
    brought = 0
    seen = False
    prices = sheet(MODEL)
    for row in rows(tmp_path / "out", "openhands"):
        brought = 0 if row.mark == "cut" else brought
        if brought and not row.recalls and row.call > 1:
            price = prices.cache_read if row.warm else prices.cache_write
            assert row.recall_cost == pytest.approx(brought * price, abs=1e-8)
            seen = seen or not row.warm
        brought += row.recall_tokens
    assert seen


def test_a_policy_that_is_in_order_now_is_replayed_when_a_run_is_taken_up(tmp_path: Path) -> None:
    """One that broke a law when the run began, and does not any more though its file is the same, has figures; nothing is taken for done that is not."""
    path, mine = coding(tmp_path / "one.jsonl"), tmp_path / "mine.py"
    mine.write_text(
        "from pathlib import Path\n"
        "from palaver.context import ContextManager\n\n"
        "class Moody(ContextManager):\n"
        "    def __call__(self, dialog):\n"
        "        if not Path(__file__).with_name('mood').exists():\n"
        "            raise RuntimeError('not today')\n"
        "        return dialog\n"
    )
    policies = ("full", f"{mine}:Moody")
    assert {row.status for row in run(tmp_path / "out", path, policies=policies).rows} == {"ok", "invalid"}
    (tmp_path / "mood").touch()
    again = run_lab(settings(path, policies=policies), tmp_path / "out", resume=True)
    assert [(row.status, row.sessions) for row in again.rows] == [("ok", 1), ("ok", 1)]
