"""Every command: what it prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from palaver import Message, Session, SqliteStore, UserMessage
from palaver.browsing.seen import turns
from palaver.cli.app import COMMANDS
from palaver.cli.outcome import EXIT_HELP, Exit
from palaver.cli.terminal import short
from palaver.messages import AssistantMessage, Usage
from palaver.providers import APIS, profile
from palaver.store.protocol import USAGE
from palaver.transcripts import export_forms
from palaver.transcripts.exporting import TOOLS
from palaver.wire import validate
from tests.cli.commands import CODE, PATH, Palaver, child, rollout, run, talk
from tests.cli.test_page import PAGE
from tests.formats.samples import Claude, text

NAMES = [name for group in COMMANDS.values() for name in group]


def test_help_lists_commands_and_exit_codes() -> None:
    """Each exit code has its meaning; what a placeholder in a view says, `recall`, works unlisted; without a command nothing was done."""
    assert len(NAMES) <= 28
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


WRONG = [
    ("veiw x", 2, "view"),
    ("view x --wrie y", 2, "--wire"),
    ("sessions --limit many", 2, "integer"),
    ("import", 2, "name a transcript"),
    ("doctor --repair", 2, "--repair"),
    ("export talk --to bundle --view", 2, "bundle"),
    ("branch fokr talk", 2, "fork"),
    ("branch rewind talk", 3, "not an entry"),
    ("branch quarantine talk", 3, "talk"),
    ("compact talk --redo", 3, "no undo"),
    ("compact talk --policy letta2", 4, "letta"),
    ("view tlak", 4, "talk"),
    ("view talk --policy defualt", 4, "default"),
    ("view talk:99", 4, "10 entries"),
    ("view talk --then hi", 2, "--wire"),
    ("view talk:1 --call 2", 2, "an entry was named"),
    ("list", 2, "Did you mean 'sessions'? See `palaver --help`."),
    ("show 0e4", 4, "at least 6 digits"),
    ("show nothing", 4, "`palaver sessions` lists them"),
]


def test_wrong_arguments_are_told_apart(stocked: Palaver) -> None:
    """One line of standard error has what was probably meant, or with --json an object; nothing is written."""
    before = stocked("show", "talk", "--json").rows()
    for words, code, close in WRONG:
        ran = stocked(*words.split())
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1), words
        assert close in ran.err, words
    ran = stocked("view", "tlak", "--json")
    assert (ran.code, ran.err, ran.row()["error"]["kind"]) == (4, "", "NotFound")
    assert "talk" in ran.row()["error"]["message"]
    assert stocked("show", "talk", "--json").rows() == before


# --- import ------------------------------------------------------------------------------------------------------------------


def test_import_says_what_became_of_each_file(palaver: Palaver) -> None:
    """One object a session; a file that is no transcript stops none of the others; a second import adds nothing."""
    files = [palaver.file("talk.jsonl", talk()), palaver.file("note.txt", "hello"), palaver.file("c.jsonl", rollout())]
    ran = palaver("import", *files, "--json")
    row, bad, other = ran.rows()
    assert (ran.code, bad["error"]["kind"], other["format"]) == (1, "UnsupportedTranscript", "codex")
    assert (row["format"], row["outcome"], row["records"], row["dialogs"]) == ("claude-code", "new", 11, 2)
    assert all({"place", "reason"} <= set(loss) for loss in row["lost"])
    words = palaver("import", *files)
    assert (words.code, words.out) == (1, "Nothing new in 2 sessions, 1 file not imported\n")
    assert "note.txt" in words.err


def test_a_folder_is_walked_and_problems_are_listed(palaver: Palaver) -> None:
    """One line counts sessions and problems; -v lists them; what is no transcript is passed over."""
    palaver.folder.joinpath("sub").mkdir()
    palaver.file("sub/talk.jsonl", talk() + b"{broken\n" * 9)
    palaver.file("sub/notes.txt", "not a transcript")
    short, whole = palaver("import", palaver.folder / "sub"), palaver("import", palaver.folder / "sub", "-v")
    assert short.out.startswith("1 session imported (1 new), 9 problems (-v lists them): ")
    assert (whole.out.count("is not JSON"), "line 12:" in whole.out, short.code, short.err) == (9, True, 0, "")


def test_import_counts_sessions_and_what_is_lost(palaver: Palaver) -> None:
    """Two files of a session count once; a line with two records is read, so it is a note."""
    lines = talk().splitlines(keepends=True)
    palaver.file("whole.jsonl", lines[0].rstrip() + b"".join(lines[1:]))
    palaver.file("first.jsonl", b"".join(lines[:4]))
    ran = palaver("import", palaver.folder, "-v")
    assert "glued records (1)" in ran.out.splitlines()[-2]
    assert ran.out.splitlines()[-1].startswith("1 session imported (1 new), 0 problems: ")
    again = palaver("import", palaver.folder)
    assert again.out.startswith("Nothing new in 1 session: ")


def test_import_names_files_that_are_not_a_session_each(palaver: Palaver) -> None:
    """Copies of a session, several sessions in one file, and files of sub-agents: the report says which, and why; JSON has each."""
    lines = talk().splitlines(keepends=True)
    first, whole = palaver.file("first.jsonl", b"".join(lines[:4])), palaver.file("whole.jsonl", talk())
    many = palaver.file("many.jsonl", b'{"messages": [{"role": "user", "content": "Hi."}]}\n' * 3)
    agent = [json.loads(line) | {"isSidechain": True, "agentId": "ag"} for line in lines[:2]]
    part = palaver.file("agent-ag.jsonl", b"".join(json.dumps(record).encode() + b"\n" for record in agent))
    session, *same = palaver("import", first, whole, many, part).out.splitlines()
    assert session.startswith(f"{first}, {whole}: the same session, ")
    assert same[0].startswith(f"{many}: 3 sessions in one file")
    assert same[1].startswith("1 file of sub-agents: ")
    assert same[2].startswith("4 sessions imported (4 new), 0 problems")
    rows = palaver("import", first, whole, many, part, "--json").rows()
    assert [row["part"] for row in rows] == [False] * 5 + [True]


def test_import_of_a_folder_reads_what_is_beside_sub_agents(palaver: Palaver) -> None:
    """The file with a sub-agent's type is no transcript of its own: a folder as Claude Code leaves it is imported without a failure."""
    palaver.file("s.jsonl", talk())
    agent = [json.loads(line) | {"isSidechain": True, "agentId": "ag"} for line in talk().splitlines()[:2]]
    (palaver.folder / "s" / "subagents").mkdir(parents=True)
    palaver.file("s/subagents/agent-ag.jsonl", b"".join(json.dumps(record).encode() + b"\n" for record in agent))
    palaver.file("s/subagents/agent-ag.meta.json", b'{"agentType": "Explore"}')
    ran = palaver("import", palaver.folder)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1].startswith("1 session imported (1 new), 0 problems")


