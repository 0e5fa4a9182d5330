"""Every command: what it prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from palaver.cli.app import COMMANDS, loaded
from palaver.cli.outcome import EXIT_HELP, Exit
from palaver.messages import ToolMessage, ToolResultContent
from palaver.session import Session
from palaver.store import open_store
from palaver.transcripts import EXPORTS
from palaver.wire import PROFILES, validate
from tests.cli.commands import CODE, PATH, Palaver, child, rollout, run, talk
from tests.formats.samples import Claude, text

IMPORT_KEYS = {"file", "format", "session", "name", "outcome", "dialogs", "entries", "records", "messages", "lost"}


NAMES = [name for group in COMMANDS.values() for name in group]
GROUPS = {
    "branch": "tree diff fork rewind merge label pin quarantine",
    "store": "verify copy sweep retain hold receipts",
}
LEAVES = [name for name in NAMES if name not in GROUPS]
LEAVES += [f"{name} {each}" for name, commands in GROUPS.items() for each in commands.split()]


def test_help_of_every_command() -> None:
    """Help goes to standard output, names every option with a sentence, and ends with 0; --store and --json are everywhere."""
    for command in ("", *NAMES, *LEAVES):
        ran = run(*command.split(), "--help")
        assert (ran.code, ran.err) == (0, ""), command
    for command in LEAVES:
        options, text = _options(command), run(*command.split(), "--help").out
        assert all(one.help for one in options), f"{command} has an option without a word about it"
        names = {name for one in options for name in one.opts}
        assert all(name in text for name in names if name.startswith("-")), command
        assert "--json" in names or command == "chat"
        assert "--store" in names or command == "lab"


def _options(command: str) -> list[Any]:
    name, _, below = command.partition(" ")
    found = loaded(name)
    return [one for one in (found.commands[below] if below else found).params if one.name != "help"]


def test_help_lists_commands_and_exit_codes() -> None:
    """Each exit code has its meaning; what a placeholder in a view says, `recall`, works unlisted; without a command nothing was done."""
    assert len(NAMES) <= 15
    assert run("recall", "--help").code == 0
    assert "recall" not in run("--help").out.split()
    assert {int(code) for code in Exit} == {int(part.split()[0]) for part in EXIT_HELP.partition(": ")[2].split("; ")}
    assert "130 interrupted" in " ".join(run("--help").out.split())
    ran = run()
    assert (ran.code, "Sessions:" in ran.out + ran.err) == (2, True)


def test_the_package_runs_as_a_module() -> None:
    """`python -m palaver` is the command line."""
    ran = subprocess.run([sys.executable, "-m", "palaver", "--version"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, run("--version").out)
    assert ran.stdout.startswith("palaver 0.")


def test_completion_lists_commands_and_options() -> None:
    """A shell is given the names that complete what was typed."""
    typed = {"COMP_WORDS": "palaver view --ex", "COMP_CWORD": "2", "_PALAVER_COMPLETE": "complete_bash"}
    assert "--explain" in child(**typed).out
    assert "sessions" in child(**typed | {"COMP_WORDS": "palaver se", "COMP_CWORD": "1"}).out


WRONG = [
    ("veiw x", 2, "view"),
    ("view x --wrie y", 2, "--wire"),
    ("sessions --lmit 3", 2, "--limit"),
    ("sessions --limit many", 2, "integer"),
    ("search", 2, "QUERY"),
    ("import", 2, "name a transcript"),
    ("export talk", 2, "--to"),
    ("view talk --at -1", 2, "--at"),
    ("view talk --budget 0", 2, "--budget"),
    ("doctor --repair", 2, "--repair"),
    ("export talk --to bundle --view", 2, "bundle"),
    ("branch fokr talk", 2, "fork"),
    ("compact talk --focus heron", 2, "--summarizer"),
    ("erase", 2, "session"),
    ("calls talk 1", 2, "two calls"),
    ("search ***", 2, "letter"),
    ("view tlak", 4, "talk"),
    ("view talk --policy defualt", 4, "default"),
    ("view talk --wire anthropc", 4, "anthropic"),
    ("export talk --to markdwon", 4, "markdown"),
    ("view talk --at 999", 4, "newest entry"),
    ("doctor tlak", 4, "talk"),
    ("show 123456", 4, "123456"),
    ("show nothing", 4, "`palaver sessions` lists them"),
    ("branch rewind talk", 3, "not an entry"),
    ("recall 0123456789ab:3", 4, "0123456789ab"),
]


def test_wrong_arguments_are_told_apart(stocked: Palaver) -> None:
    """What is wrong is said in one line of standard error, with what was probably meant; standard output stays empty."""
    for words, code, close in WRONG:
        ran = stocked(*words.split())
        assert (ran.code, ran.out) == (code, ""), words
        assert close in ran.err, words
        assert len(ran.err.splitlines()) == 1, words


def test_an_error_is_json_where_json_was_asked_for(stocked: Palaver) -> None:
    """With --json an error is an object on standard output: its kind, its words, its hint."""
    ran = stocked("view", "tlak", "--json")

    assert ran.code == 4
    assert ran.row()["error"]["kind"] == "NotFound"
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
    assert (words.code, words.out) == (1, "2 sessions imported (2 unchanged), 0 problems, 1 file not imported\n")
    assert "note.txt" in words.err


def test_one_line_of_totals_and_details_on_request(palaver: Palaver) -> None:
    """The line counts sessions and problems; -v lists them; a folder is walked, sub-agents' files last."""
    bad = b"".join(b"{broken %d\n" % n for n in range(9))
    palaver.folder.joinpath("sub").mkdir()
    palaver.file("sub/talk.jsonl", talk() + bad)
    palaver.file("sub/notes.txt", "not a transcript")
    short, whole = palaver("import", palaver.folder / "sub"), palaver("import", palaver.folder / "sub", "-v")

    assert short.out.startswith("1 session imported (1 new), 9 problems (-v lists them): ")
    assert whole.out.count("is not JSON") == 9
    assert "line 12:" in whole.out
    assert (short.code, short.err) == (0, "")


