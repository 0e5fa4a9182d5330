"""palaver lab: the comparison, JSON, exit codes, and a call shown again."""

import json
from pathlib import Path

from tests.cli.commands import Ran, child, run
from tests.lab.sessions import asking, coding

PLANTED = Path(__file__).parents[1] / "lab" / "planted.py"
COMMON = ("--model", "claude-sonnet-4-5", "--window", "16000", "--jobs", "1", "--resamples", "20")


def lab(*words: object) -> Ran:
    """Run the command."""
    return run("lab", *words, *COMMON)


def test_the_report_compares_costs_in_words(tmp_path: Path) -> None:
    """R302: each policy has a line, each column a definition, and each policy besides the default a verdict."""
    path = coding(tmp_path / "one.jsonl", rounds=12)
    ran = lab(path, "--policies", "full,palaver,swe-agent(n=3,polling=2)")
    assert ran.code == 0, ran
    assert ran.out.startswith("1 session, claude-sonnet-4-5, window 16,000; bills in dollars a session.\n")
    for title in ("bill", "tokens", "in view", "evidence"):
        assert f"  {title}: " in ran.out
    verdicts = [line.partition(":")[0] for line in ran.out.splitlines() if " palaver, " in line]
    assert verdicts == ["full", "swe-agent(n=3,polling=2)"]
    row = lab(path, "--policies", "full", "--json").row()
    assert (row["run"]["window"], {"bill", "evidence"} <= row["rows"][0]["scores"].keys()) == (16_000, True)


def test_evidence_that_nothing_measures_is_not_claimed(tmp_path: Path) -> None:
    """Where no call refers to anything, the figures are absent, no verdict speaks of what was needed, and the sessions are counted."""
    path = tmp_path / "text.json"
    said = [{"role": role, "content": "cat a_file.py " * 900} for _ in range(8) for role in ("user", "assistant")]
    path.write_text(json.dumps(said))
    ran = lab(path, "--policies", "palaver,full")
    assert ran.code == 0, ran
    assert [line.split()[3:5] for line in ran.out.splitlines()[2:4]] == [["-", "-"]] * 2
    (verdict,) = [line for line in ran.out.splitlines() if line.startswith("full: ")]
    assert "palaver; evidence was not measured; " in verdict
    assert "no evidence: 1 of 1 session" in ran.err


def test_what_went_wrong_is_listed_and_the_exit_code(tmp_path: Path) -> None:
    """An unreadable file, an invalid policy and one that fails half way end with 1, each named; the table is there."""
    path = coding(tmp_path / "one.jsonl")
    (tmp_path / "notes.txt").write_text("nothing of any format\n")
    ran = lab(path, tmp_path / "notes.txt", "--policies", f"full,{PLANTED}:DropsTheAsk,{PLANTED}:TiresOfIt")
    assert ran.code == 1, ran
    assert f"{PLANTED}:DropsTheAsk (invalid)" in ran.out
    assert f"{PLANTED}:TiresOfIt (failed on 1 of 1)" in ran.out
    assert "unreadable: notes.txt" in ran.err
    assert "Known formats" not in ran.err, "a list of which only the title is there"
    assert "invalid policy" in ran.err
    assert "too long for me" in ran.err


def test_wrong_arguments_are_one_line(tmp_path: Path) -> None:
    """Each is told with the exit code of its kind; a file without sessions makes no table."""
    path = coding(tmp_path / "one.jsonl", rounds=2)
    (tmp_path / "notes.txt").write_text("nothing of any format\n")
    for words, code, said in (
        ((path, "--policies", "polaver"), 4, "polaver"),
        ((path, "--resume"), 3, "--out"),
        ((path, "--weight", "lines"), 3, "session, file, tokens"),
        ((path, "--show", "abc"), 2, "SESSION:CALL"),
        ((path, "--html", tmp_path / "no" / "folder.html"), 3, f"{tmp_path / 'no'} is not a folder"),
        ((tmp_path / "notes.txt", "--policies", "full"), 3, "No session with a model call"),
    ):
        ran = lab(*words)
        assert (ran.code, ran.out) == (code, ""), (words, ran)
        assert said in ran.err, words


def test_results_are_kept_resumed_and_shown(tmp_path: Path) -> None:
    """With --out the rows are kept, readable by their owner only; a second run needs --resume; from a row the view is shown again."""
    path, out = coding(tmp_path / "one.jsonl", rounds=12), tmp_path / "out"
    words = (path, "--policies", "openhands")
    assert [lab(*words, "--out", out, *more).code for more in ((), (), ("--resume",))] == [0, 3, 0]
    assert {file.stat().st_mode & 0o777 for file in out.rglob("*") if file.is_file()} == {0o600}
    (session,) = (out / "sessions").glob("*.jsonl")
    calls = [row for line in session.read_text().splitlines() if (row := json.loads(line))["record"] == "call"]
    place = f"{calls[-1]['session']}:{calls[-1]['call']}"
    shown = lab(*words, "--show", place)
    assert "You must never touch the tests directory." in shown.out
    assert calls[-1]["digest"] in shown.out
    assert lab(*words, "--show", place, "--json").row()["digest"] == calls[-1]["digest"]


def test_groups_and_weights_are_reported(tmp_path: Path) -> None:
    """Sessions of two tools and lengths have a table of each; a kept run is weighted again without replaying it, and says how."""
    paths = coding(tmp_path / "one.jsonl", rounds=6), asking(tmp_path / "two.json", {2: "use"})
    words = (*paths, "--policies", "full", "--out", tmp_path / "out")
    ran = lab(*words)
    assert ran.code == 0, ran
    header = ran.out.splitlines().index("Bill and evidence by tool, with the number of sessions:")
    titles, line = ran.out.splitlines()[header + 1 : header + 3]
    assert titles.split("  ") == ["policy", "chat-completions (1)", "claude-code (1)"]
    assert "Bill and evidence by length in tokens, with the number of sessions:" in ran.out
    again = lab(*words, "--resume", "--weight", "tokens")
    assert "Weights: a session counts as much as its largest whole view has tokens." in again.out
    assert line in again.out.splitlines(), "in a group of one nothing is weighted"
    bills = [found.out.splitlines()[2].split()[1] for found in (ran, again)]
    assert float(bills[0]) < float(bills[1]), "the longer session is the dearer one"
    group = lab(*words, "--resume", "--json").row()["groups"][0]
    assert (group["by"], group["name"], group["policy"], group["sessions"]) == ("tool", "chat-completions", "full", 1)
    alone = lab(paths[0], "--policies", "full")
    assert "Bill and evidence by" not in alone.out


def test_several_processes_end_without_a_warning(tmp_path: Path) -> None:
    """The command ends its process hard; nothing of the pool is left for Python to complain of."""
    files = [coding(tmp_path / f"{name}.jsonl", rounds=2) for name in ("one", "two")]
    ran = child("lab", *files, "--policies", "full", *COMMON, "--jobs", "2")
    assert (ran.code, ran.err) == (0, "")