def test_import_without_a_path_offers_what_is_there(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual folders of other agents are listed; where nobody can be asked, the whole command is."""
    home = palaver.folder / "home"
    (home / ".claude" / "projects" / "x").mkdir(parents=True)
    (home / ".claude" / "projects" / "x" / "talk.jsonl").write_bytes(talk())
    (home / ".codex" / "sessions").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    ran = palaver("import")

    assert (ran.code, ran.out) == (2, "")
    assert "Claude Code" in ran.err
    assert "1 file" in ran.err
    assert "`palaver import ~/.claude/projects ~/.codex/sessions --store " in ran.err
    monkeypatch.setenv("HOME", str(palaver.folder))
    assert "name a transcript or a folder" in palaver("import").err


# --- sessions, tree, show, recall, search, stats -------------------------------------------------------------------------------


def test_sessions_are_listed_by_when_they_were_active(stocked: Palaver) -> None:
    """Newest activity first, as recorded: not by when they were imported."""
    stocked("import", stocked.file("c.jsonl", rollout()))
    rows = stocked("sessions", "--json").rows()

    assert [row["name"] for row in rows] == ["talk", "c"]
    assert ["Please look at" in row["title"] for row in rows] == [True, False], "what was said first"
    assert all(row["updated_at"] < 1.8e9 for row in rows), "the recording's time, not today's"
    assert {"session", "name", "dialogs", "messages", "workdir", "created_at", "updated_at"} <= set(rows[0])
    assert len(stocked("sessions", "--limit", "1", "--json").rows()) == 1
    assert stocked("sessions", "--trash").out.startswith("No sessions")


def test_sessions_show_what_imported_calls_used(palaver: Palaver) -> None:
    """The sums come from the import, and grow with the file; importing the same again adds nothing."""
    whole = PAGE.read_text(encoding="utf-8").partition('title="talk.jsonl"\n')[2].partition("```")[0].encode()
    sums, session = [(0, 0.0)], ""
    for data in (b"".join(whole.splitlines(keepends=True)[:3]), whole, whole):
        session = palaver.imported(data)["session"]
        (row,) = palaver("sessions", "--json").rows()
        sums.append((row["tokens"], row["dollars"]))
    with SqliteStore(palaver.store) as store:
        cost = Session.open(store, session).cost
    assert sums[0] < sums[1] < sums[2] == sums[3]
    assert (sums[3][0], round(sums[3][1], 9)) == (cost.total_tokens, round(cost.cost, 9))


def test_why_says_when_an_entry_was_in_view(stocked: Palaver) -> None:
    """The calls that saw it, how it is now, and the responses after; a session and what is not there are refused."""
    ran = stocked("why", "talk:0").out.splitlines()
    assert ran[0].split()[1] == "user,"
    assert ran[1] == "  in view, whole; calls 1 to 4"
    assert ran[3] == "The first responses after it:"
    assert ran[4].endswith("call Read, call Bash")
    assert stocked("why", "talk:0", "--json").row()["steps"][0]["calls"] == [1, 4]
    assert stocked("why", "talk").code == Exit.INPUT
    assert stocked("why", "talk:99").code == Exit.MISSING


def test_cost_lists_sums_and_breaks(palaver: Palaver) -> None:
    """Sums by any key, for one session or all; the calls that broke the cache; and a day that is none is refused."""
    palaver.imported(talk())
    assert "'--by': 'week' is not one of 'day'," in palaver("cost", "--by", "week").err
    (row,) = palaver("cost", "--by", "folder", "--json").rows()
    assert (row["key"], row["calls"], row["cached"]) == ("/home/u/project", 5, 500)
    assert palaver("cost", "talk", "--by", "tool", "--json").row()["key"] == "claude-code"
    assert palaver("cost", "--by", "session").out.splitlines()[0].split()[:3] == ["session", "title", "calls"]
    assert "5 calls in 1 session: " in palaver("cost").out
    assert palaver("cost", "--breaks", "--json").out == ""
    assert palaver("cost", "--until", "2026-01-01").out.endswith("No calls match --until 2026-01-01.\n")
    assert palaver("cost", "--since", "9999999y").code == palaver("cost", "--since", "tomorrow").code == Exit.USAGE
    assert palaver("cost", "nobody").code == Exit.MISSING


def test_sessions_are_filtered_and_added_up(palaver: Palaver) -> None:
    """By day of activity, tool, model and folder; the last line has the sums of what is listed, with what own sessions cost."""
    palaver.imported(talk())
    with SqliteStore(palaver.store) as store:
        dialog = Session.create(store, "own", workdir="/home/u/other/main").root
        dialog.put_text("Go.")
        dialog.append(
            AssistantMessage(content="Yes.", model="gpt-5.2", usage=Usage(input_tokens=1_000, output_tokens=10))
        )
    own, talked = palaver("sessions", "--json").rows()
    assert (own["tool"], own["tokens"], own["dollars"] > 0, own["estimated"]) == ("palaver", 1_010, True, True)
    assert (talked["tool"], talked["model"]) == ("claude-code", "claude-opus-4-6")
    chosen = {
        ("--tool", "claude"): talked,
        ("--folder", "other/main"): own,
        ("--model", "opus"): talked,
        ("--until", "2026-01-31"): talked,
        ("--since", "7d"): own,
    }
    for words, row in chosen.items():
        assert [each["session"] for each in palaver("sessions", *words, "--json").rows()] == [row["session"]], words
    lines = palaver("sessions", "--wide").out.splitlines()
    assert lines[-1].startswith(f"2 sessions, {own['messages'] + talked['messages']} msgs, ")
    assert "other/main" in lines[1]
    assert palaver("sessions", "--limit", "1").out.splitlines()[-1].endswith("There are more: --limit N lists them.")
    assert palaver("sessions", "--tool", "codex").out == "No session matches --tool codex.\n"


def test_title_is_the_heading_of_a_plan(palaver: Palaver) -> None:
    """A document after one line is titled with its heading; a heading later in a message, or a comment in code, is none."""
    texts = ("Do this:\n\n# The plan\n\n## Why", "# A title", "Fix it.\n# not a heading", "One.\n\nTwo.\n\n# Three")
    with SqliteStore(palaver.store) as store:
        made = [Session.create(store) for _ in texts]
        for session, said in zip(made, texts, strict=True):
            session.root.put_text(said)
            store.update_session(session.session_id, name="")
    titles = {row["session"]: row["title"] for row in palaver("sessions", "--json").rows()}
    assert [titles[session.session_id] for session in made] == [
        "The plan",
        "A title",
        "Fix it. # not a heading",
        "One. Two. # Three",
    ]


def test_sessions_fit_eighty_columns(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column is there, a long title and a long folder cut."""
    with SqliteStore(palaver.store) as store:
        made = Session.create(store, "A title that is much longer than a column", workdir="/home/mara/the-long-folder")
        made.root.put_text("Hello.")
        used = {"tokens": 14_412_345, "cost": 142.31, "estimated": True}
        store.update_session(made.session_id, metadata={USAGE: used})
    monkeypatch.setattr("palaver.cli.terminal.time.time", lambda: 1.9e9)  # the longest form of a date
    monkeypatch.setenv("COLUMNS", "80")
    head, line, _ = palaver("sessions").out.splitlines()
    assert head.split() == ["session", "active", "msgs", "tokens", "cost", "title", "folder"]
    assert (" 14.4M  ~$142.31  A title that is m" in line, "mara/t" in line, len(line) <= 80) == (True, True, True)
    assert [*map(short, (0, 9_999, 99_999, 999_999))] == ["", "9,999", "99.9k", "999k"]


def test_tree_and_show_agree_on_the_main_dialog(stocked: Palaver) -> None:
    """An arrow marks the dialog that commands use; `show` has the same entries as Markdown, lines and JSON."""
    tree = stocked("branch", "tree", "talk", "--json").rows()
    (main,) = [row["dialog"] for row in tree if row["main"]]
    assert [(row["relation"], row["parent"]) for row in tree] == [("root", None), ("fork", tree[0]["dialog"])]
    lines = stocked("branch", "tree", "talk").out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("→")] == [main[:12]]
    assert stocked("show", "talk").out == stocked("show", main[:8]).out
    rows = stocked("show", "talk", "--json").rows()
    assert [row["kind"] for row in rows].count("message") == 9
    assert len(stocked("show", "talk", "--entries").out.splitlines()) == len(rows)
    assert stocked("show", "talk", "--json", "--last", "2").rows() == rows[-2:]


