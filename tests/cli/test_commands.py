"""Every command: what it prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from palaver.cli.commands import COMMANDS, loaded
from palaver.cli.outcome import EXIT_HELP, Exit
from palaver.messages import ToolMessage, ToolResultContent
from palaver.session import Session
from palaver.store import open_store
from palaver.transcripts import EXPORTS
from palaver.wire import PROFILES, validate
from tests.cli.commands import CODE, PATH, Palaver, child, rollout, run, talk
from tests.formats.transcripts import Claude, text

IMPORT_KEYS = {"file", "format", "session", "name", "outcome", "dialogs", "entries", "records", "messages", "lost"}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_of_every_command(command: str) -> None:
    """Help goes to standard output, names every option with a sentence, and ends with 0."""
    ran = run(*command.split(), "--help")

    assert (ran.code, ran.err) == (0, "")
    if command:
        options = [one for one in loaded(command).params if one.name != "help"]
        assert all(one.help for one in options), "an option without a word about it"
        assert all(name in ran.out for one in options for name in one.opts if name.startswith("-"))


def test_help_lists_every_exit_code() -> None:
    """The help of the whole says what each exit code means."""
    assert {int(code) for code in Exit} == {int(part.split()[0]) for part in EXIT_HELP.partition(": ")[2].split("; ")}
    assert "130 interrupted" in " ".join(run("--help").out.split())


def test_no_words_give_help_and_an_error() -> None:
    """Without a command there is help, and the exit code says that nothing was done."""
    ran = run()
    assert ran.code == 2
    assert "Commands:" in ran.out + ran.err


def test_version() -> None:
    """`--version` prints one line."""
    assert run("--version").out.startswith("palaver 0.")


@pytest.mark.parametrize(
    ("words", "code", "close"),
    [
        ("veiw x", 2, "view"),
        ("view x --wrie y", 2, "--wire"),
        ("sessions --lmit 3", 2, "--limit"),
        ("sessions --limit many", 2, "integer"),
        ("search", 2, "QUERY"),
        ("import", 2, "PATH"),
        ("export talk", 2, "--to"),
        ("view talk --at -1", 2, "--at"),
        ("view talk --budget 0", 2, "--budget"),
        ("doctor --repair", 2, "--repair"),
        ("export talk --to bundle --view", 2, "bundle"),
        ("search ***", 2, "letter"),
        ("view tlak", 4, "talk"),
        ("view talk --policy defualt", 4, "default"),
        ("view talk --wire anthropc", 4, "anthropic"),
        ("export talk --to markdwon", 4, "markdown"),
        ("view talk --at 999", 4, "newest entry"),
        ("doctor tlak", 4, "talk"),
        ("show talk --dialog 123", 3, "6 digits"),
        ("recall what", 3, "handle"),
        ("recall 0123456789ab:3", 4, "0123456789ab"),
    ],
)
def test_wrong_words_are_told_apart_with_what_is_close(stocked: Palaver, words: str, code: int, close: str) -> None:
    """What is wrong is said on one screen of standard error, with what was probably meant; standard output stays empty."""
    ran = stocked(*words.split())

    assert (ran.code, ran.out) == (code, "")
    assert close in " ".join(ran.err.split())
    assert len(ran.err.splitlines()) <= 24


def test_an_error_is_json_where_json_was_asked_for(stocked: Palaver) -> None:
    """With --json an error is an object on standard output: its kind, its words, its hint."""
    ran = stocked("view", "tlak", "--json")

    assert ran.code == 4
    assert ran.row()["error"]["kind"] == "UnknownSession"
    assert "talk" in ran.row()["error"]["message"]
    assert ran.err == ""


# --- import ------------------------------------------------------------------------------------------------------------------


def test_import_says_what_became_of_each_conversation(palaver: Palaver) -> None:
    """One object a session with the keys of the contract; a second import adds nothing."""
    row = palaver.imported(talk())
    again = palaver.imported(talk())

    assert set(row) == IMPORT_KEYS
    assert (row["format"], row["outcome"], row["records"], row["dialogs"]) == ("claude-code", "new", 11, 2)
    assert all({"place", "reason"} <= set(loss) for loss in row["lost"])
    assert (again["outcome"], again["entries"], again["session"]) == ("unchanged", 0, row["session"])


def test_import_of_several_files_goes_on_after_a_bad_one(palaver: Palaver) -> None:
    """A file that is no transcript stops none of the others; the exit code says that one failed."""
    files = [palaver.file("talk.jsonl", talk()), palaver.file("note.txt", "hello"), palaver.file("c.jsonl", rollout())]
    ran = palaver("import", *files, "--json")

    assert ran.code == 1
    assert [row.get("format") or row["error"]["kind"] for row in ran.rows()] == [
        "claude-code",
        "UnsupportedTranscript",
        "codex",
    ]
    words = palaver("import", *files)
    assert (words.code, len(words.out.splitlines()) >= 2) == (1, True)
    assert "note.txt" in words.err


def test_import_keeps_the_subject_and_may_decline_the_source(palaver: Palaver) -> None:
    """`--subject` is listed; `--no-source` keeps no file."""
    palaver("import", palaver.file("talk.jsonl", talk()), "--subject", "mara", "--no-source")
    (row,) = palaver("sessions", "--subject", "mara", "--json").rows()

    store = open_store(str(palaver.store))
    assert [source.raw for source in store.sources(row["session"])] == [None]
    store.close()


def test_losses_are_listed_on_request(palaver: Palaver) -> None:
    """The first few losses are shown with a word about the others; `--losses` lists them all."""
    bad = b"".join(b"{broken %d\n" % n for n in range(9))
    path = palaver.file("talk.jsonl", talk() + bad)
    short, whole = palaver("import", path), palaver("import", path, "--losses")

    assert "--losses lists them all" in short.out
    assert whole.out.count("is no JSON") == 9
    assert "line 12:" in whole.out


# --- sessions, tree, show, recall, search, stats -------------------------------------------------------------------------------


def test_sessions_are_listed_by_when_they_were_active(stocked: Palaver) -> None:
    """Newest activity first, as recorded: not by when they were imported."""
    stocked("import", stocked.file("c.jsonl", rollout()))
    rows = stocked("sessions", "--json").rows()

    assert [row["name"] for row in rows] == ["talk", "c"]
    assert all(row["updated_at"] < 1.8e9 for row in rows), "the recording's time, not today's"
    assert {"session", "name", "dialogs", "messages", "workdir", "created_at", "updated_at"} <= set(rows[0])
    assert len(stocked("sessions", "--limit", "1", "--json").rows()) == 1
    assert stocked("sessions", "--trash").out.startswith("No sessions")


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_the_table_of_sessions_keeps_its_numbers_on_any_terminal(
    stocked: Palaver, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and folders are cut where the terminal is narrow; ids and counts never are."""
    monkeypatch.setenv("COLUMNS", columns)
    ran = stocked("sessions")

    head, line = ran.out.splitlines()
    assert {"session", "dialogs", "messages"} <= set(head.split())
    assert "2026-01-02 03:04" in line
    assert line.split()[0] == stocked("sessions", "--json").row()["session"][:12]
    assert all(len(each) <= int(columns) for each in (head.rstrip(), line.rstrip())) or columns == "60"