def test_import_without_a_path_offers_what_is_there(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual folders of other agents are listed; where nobody can be asked, the folder is to be named."""
    home = palaver.folder / "home"
    (home / ".claude" / "projects" / "x").mkdir(parents=True)
    (home / ".claude" / "projects" / "x" / "talk.jsonl").write_bytes(talk())
    monkeypatch.setenv("HOME", str(home))
    ran = palaver("import")

    assert (ran.code, ran.out) == (2, "")
    assert "Claude Code" in ran.err
    assert "1 file" in ran.err
    monkeypatch.setenv("HOME", str(palaver.folder))
    assert "name a transcript or a folder" in palaver("import").err


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


def test_the_title_is_the_name_or_what_was_said_first(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session named after its file shows the first prompt; a pipe gets it whole, a terminal cut."""
    said_first = "Count the herons " + "by the pond " * 20
    session = Claude()
    session.user("u1", said_first)
    session.model("a1", "m1", text("Two."))
    row = palaver.imported(session.bytes(), "0f0f.jsonl")
    piped = palaver("sessions").out
    monkeypatch.setenv("COLUMNS", "80")
    on_screen = palaver("sessions").out

    assert " ".join(said_first.split())[:200] in piped
    assert "Count the herons" in on_screen
    assert max(map(len, on_screen.splitlines())) <= 80
    assert all(row["session"][:12] in shown for shown in (piped, on_screen))
    with closing(open_store(str(palaver.store))) as store:
        store.update_session(row["session"], name="the herons")
    assert palaver("sessions", "--json").row()["title"] == "the herons"


def test_tree_lists_every_dialog_and_marks_the_main_one(stocked: Palaver) -> None:
    """An arrow marks the dialog that commands use; each is shown by its id; with --json each has its ranges."""
    rows = stocked("branch", "tree", "talk", "--json").rows()
    (main,) = [row["dialog"] for row in rows if row["main"]]
    lines = stocked("branch", "tree", "talk").out.splitlines()[1:]

    assert stocked("show", "talk").out == stocked("show", main).out == stocked("show", main[:8]).out
    assert [line.split()[1] for line in lines if line.startswith("→")] == [main[:12]]
    assert [row["relation"] for row in rows] == ["root", "fork"]
    assert rows[1]["parent"] == rows[0]["dialog"]
    assert sum(stop - start for _, start, stop in rows[1]["ranges"]) > 0
    assert all(row["dialog"][:12] in line for row, line in zip(rows, lines, strict=True))


def test_a_file_is_shown_without_being_imported(palaver: Palaver) -> None:
    """`show`, `view` and `calls` read a transcript into memory; no store is made."""
    path = palaver.file("talk.jsonl", talk())
    assert "Please look at" in palaver("show", path).out
    assert "Please look at" in palaver("view", path).out
    assert "reconstructed" in palaver("calls", path).out
    assert not palaver.store.exists()


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
    texts = [stocked("recall", handle).out for handle in handles]

    assert texts[1:] == [f"{CODE}\n", "\x1b[31mred\x1b[0m \x1b]0;title\x07\n"]
    assert stocked("recall", handles[1], "--json").row()["found"]["kind"] == "message"


def test_search_finds_chinese_code_and_paths(stocked: Palaver) -> None:
    """What was said, asked of tools and returned by them is found as it was written; each hit has a handle that `show` takes."""
    for query in (PATH, "會話狀態", "狀態", "reader.entries[0]", "ls --color", "compile.py look"):
        rows = stocked("search", query, "--json").rows()
        assert rows, query
        assert stocked("show", rows[0]["handle"]).code == 0
        assert set(rows[0]) == {"handle", "session", "kind", "role", "snippet"}


def test_search_sees_what_was_imported_since(stocked: Palaver) -> None:
    """The index is brought up to date by the search itself; a session can be asked alone."""
    assert stocked("search", "twelve").out == "Nothing found.\n"
    stocked("import", stocked.file("c.jsonl", rollout()))

    assert len(stocked("search", "twelve", "--json").rows()) == 1
    assert stocked("search", "twelve", "--session", "talk", "--json").rows() == []
    assert len(stocked("search", "it", "--limit", "1", "--json").rows()) == 1


# --- view, export ---------------------------------------------------------------------------------------------------------------


def test_view_gives_a_request_that_its_provider_takes(stocked: Palaver) -> None:
    """The keys of the contract; a session that ends on the assistant's words is a history, with --then the next request."""
    for wire in PROFILES:
        row = stocked("view", "talk", "--wire", wire, "--json").row()
        asked = stocked("view", "talk", "--wire", wire, "--then", "Go on.", "--json").row()

        assert {"request", "tokens", "omitted", "report"} <= set(row), wire
        assert (row["history"], asked["history"]) == (True, False), wire
        assert validate(row["request"], PROFILES[wire], as_history=True) == (), wire
        assert validate(asked["request"], PROFILES[wire], as_history=False) == (), wire
        assert "Go on." in json.dumps(asked["request"]), wire


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
    assert words.out.startswith("The model sees ")
    assert "`palaver show PLACE` prints the original of:" in words.out


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
        assert len(palaver("show", run_, "--json").rows()) == last - first + 1
    assert "question 1 because" in palaver("show", runs[0]).out
    assert "answer 0" in palaver("recall", runs[0]).out
    assert palaver("recall", runs[0].partition("-")[0] + "-99999").code == 4


def test_an_infeasible_budget_is_an_answer(stocked: Palaver) -> None:
    """It has its own exit code, and its breakdown adds up."""
    ran = stocked("view", "talk", "--wire", "openai-chat", "--budget", "5", "--json")
    found = ran.row()["infeasible"]

    assert ran.code == 6
    assert sum(found["breakdown"].values()) == found["needed"] > found["budget"] == 5
    assert "newest user message" in stocked("view", "talk", "--budget", "5").err


def test_view_of_the_past_is_shorter(stocked: Palaver) -> None:
    """`--at` gives what was there after that entry; the newest number gives all."""
    first = stocked("branch", "tree", "talk", "--json").rows()[0]
    words = ("view", first["dialog"], "--json")
    views = [stocked(*words, "--at", at).row()["view"] for at in (3, first["entries"] - 1)]

    assert len(views[0]) < len(views[1])
    assert views[1] == stocked(*words).row()["view"]


def test_export_to_a_file_and_to_standard_output(stocked: Palaver) -> None:
    """Both hold the same bytes; the file is private, and what was there before is replaced whole."""
    for form in EXPORTS:
        target = stocked.file("out", "old")
        row = stocked("export", "talk", "--to", form, "-o", target, "--json").row()
        piped = stocked("export", "talk", "--to", form, "--json")

        assert piped.out.encode(errors="surrogateescape") == target.read_bytes(), form
        assert json.loads(piped.err) == {**row, "file": None}, form
        assert row["bytes"] == target.stat().st_size, form
        assert target.stat().st_mode & 0o777 == 0o600, form
        assert sorted(path.name for path in stocked.folder.iterdir() if path.name.startswith(".")) == [], form


def test_a_bundle_is_read_as_it_lies_there(stocked: Palaver, tmp_path: Path) -> None:
    """A bundle that was compressed since is imported, examined and repaired like one as it was written; a damaged one is called damaged."""
    bundle = tmp_path / "talk.palaver"
    stocked("export", "talk", "--to", "bundle", "-o", bundle)
    whole = bundle.read_bytes()
    packs: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, zstandard.ZstdCompressor().compress]
    for number, pack in enumerate(packs):
        other = Palaver(tmp_path / str(number))
        bundle.write_bytes(pack(whole))
        assert other("doctor", bundle).out.startswith(f"{bundle}: talk: healthy")
        assert other("import", bundle, "--json").row()["outcome"] == "new"
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