def test_a_session_has_one_title_everywhere(palaver: Palaver) -> None:
    """What was said first, where only the file has a name; an export gives it no other name."""
    asked = f"Please look at {PATH}"
    palaver.imported(talk(), "9cff5fe1.jsonl")
    for words in (("show",), ("view",), ("doctor",), ("branch", "tree"), ("export", "--to", "markdown")):
        assert asked in palaver(*words, "9cff5fe1").out.splitlines()[0], words
    for form in TOOLS:
        again = Palaver(palaver.folder / form)
        again.folder.mkdir()
        assert palaver("export", "9cff5fe1", "--to", form, "--output", again.folder / "647e27db.jsonl").code == 0
        assert again("import", again.folder / "647e27db.jsonl").code == 0
        assert again("sessions", "--json").row()["title"] == asked, form


def test_a_file_is_shown_without_being_imported(palaver: Palaver) -> None:
    """`show`, `view` and `calls` read a transcript into memory; no store is made."""
    path = palaver.file("talk.jsonl", talk())
    assert "Please look at" in palaver("show", path).out
    assert "Please look at" in palaver("view", path).out
    assert "reconstructed" in palaver("calls", path).out
    assert not palaver.store.exists()


def test_show_last_lists_nothing_older(palaver: Palaver) -> None:
    """The exchanges that were asked for, without what is left out of the others, which is named by its handle."""
    with Session.create(palaver.store, "talk") as session:
        session.root.put_text("One.")
        session.root.put_text("", role="assistant")
        session.root.put_text("Two.")
    assert ":1: empty" in palaver("show", "talk").out
    last = palaver("show", "talk", "--last", 1).out
    assert ("Two." in last, "Not shown" in last) == (True, False)