def test_a_long_name_costs_no_number(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is longer than the line is cut on a screen, and whole in a pipe; the id is there in both."""
    name = "a-long-name-" * 20
    row = palaver.imported(rollout(), f"{name}.jsonl")
    piped = palaver("sessions").out
    monkeypatch.setenv("COLUMNS", "80")
    on_screen = palaver("sessions").out

    assert name in piped
    assert name not in on_screen
    assert all(row["session"][:12] in shown for shown in (piped, on_screen))
    assert max(map(len, on_screen.splitlines())) <= 80


def test_an_unknown_session_says_where_names_are(stocked: Palaver) -> None:
    """Whoever names a session wrongly is told what lists them."""
    assert "`palaver sessions` lists them" in stocked("show", "nothing").err


def test_the_package_runs_as_a_module() -> None:
    """`python -m palaver` is the command line."""
    ran = subprocess.run([sys.executable, "-m", "palaver", "--version"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, run("--version").out)


def test_tree_marks_the_dialog_that_is_taken(stocked: Palaver) -> None:
    """One dialog is the main one, with --json too: the one that view shows when none is named; every line says the relation."""
    rows = stocked("tree", "talk", "--json").rows()
    (main,) = [row["dialog"] for row in rows if row["main"]]
    lines = stocked("tree", "talk").out.splitlines()[1:]
    assert stocked("show", "talk").out == stocked("show", "talk", "--dialog", main).out
    assert [line.split("[")[1][:8] for line in lines if "take it" in line] == [main[:8]]
    assert {line.split("[")[1][:8]: line.rpartition("(")[2].partition(";")[0].rstrip(")") for line in lines} == {
        row["dialog"][:8]: row["relation"] for row in rows
    }


def test_tree_names_every_dialog(stocked: Palaver) -> None:
    """The tree shows the rewind as a fork; with --json each dialog has its ranges."""
    rows = stocked("tree", "talk", "--json").rows()

    assert [row["relation"] for row in rows] == ["root", "fork"]
    assert rows[1]["parent"] == rows[0]["dialog"]
    assert sum(stop - start for _, start, stop in rows[1]["ranges"]) > 0
    assert all(row["dialog"][:8] in stocked("tree", "talk").out for row in rows)


def test_show_gives_everything_as_markdown_entries_or_json(stocked: Palaver) -> None:
    """All three forms hold the same messages; --last takes the end of it."""
    text, lines = stocked("show", "talk"), stocked("show", "talk", "--entries")
    rows = stocked("show", "talk", "--json").rows()

    assert "Please look at" in text.out
    assert len(lines.out.splitlines()) == len(rows)
    assert [row["kind"] for row in rows].count("message") == 9
    assert stocked("show", "talk", "--json", "--last", "2").rows() == rows[-2:]
    assert "Please look at" not in stocked("show", "talk", "--last", "1").out


def test_recall_brings_back_exactly_what_was_recorded(stocked: Palaver) -> None:
    """Tabs, carriage returns and escape sequences come back as they were: a pipe gets bytes, not a rendering."""
    rows = stocked("show", "talk", "--json").rows()
    handles = [row["handle"] for row in rows if row["kind"] == "message" and row["message"]["role"] == "tool"]
    texts = [child("recall", handle, "--store", stocked.store).out for handle in handles]

    assert texts[1:] == [f"{CODE}\n", "\x1b[31mred\x1b[0m \x1b]0;title\x07\n"]
    assert stocked("recall", handles[1], "--json").row()["found"]["kind"] == "message"


@pytest.mark.parametrize("query", [PATH, "會話狀態", "狀態", "reader.entries[0]", "ls --color", "compile.py look"])
def test_search_finds_chinese_code_and_paths(stocked: Palaver, query: str) -> None:
    """What was said, asked of tools and given back by them is found as it was written; each hit has a handle that recall takes."""
    rows = stocked("search", query, "--json").rows()

    assert rows
    assert stocked("recall", rows[0]["handle"]).code == 0
    assert set(rows[0]) == {"handle", "session", "kind", "role", "snippet", "score"}


def test_search_sees_what_was_imported_since(stocked: Palaver) -> None:
    """The index is brought up to date by the search itself; a session can be asked alone."""
    assert stocked("search", "twelve").out == "Nothing found.\n"
    stocked("import", stocked.file("c.jsonl", rollout()))

    assert len(stocked("search", "twelve", "--json").rows()) == 1
    assert stocked("search", "twelve", "--session", "talk", "--json").rows() == []
    assert len(stocked("search", "it", "--limit", "1", "--json").rows()) == 1


def test_stats_count_the_store_and_a_session(stocked: Palaver) -> None:
    """Figures are numbers; those of one session are part of those of the store."""
    stocked("import", stocked.file("c.jsonl", rollout()))
    store, session = stocked("stats", "--json").row(), stocked("stats", "talk", "--json").row()

    assert (store["sessions"], session["sessions"]) == (2, 1)
    assert session["tools"] == {"Bash": 2, "Read": 1}
    assert store["tools"]["shell"] == 1
    assert store["messages"] > session["messages"]
    assert "claude-opus-4-6" in stocked("stats").out


# --- view, export ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", PROFILES)
def test_view_gives_a_request_that_its_provider_takes(stocked: Palaver, wire: str) -> None:
    """The keys of the contract; a session that ends on the assistant's words is a history, with --then the next request."""
    row = stocked("view", "talk", "--wire", wire, "--json").row()
    asked = stocked("view", "talk", "--wire", wire, "--then", "Go on.", "--json").row()

    assert {"request", "tokens", "omitted", "report"} <= set(row)
    assert (row["history"], asked["history"]) == (True, False)
    assert validate(row["request"], PROFILES[wire], as_history=True) == ()
    assert validate(asked["request"], PROFILES[wire], as_history=False) == ()
    assert "Go on." in json.dumps(asked["request"])


def test_view_leaves_out_under_a_budget_and_says_what(stocked: Palaver) -> None:
    """What is left out has a place that recall takes, and a reason; --explain says so in words."""
    full = stocked("view", "talk", "--wire", "anthropic", "--json").row()
    row = stocked("view", "talk", "--wire", "anthropic", "--budget", full["tokens"] - 200, "--json").row()
    words = stocked("view", "talk", "--budget", full["tokens"] - 200, "--explain")

    assert row["tokens"] <= full["tokens"] - 200
    assert row["omitted"]
    for gone in row["omitted"]:
        assert gone["reason"]
        assert stocked("recall", gone["place"]).code == 0
    assert "palaver recall" in words.err


def test_a_window_that_nobody_knows_is_told_where_it_counts(stocked: Palaver) -> None:
    """A view that shows everything has no use for the model's window; a policy that goes by it has."""
    assert "is not known" not in stocked("view", "talk", "--model", "scripted").err
    assert (
        "The window of 'scripted' is not known" in stocked("view", "talk", "--model", "scripted", "--policy", "pi").err
    )


def test_every_place_that_a_view_names_is_recalled(palaver: Palaver) -> None:
    """A run of entries that was left out is brought back entry by entry, by the words that named it, also those of the Markdown."""
    session = Claude()
    for turn in range(12):
        session.user(f"u{turn}", f"question {turn} " + "because " * 80)
        session.model(f"a{turn}", f"m{turn}", text(f"answer {turn}"))
    palaver.imported(session.bytes())
    words = ("view", "talk", "--budget", "900")
    runs = [gone["place"] for gone in palaver(*words, "--json").row()["omitted"] if "-" in gone["place"]]
    shown = palaver(*words, "--explain")

    assert runs
    for run_ in runs:
        first, last = map(int, run_.partition(":")[2].split("-"))
        assert run_ in shown.out
        assert run_ in shown.err
        assert len(palaver("recall", run_, "--json").rows()) == last - first + 1
    notice = re.search(r"recall (\w+:\d+ to \w+:\d+)\]", shown.out)
    assert notice is not None
    assert palaver("recall", notice[1]).code == 0
    assert "question 1 because" in palaver("recall", runs[0]).out
    assert "answer 0" in palaver("recall", runs[0]).out
    assert palaver("recall", runs[0].partition("-")[0] + "-99999").code == 4
    assert palaver("recall", runs[0].partition(":")[0] + ":5-2").code == 3


def test_an_infeasible_budget_is_an_answer(stocked: Palaver) -> None:
    """It has its own exit code, and its breakdown adds up."""
    ran = stocked("view", "talk", "--wire", "openai-chat", "--budget", "5", "--json")
    found = ran.row()["infeasible"]

    assert ran.code == 6
    assert sum(found["breakdown"].values()) == found["needed"] > found["budget"] == 5
    assert "newest user message" in stocked("view", "talk", "--budget", "5").err


def test_view_of_the_past_is_shorter(stocked: Palaver) -> None:
    """`--at` gives what was there after that entry; the newest number gives all."""
    first = stocked("tree", "talk", "--json").rows()[0]
    words = ("view", "talk", "--dialog", first["dialog"], "--json")
    views = [stocked(*words, "--at", at).row()["view"] for at in (3, first["entries"] - 1)]

    assert len(views[0]) < len(views[1])
    assert views[1] == stocked(*words).row()["view"]


@pytest.mark.parametrize("form", EXPORTS)
def test_export_to_a_file_and_to_standard_output(stocked: Palaver, form: str) -> None:
    """Both hold the same bytes; the file is private, and what was there before is replaced whole."""
    target = stocked.file("out", "old")
    row = stocked("export", "talk", "--to", form, "-o", target, "--json").row()
    piped = child("export", "talk", "--to", form, "--json", "--store", stocked.store)

    assert piped.out.encode(errors="surrogateescape") == target.read_bytes()
    assert json.loads(piped.err) == {**row, "file": None}
    assert row["bytes"] == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in stocked.folder.iterdir() if path.name.startswith(".")) == []


