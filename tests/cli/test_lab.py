"""palaver lab: the table, JSON, exit codes, and a call shown again."""

import json
from pathlib import Path

import pytest

from palaver.cli import main
from palaver.context import POLICIES
from tests.lab.sessions import coding

PLANTED = Path(__file__).parents[1] / "lab" / "planted.py"
COMMON = ("--model", "claude-sonnet-4-5", "--window", "16000", "--jobs", "1", "--resamples", "20")


def lab(*words: object) -> int:
    """Run the command."""
    return main(["lab", *map(str, words), *COMMON])


def test_the_table_names_every_policy_and_every_assumption(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each policy has a line, what is on the front is marked, and what was assumed is said."""
    path = coding(tmp_path / "one.jsonl", rounds=12)
    assert lab(path, "--policies", "full,palaver,swe-agent(n=3,polling=2)") == 0
    said = capsys.readouterr().out
    assert "1 session, claude-sonnet-4-5, window 16,000" in said
    for name in ("full", "palaver", "swe-agent(n=3,polling=2)"):
        assert name in said
    assert "*# palaver" in said or "*# swe-agent" in said
    assert "evidence: as content" in said
    assert "less palaver" in said
    assert "Better in: of 100 resamplings" in said
    assert "300 seconds" in said
    assert "infeasible" in said


def test_the_table_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object with the run, a row for each policy and stand-in, and all problems; nothing else on standard output."""
    path = coding(tmp_path / "one.jsonl", rounds=4, dated=False)
    assert lab(path, "--policies", "full,lllm", "--stand-in", "fold,empty", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {(row["policy"], row["stand_in"]) for row in found["rows"]} == {
        (policy, stand_in) for policy in ("full", "lllm") for stand_in in ("fold", "empty")
    }
    assert found["run"]["window"] == 16_000
    assert {"no timestamps", "no usage"} <= {problem["kind"] for problem in found["problems"]}
    for row in found["rows"]:
        assert {"evidence", "evidence_recall", "evidence_bill"} <= row["scores"].keys()
        assert {"best", "best_evidence", "differences", "beats", "beats_evidence"} <= row.keys()


def test_what_went_wrong_is_told_and_is_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unreadable file, an invalid policy and one that fails half way end with 1, each named; the table is there."""
    path = coding(tmp_path / "one.jsonl")
    (tmp_path / "notes.txt").write_text("nothing of any format\n")
    bad = f"full,{PLANTED}:DropsTheAsk,{PLANTED}:TiresOfIt"
    assert lab(path, tmp_path / "notes.txt", "--policies", bad) == 1
    said = capsys.readouterr()
    assert f"{PLANTED}:DropsTheAsk (invalid)" in said.out
    assert f"{PLANTED}:TiresOfIt (failed on 1 of 1)" in said.out
    assert "unreadable: notes.txt" in said.err
    assert "invalid policy" in said.err
    assert "too long for me" in said.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--policies", "polaver"), 4, "polaver"),
        (("--policies", "nowhere.py:Mine"), 3, "no file"),
        (("--stand-in", "guess"), 3, "stands for no summary"),
        (("--resume",), 3, "--out"),
        (("--show", "abc"), 2, "SESSION:CALL"),
        (("--policies", "full", "--show", "abc:1"), 4, "abc"),
        (("--show", "abc:1", "--out", "o"), 3, "--show makes no comparison"),
    ],
)
def test_wrong_words_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    """Each is told in a line, with the exit code of its kind."""
    assert lab(coding(tmp_path / "one.jsonl", rounds=2), *words) == code
    assert said in capsys.readouterr().err


def test_files_without_sessions_are_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing can be replayed it ends with 3, and says what was wrong with each file, without a table of nothing."""
    (tmp_path / "notes.txt").write_text("nothing of any format\n")
    assert lab(tmp_path / "notes.txt", "--policies", "full") == 3
    out, said = capsys.readouterr()
    assert "notes.txt" in said
    assert "No session with a model call" in said
    assert out == ""


def test_results_are_kept_taken_up_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --out the rows are kept; a second run needs --resume; from a row the view is shown again, with the same digest."""
    path, out = coding(tmp_path / "one.jsonl", rounds=12), tmp_path / "out"
    assert lab(path, "--policies", "openhands", "--out", out) == 0
    assert lab(path, "--policies", "openhands", "--out", out) == 3
    assert lab(path, "--policies", "openhands", "--out", out, "--resume") == 0
    (session,) = (out / "sessions").glob("*.jsonl")
    calls = [row for line in session.read_text().splitlines() if (row := json.loads(line))["record"] == "call"]
    last = calls[-1]
    capsys.readouterr()
    assert lab(path, "--policies", "openhands", "--show", f"{last['session']}:{last['call']}") == 0
    shown = capsys.readouterr()
    assert "You must never touch the tests directory." in shown.out
    assert last["digest"] in shown.err
    assert lab(path, "--policies", "openhands", "--show", f"{last['session']}:{last['call']}", "--json") == 0
    assert json.loads(capsys.readouterr().out)["digest"] == last["digest"]


def test_an_unknown_price_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bills are then in multiples of an input token, and the table says so."""
    path = coding(tmp_path / "one.jsonl", rounds=3)
    assert main(["lab", str(path), "--policies", "full", "--model", "my-own-model", "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert "bills a session in input tokens" in said.out
    assert "no price" in said.err


def test_all_stands_for_all_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`all` may stand beside others, and is not more than the names that are not named besides."""
    assert lab(coding(tmp_path / "one.jsonl", rounds=1), "--policies", "all,full", "--json") == 0
    policies = json.loads(capsys.readouterr().out)["run"]["policies"]
    assert sorted(policies) == sorted(POLICIES)
    assert policies[-1] == "full"