def test_a_session_names_its_main_dialog_in_a_handle(stocked: Palaver) -> None:
    """`talk:3` is entry 3 of all that the main dialog holds, its ancestors' first; `view` shows what was there after it."""
    session = stocked("sessions", "--json").row()["session"]
    for done in ((), ("branch", "rewind", "talk:3", "--yes")):
        assert not done or stocked(*done).code == 0
        handles = [row["handle"] for row in stocked("show", "talk", "--json").rows()]
        assert len({handle.partition(":")[0] for handle in handles}) == (1 if done else 2)
        for number, handle in enumerate(handles):
            for name in ("talk", session, session[:8]):
                assert stocked("show", f"{name}:{number}") == stocked("show", handle), (name, number)
            assert stocked("show", f"talk:{number}:0") == stocked("show", f"{handle}:0")
            assert stocked("view", f"talk:{number}") == stocked("view", handle)
        for numbers in ("1-3", "3-1", "1,2-3"):
            rows = stocked("show", f"talk:{numbers}", "--json").rows()
            assert [row["handle"] for row in rows] == handles[1:4], numbers
    assert stocked("show", "nobody:0").code == stocked("show", "talk:99").code == 4
    assert "session" in stocked("show", "nobody:0").err


def test_an_entry_is_refused_where_none_is_asked_for(stocked: Palaver) -> None:
    """A command that takes a session or a dialog does nothing with a handle, and says where one is taken."""
    before = stocked("branch", "tree", "talk", "--json").rows()
    for words in (
        "branch tree",
        "branch merge",
        "branch diff talk",
        "calls",
        "compact --yes",
        "doctor",
        "export --to markdown",
        "search word --session",
        "store verify",
        "store hold --reason why",
    ):
        ran = stocked(*words.split(), "talk:3")
        assert (ran.code, ran.out, "talk:3 is an entry" in ran.err) == (3, "", True), words
    assert stocked("branch", "tree", "talk", "--json").rows() == before