def test_a_bundle_goes_from_store_to_store(stocked: Palaver, tmp_path: Path) -> None:
    """Export, import and export again give the same bytes; a second import adds nothing."""
    bundle, again = tmp_path / "talk.palaver", tmp_path / "again.palaver"
    stocked("export", "talk", "--to", "bundle", "-o", bundle)
    other = Palaver(tmp_path / "other")
    row = other("import", bundle, "--json").row()
    other("export", "talk", "--to", "bundle", "-o", again)

    assert set(row) == IMPORT_KEYS
    assert (row["format"], row["outcome"], row["dialogs"]) == ("palaver-bundle", "new", 2)
    assert again.read_bytes() == bundle.read_bytes()
    assert other("import", bundle, "--json").row()["outcome"] == "unchanged"
    assert other("doctor").code == 0


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress], ids=["as is", "gz", "zst"]
)
def test_a_bundle_is_read_as_it_lies_there(stocked: Palaver, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """A bundle that was compressed since is imported, examined and repaired like one as it was written; a damaged one is called damaged."""
    bundle = tmp_path / "talk.palaver"
    stocked("export", "talk", "--to", "bundle", "-o", bundle)
    whole = bundle.read_bytes()
    bundle.write_bytes(pack(whole))
    other = Palaver(tmp_path / "other")

    assert other("doctor", bundle).out.startswith(f"{bundle}: talk: healthy")
    assert other("import", bundle, "--json").row()["outcome"] == "new"
    assert other("import", bundle, "--json").row()["outcome"] == "unchanged"
    bundle.write_bytes(pack(whole[:-100]))
    for command in ("import", "doctor"):
        ran = other(command, bundle)
        assert (ran.code, "is damaged at byte" in ran.err) == (3, True), command


def test_a_bundle_that_grew_says_so(stocked: Palaver, tmp_path: Path) -> None:
    """Taking a bundle of a session that went on is `grown`, not `new`."""
    bundle, other = tmp_path / "talk.palaver", Palaver(tmp_path / "other")
    stocked("export", "talk", "--to", "bundle", "-o", bundle)
    other("import", bundle)
    with closing(open_store(str(stocked.store), create=False)) as store:
        Session.open("talk", store).root.put_text("And then?")
    stocked("export", "talk", "--to", "bundle", "-o", bundle)

    assert other("import", bundle, "--json").row()["outcome"] == "grown"


# --- doctor ---------------------------------------------------------------------------------------------------------------------


def test_doctor_of_a_healthy_store(stocked: Palaver) -> None:
    """Every session is examined; no fault ends with 0, and no branch is written."""
    ran = stocked("doctor", "--json")

    assert ran.code == 0
    assert ran.row()["healthy"] is True
    assert set(ran.row()["valid"]) == set(PROFILES)
    assert stocked("doctor", "talk", "--repair", "--json").row()["dialogs"] == 2


def test_doctor_mends_every_dialog_with_faults(palaver: Palaver) -> None:
    """Two dialogs with faults get a branch each, the sound one none; --dialog mends that one only; it is said which."""
    session = palaver.imported(talk())["session"]
    with closing(open_store(str(palaver.store))) as store:
        root = Session.open(session, store).root
        faulty = [root.fork(), root.fork()]
        for number, fork in enumerate(faulty):
            fork.append(ToolMessage.from_result(ToolResultContent(id=f"gone{number}", content="late")))
        root.fork()
    named = palaver("doctor", session, "--dialog", faulty[1].dialog_id, "--repair", "--json").rows()
    assert [row["repaired"]["of"] for row in named[1:]] == [faulty[1].dialog_id]
    ran = palaver("doctor", session, "--repair", "--json")
    branches = [row["repaired"] for row in ran.rows()[1:]]
    assert ran.code == 1
    assert [branch["of"] for branch in branches] == [fork.dialog_id for fork in faulty]
    for branch in branches:
        assert palaver("doctor", session, "--dialog", branch["dialog"]).code == 0


def test_doctor_repairs_into_a_branch(palaver: Palaver) -> None:
    """A file with a fault ends with 1; --repair imports it and writes a branch that is healthy by itself, the file as it was."""
    path = palaver.file("bad.jsonl", talk().replace(b'"tool_use_id": "t3"', b'"tool_use_id": "t9"'))
    before = path.read_bytes()
    ran = palaver("doctor", path, "--repair", "--json")
    *_, told = ran.rows()
    branch = told["repaired"]

    assert ran.code == 1
    assert {"orphan_result", "unanswered_call"} <= {one["code"] for one in ran.rows()[0]["findings"]}
    assert palaver("doctor", branch["session"], "--dialog", branch["dialog"]).code == 0
    assert palaver("doctor", branch["session"]).code == 1
    assert path.read_bytes() == before