def test_doctor_mends_every_dialog_with_faults(palaver: Palaver) -> None:
    """Two dialogs with faults get a branch each, the sound one none; a dialog that is named is repaired alone."""
    session = palaver.imported(talk())["session"]
    with closing(open_store(str(palaver.store))) as store:
        root = Session.open(session, store).root
        faulty = [root.fork(), root.fork()]
        for number, fork in enumerate(faulty):
            fork.append(ToolMessage.from_result(ToolResultContent(id=f"gone{number}", content="late")))
        root.fork()
    named = palaver("doctor", faulty[1].dialog_id, "--repair", "--json").rows()
    assert [row["repaired"]["of"] for row in named[1:]] == [faulty[1].dialog_id]
    ran = palaver("doctor", session, "--repair", "--json")
    branches = [row["repaired"] for row in ran.rows()[1:]]
    assert ran.code == 1
    assert [branch["of"] for branch in branches] == [fork.dialog_id for fork in faulty]
    for branch in branches:
        assert palaver("doctor", branch["dialog"]).code == 0


def test_doctor_repairs_into_a_branch(palaver: Palaver) -> None:
    """A file with a fault ends with 1; --repair imports it and writes a branch that is healthy by itself, the file as it was."""
    path = palaver.file("bad.jsonl", talk().replace(b'"tool_use_id": "t3"', b'"tool_use_id": "t9"'))
    before = path.read_bytes()
    ran = palaver("doctor", path, "--repair", "--json")
    *_, told = ran.rows()
    branch = told["repaired"]

    assert ran.code == 1
    assert {"orphan_result", "unanswered_call"} <= {one["code"] for one in ran.rows()[0]["findings"]}
    assert palaver("doctor", branch["dialog"]).code == 0
    assert palaver("doctor", branch["session"]).code == 1
    assert path.read_bytes() == before