def test_a_warning_of_the_library_is_one_line(stocked: Palaver) -> None:
    """Without a path in the code; who only counts learns that the model is not known."""
    ran = child("view", "talk", "--model", "x", "--policy", "palaver", "--explain", "--store", stocked.store)
    assert (ran.err.startswith("The window of 'x' is not known"), len(ran.err.splitlines())) == (True, 1)
    assert "(counted for x, which is not known)." in ran.out


def test_recall_brings_back_exactly_what_was_recorded(stocked: Palaver) -> None:
    """Tabs, carriage returns and escape sequences come back as they were: a pipe gets bytes, not a rendering."""
    rows = stocked("show", "talk", "--json").rows()
    handles = [row["handle"] for row in rows if row["kind"] == "message" and row["message"]["role"] == "tool"]
    texts = [stocked("recall", handle).out for handle in handles]

    assert texts[1:] == [f"{CODE}\n", "\x1b[31mred\x1b[0m \x1b]0;title\x07\n"]
    assert stocked("recall", handles[1], "--json").row()["found"]["kind"] == "message"


def test_search_finds_chinese_code_and_paths(stocked: Palaver) -> None:
    """Each hit has a handle that `show` takes; the index is brought up to date by the search; a session can be asked alone."""
    for query in (PATH, "會話狀態", "狀態", "reader.entries[0]", "ls --color", "compile.py look"):
        rows = stocked("search", query, "--json").rows()
        assert rows, query
        assert stocked("show", rows[0]["handle"]).code == 0
    assert stocked("search", "twelve").out == "Nothing found.\n"
    stocked("import", stocked.file("c.jsonl", rollout()))
    assert len(stocked("search", "twelve", "--json").rows()) == 1
    assert stocked("search", "twelve", "--session", "talk", "--json").rows() == []


def test_search_ranks_hits_and_completes_words(palaver: Palaver) -> None:
    """Any word counts, its beginning is enough, and a quoted phrase stays one; `show` and `view` take the handle of a hit."""
    with SqliteStore(palaver.store) as store:
        dialog = Session.create(store, "ranks", owner="a").root
        for said in ("deploy compiler", "compilers are fun", "deploy", "the compile step, then deploy", "fun deploy"):
            dialog.put_text(said)
    found = {
        "compil": [3, 0, 1],
        "deploy compil": [0, 3, 2, 4, 1],
        "fun compil nowhere": [1, 4, 3, 0],
        '"deploy compiler"': [0],
        '"fun deploy" step': [4, 3],
        "ploy": [],
    }
    for query, seqs in found.items():
        rows = palaver("search", query, "--json").rows()
        assert sorted(int(row["handle"].rpartition(":")[2]) for row in rows) == sorted(seqs), query
        assert [int(row["handle"].rpartition(":")[2]) for row in rows][:2] == seqs[:2], query
    (row,) = palaver("search", "step", "--json").rows()
    assert (row["title"], row["at"] > 0) == ("ranks", True)
    assert palaver("show", row["handle"]).out == "the compile step, then deploy\n"
    assert palaver("view", row["handle"]).code == 0


def test_import_indexes_what_it_imports(palaver: Palaver) -> None:
    """After an import, and after an import of what has grown, nothing waits for the index."""
    whole = rollout()
    grown = palaver.file("c.jsonl", whole[: whole.rindex(b"\n", 0, -1) + 1])
    for content in (grown.read_bytes(), whole):
        grown.write_bytes(content)
        assert palaver("import", grown).code == 0
        with SqliteStore(palaver.store) as store:
            assert store.index_lag() == 0
            assert store.search("files")


def test_search_filters(palaver: Palaver) -> None:
    """Each filter keeps what it names, and two keep what both do; a day that is none is refused."""
    with SqliteStore(palaver.store) as store:
        work = Session.create(store, "work", owner="planner", workdir="/home/me/Lamps").root
        work.append([UserMessage("a needle"), AssistantMessage("the needle", model="glm-5.2")])
        other = Session.create(store, "other", owner="scout", workdir="/srv/x").root
        other.put_text("one more needle")
    stocked = palaver("import", palaver.file("c.jsonl", rollout()))
    assert stocked.code == 0

    def titles(*words: str) -> list[tuple[str, str]]:
        rows = palaver("search", "needle", *words, "--json").rows()
        return sorted((row["title"], row["role"]) for row in rows)

    both = [("work", "assistant"), ("work", "user")]
    assert titles() == sorted([("other", "user"), *both])
    for words, kept in (
        ("--role assistant", both[:1]),
        ("--folder lamps", both),
        ("--agent scout", [("other", "user")]),
        ("--model GLM", both[:1]),
        ("--tool palaver --agent plan", both),
        ("--tool codex", []),
        ("--since 1d", sorted([("other", "user"), *both])),
        ("--until 2020-01-01", []),
        ("--since 2020-01-01 --role user --folder x", [("other", "user")]),
    ):
        assert titles(*words.split()) == kept, words
    (row,) = palaver("search", "twelve", "--tool", "codex", "--json").rows()
    assert [row["snippet"][start:stop].casefold() for start, stop in row["marks"]] == ["twelve"]
    assert "not a day" in palaver("search", "needle", "--since", "soon").err


def test_filter_that_fits_nothing_is_named(palaver: Palaver) -> None:
    """A role that does not exist is refused; a tool, agent, folder or model that occurs nowhere is in the line that says so."""
    palaver.imported(talk())
    refused = palaver("search", "please", "--role", "asistant")
    assert (refused.code, "neither a role nor a kind" in refused.err) == (Exit.INPUT, True)
    assert palaver("search", "please", "--role", "compaction").code == Exit.OK
    for words in ("--tool nobody", "--agent nobody", "--folder nobody", "--model nobody", "--since 1d --role tool"):
        said = palaver("search", "please", *words.split()).out
        assert said.startswith("Nothing found with --"), words
        assert said.endswith("; there are hits without.\n"), words
    nowhere = palaver("search", "zzzzz", "--tool", "nobody").out
    assert nowhere == "Nothing found with --tool nobody; nor is there anything without.\n"
    assert palaver("search", "zzzzz").out == "Nothing found.\n"
    assert palaver("cost", "--tool", "nobody").out.endswith("No calls match --tool nobody.\n")
    assert palaver("sessions", "--folder", "nobody").out == "No session matches --folder nobody.\n"


def test_archived_sessions_are_marked_and_named(stocked: Palaver) -> None:
    """The list marks them; a search, sums and a filter by what only the archive has end with how many were left out."""
    stocked("import", stocked.file("c.jsonl", rollout()))
    for words in (["search", "please"], ["cost"], ["sessions", "--tool", "codex"]):
        assert "archived" not in stocked(*words).out, words
    assert stocked("sessions", "--archived").out == "No session is archived.\n"
    assert stocked("archive", "talk", "--to", f"file://{stocked.folder}/old").code == Exit.OK
    listed = stocked("sessions", "--wide").out.splitlines()
    assert ["(archived) talk" in line for line in listed[1:3]] == [True, False]
    assert "2 sessions, 1 archived, " in listed[-1]
    assert [row["archived"] for row in stocked("sessions", "--json").rows()] == [True, False]
    (row,) = stocked("sessions", "--archived", "--json").rows()
    assert (row["name"], row["tool"]) == ("talk", "")
    for words, what in (
        (["search", "please"], "searched"),
        (["cost"], "counted"),
        (["sessions", "--tool", "codex"], "listed, as the store has neither their tool nor their model"),
    ):
        assert f"1 archived session was not {what}: `palaver sessions --archived`" in stocked(*words).out, words
    ran = stocked("search", "twelve", "--json")
    assert (len(ran.rows()), "was not searched" in ran.err) == (1, True)
    assert stocked("sessions", "--archived", "--model", "x").code == Exit.USAGE
    assert stocked("archive", "talk", "--restore").code == Exit.OK
    assert "archived" not in stocked("search", "please").out


def test_search_survives_bad_queries(stocked: Palaver) -> None:
    """Ten thousand characters, control characters and brackets are searched for; punctuation alone is refused."""
    for query in (
        "word " * 2_000,
        "x" * 10_000,
        "\x1b[31mred\x07 \x02answer\x03",
        '((((" AND NEAR* ans',
        '"' * 9_999 + "a",
    ):
        assert stocked("search", query, "--json").code == 0, query[:20]
        assert "\x1b" not in stocked("search", query).out
    for query in ("", " ", "?!…", "\x07\x1b", "*" * 10_000):
        refused = stocked("search", query)
        assert (refused.code, "no letter, digit or pictograph" in refused.err) == (2, True), query[:20]


def test_search_line_names_only_what_is_known(palaver: Palaver) -> None:
    """A hit whose message has no time has none on its line; its handle, role and session are there."""
    palaver.imported(json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "blue"}]).encode())
    (row,) = palaver("search", "blue", "--json").rows()
    assert row["at"] == 0
    line = palaver("search", "blue").out.splitlines()[0]
    assert line == f"{row['handle']}  assistant, in {row['title']}"


# --- view, export ---------------------------------------------------------------------------------------------------------------


def test_policy_full_means_one_thing_everywhere(palaver: Palaver) -> None:
    """On a compacted session the command shows by `--policy full` what the library does, and everything by `--whole`; a policy may make less of it."""
    with Session.create(palaver.store, "talk") as session:
        for number in range(40):
            session.root.append(Message(("user", "assistant")[number % 2], f"{number} " + "word " * 200))
        session.root.compaction.commit(session.root.compaction.compose("fold", 3_000))
        library = turns(session.root.view(policy="full", model="gpt-5"))
    assert palaver("view", "talk", "--policy", "full", "--model", "gpt-5", "--json").row()["view"] == library
    assert palaver("view", "talk", "--json").row()["view"] == library
    whole = palaver("view", "talk", "--whole", "--json").row()
    assert (len(whole["view"]), whole["omitted"]) == (40, [])
    assert len(library) < 40
    less = palaver("view", "talk", "--whole", "--policy", "fold", "--budget", 5_000, "--json").row()
    assert len(library) <= len(less["view"]) < 40


def test_view_gives_a_request_that_its_provider_takes(stocked: Palaver) -> None:
    """The keys of the contract; a session that ends on the assistant's words is a history, with --then the next request."""
    for wire in APIS:
        row = stocked("view", "talk", "--wire", wire, "--json").row()
        asked = stocked("view", "talk", "--wire", wire, "--then", "Go on.", "--json").row()

        assert {"request", "tokens", "omitted", "report"} <= set(row), wire
        assert (row["history"], asked["history"]) == (True, False), wire
        assert validate(row["request"], profile(wire), as_history=True) == (), wire
        assert validate(asked["request"], profile(wire), as_history=False) == (), wire
        assert "Go on." in json.dumps(asked["request"]), wire
    assert "It is red." not in stocked("view", "talk:3").out


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
    assert palaver(*words, "--json").row()["tokens"] <= 900
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


def test_export_to_a_file_and_to_standard_output(stocked: Palaver) -> None:
    """Both hold the same bytes; the file is private, and what was there before is replaced whole."""
    for form in export_forms():
        target = stocked.file("out", "old")
        row = stocked("export", "talk", "--to", form, "-o", target, "--json").row()
        piped = stocked("export", "talk", "--to", form, "--json")

        assert piped.out.encode(errors="surrogateescape") == target.read_bytes(), form
        assert json.loads(piped.err) == {**row, "file": None}, form
        assert row["bytes"] == target.stat().st_size, form
        assert all(words in piped.out for words in ("Please look at", "It is red.", "Another answer.")), form
        assert target.stat().st_mode & 0o777 == 0o600, form
        said = stocked("export", "talk", "--to", form, "-o", target).err
        assert f"Wrote {target}, {row['bytes']:,} bytes." in said, form
        assert bool(row.get("advice")) == (form in TOOLS), form
        assert row.get("advice", "") in said, form
        assert sorted(path.name for path in stocked.folder.iterdir() if path.name.startswith(".")) == [], form


# --- doctor ---------------------------------------------------------------------------------------------------------------------


def test_doctor_repairs_into_a_branch(palaver: Palaver) -> None:
    """A file with a fault ends with 1; --repair imports it and writes a branch that is healthy by itself, and ends with 0; the file is as it was."""
    path = palaver.file("bad.jsonl", talk().replace(b'"tool_use_id": "t3"', b'"tool_use_id": "t9"'))
    before = path.read_bytes()
    ran = palaver("doctor", path, "--repair", "--json")
    *_, told = ran.rows()
    branch = told["repaired"]

    assert (palaver("doctor", path).code, ran.code) == (1, 0)
    assert {"orphan_result", "unanswered_call"} <= {one["code"] for one in ran.rows()[0]["findings"]}
    assert palaver("doctor", branch["dialog"]).code == 0
    assert palaver("doctor", branch["session"]).code == 1
    assert path.read_bytes() == before
    said = palaver("doctor", branch["of"], "--repair").out
    assert "Next: palaver export " in said
    assert said.endswith(" --to claude-code --install\n")


def test_doctor_counts_what_is_healthy(stocked: Palaver) -> None:
    """Of several sessions those with faults are printed, and one line counts the others; --all prints all, those with faults first."""
    bad = talk().replace(b'"tool_use_id": "t3"', b'"tool_use_id": "t9"').replace(b"session-1", b"session-2")
    stocked.imported(bad, "bad.jsonl")
    ran = stocked("doctor")
    assert (ran.code, ran.out.count("Healthy.")) == (1, 0)
    assert "2 sessions: 1 with faults, 1 healthy, with " in ran.out.splitlines()[-1]
    whole = stocked("doctor", "--all").out
    assert whole.index("Faults:") < whole.index("Healthy.")
    for row in stocked("sessions", "--json").rows():
        assert stocked("erase", row["session"], "--yes").code == Exit.OK
    assert stocked("doctor").out == "0 sessions: 0 with faults, 0 healthy.\n"


def test_a_search_refuses_a_role_that_is_none(stocked: Palaver) -> None:
    """A mistyped role is named with the roles there are, instead of finding nothing; the kinds of entries count, too."""
    ran = stocked("search", "red", "--role", "usr")
    assert (ran.code, ran.out) == (Exit.INPUT, "")
    assert "'usr' is neither a role nor a kind of entry." in ran.err
    assert "user, assistant, tool" in ran.err
    assert stocked("search", "red", "--role", "assistant", "--json").rows()
    assert stocked("search", "red", "--role", "compaction").code == Exit.OK


def test_export_installs_where_the_tool_looks(
    stocked: Palaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is in the tool's folder and reads as the session, the last line is what to type; a file there is never replaced."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for tool, place in (
        ("claude-code", ".claude/projects"),
        ("codex", ".codex/sessions"),
        ("pi", ".pi/agent/sessions"),
    ):
        ran = stocked("export", "talk", "--to", tool, "--install")
        assert ran.code == 0, ran
        (file,) = (tmp_path / place).rglob("*.jsonl")
        assert "To continue in " in ran.err.splitlines()[-1]
        assert file.stem.endswith(ran.err.split()[-1])
        before = file.read_bytes()
        again = stocked("export", "talk", "--to", tool, "--install")
        assert (again.code, "exists" in again.err, file.read_bytes()) == (Exit.INPUT, True, before)
        file.unlink()
        row = stocked("export", "talk", "--to", tool, "--install", "--json").row()
        assert (row["file"], row["advice"]) == (str(file), ran.err.splitlines()[-1])
        assert stocked("doctor", file).code == 0
    assert stocked("export", "talk", "--to", "markdown", "--install").code == Exit.USAGE
    assert stocked("export", "talk", "--to", "pi", "--install", "-o", "x").code == Exit.USAGE
