"""palaver pin; and in a chat /pin, /recall and /constraints: what stays whatever leaves, and what is brought back."""

import json
import re
from pathlib import Path

import pytest

from palaver import Session, SqliteStore
from palaver.cli.outcome import Exit
from palaver.ids import DialogId
from palaver.log import Handle
from tests.cli.chats import Chats
from tests.cli.commands import Palaver, run


@pytest.fixture
def long(tmp_path: Path) -> Palaver:
    """Give the command line over a store with one long session."""
    command = Palaver(tmp_path)
    with SqliteStore(command.store) as store:
        dialog = Session.create(store, "long", owner="a").root
        dialog.put_text("Make it fast.")
        for turn in range(20):
            dialog.put_text(f"answer-{turn}- " + "word " * 80, role="assistant")
            dialog.put_text(f"go {turn}")
    return command


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Give chats over a store that is not there yet."""
    return Chats(tmp_path)


def root(command: Palaver) -> DialogId:
    """Give the session's first dialog."""
    with SqliteStore(command.store) as store:
        return Session.open("long", store).root.dialog_id


def entries(command: Palaver) -> int:
    """Count the entries of its first dialog."""
    with SqliteStore(command.store) as store:
        return store.last(root(command)).seq + 1


def test_what_is_pinned_stays_and_is_listed(long: Palaver) -> None:
    """A block's handle pins its entry, once; it is in the view behind a compaction; let go, it leaves with the next one."""
    place = Handle(root(long), 3)
    assert long("pin", "long").out == ""
    (row,) = long("pin", "long", f"{place}:0", "--json").rows()
    assert (row["handle"], row["dialog"], row["shown"]) == (str(place), root(long), True)
    assert row["text"].startswith("assistant: answer-1- word")
    before = entries(long)
    again = long("pin", "long", place)
    assert again.out.startswith(f"{place}  assistant: answer-1- ")
    assert entries(long) == before
    long("compact", "long", "--yes", "--budget", 800)
    assert "answer-1-" in long("view", "long").out
    assert "answer-2-" not in long("view", "long").out
    ran = long("pin", "long", place, "--undo")
    assert (ran.code, ran.out) == (Exit.OK, "")
    long("compact", "long", "--undo")
    long("compact", "long", "--yes", "--budget", 800)
    assert "answer-1-" not in long("view", "long").out


def test_what_left_before_is_told(long: Palaver) -> None:
    """A pin brings nothing back: the list says that it is not in the view, and what does."""
    place = Handle(root(long), 3)
    long("compact", "long", "--yes", "--budget", 800)
    assert "it is not in the view: undo the compaction" in long("pin", "long", place).out
    assert long("pin", "long", "--json").row()["shown"] is False
    long("compact", "long", "--undo")
    long("compact", "long", "--yes", "--budget", 800)
    assert long("pin", "long", "--json").row()["shown"] is True


def test_what_another_branch_said_is_pinned_there(long: Palaver) -> None:
    """By default in the dialog to go on with where that holds it, else in its own; one that is named must hold it."""
    with SqliteStore(long.store) as store:
        fork = Session.open("long", store).root.fork()
        fork.put_text("only here")
        place = fork.messages.handle(len(fork.messages) - 1)
    inherited = Handle(root(long), 1)
    assert long("pin", "long", place, "--json").row()["dialog"] == fork.dialog_id
    assert long("pin", "long").out == ""
    assert long("pin", "long", inherited, "--json").row()["dialog"] == root(long)
    places = [row["handle"] for row in long("pin", "long", inherited, "--dialog", fork.dialog_id, "--json").rows()]
    assert places == [str(place), str(inherited)]
    refused = long("pin", "long", place, "--dialog", root(long))
    assert refused.code == Exit.INPUT
    assert "does not hold" in refused.err


def test_what_was_erased_is_listed_as_that(long: Palaver) -> None:
    """The place of a pin on what is gone for good, without its words; and it can be let go."""
    place = Handle(root(long), 3)
    long("pin", "long", place)
    assert run("erase", long.store, "--entry", place, "--yes").code == Exit.OK
    ran = long("pin", "long")
    assert (ran.code, "answer-1-" in ran.out) == (Exit.OK, False)
    assert long("pin", "long", place, "--undo").code == Exit.OK
    assert long("pin", "long").out == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("pin nothing", Exit.MISSING),
        ("pin long nonsense", Exit.INPUT),
        ("pin long 000000000000:1", Exit.MISSING),
        ("pin long HERE:900", Exit.MISSING),
        ("pin long HERE:2 --undo", Exit.INPUT),
        ("pin long HERE:41", Exit.INPUT),
        ("pin long --undo", Exit.USAGE),
        ("pin long HERE:2 --dialog ffffff", Exit.MISSING),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(long: Palaver, words: str, code: int) -> None:
    """The documented number, one line, and a log as it was; entry 41 is a label, which no view shows."""
    here = root(long)
    long("label", "long", f"{here}:1", "name")
    before = entries(long)
    for form in ([], ["--json"]):
        ran = long(*words.replace("HERE", here[:12]).split(), *form)
        assert ran.code == code, ran
        assert "Traceback" not in ran.err
    assert entries(long) == before


def test_the_help_names_them() -> None:
    """The command with its options, in its own help and in the list of commands."""
    assert "--undo" in run("pin", "--help").out
    assert re.search(r"^  pin +Keep an entry in every view", run("--help").out, re.MULTILINE)


# --- in a chat ----------------------------------------------------------------------------------------------------------------


def test_in_a_chat_constraints_are_listed_and_changed(chats: Chats) -> None:
    """By `add` and `remove`, by number or by the sentence; what is wrong is told, and the chat goes on."""
    lines = [
        "/constraints",
        "You must never push.",
        "/constraints add Write in   English.",
        "/constraints remove 1",
        "/constraints remove Write in English.",
        "/constraints remove 7",
        "/constraints add",
        "/constraints drop 1",
        "and?",
    ]
    ran = chats.pipe("\n".join([*lines, ""]), "-m", chats.script("ok", "Still here."), "-s", "x")
    shown = [re.sub(r"  \[.*", "", line) for line in ran.out.splitlines()]
    assert shown == [
        "ok",
        "1. You must never push.",
        "2. Write in English.",
        "1. Write in English.",
        "You said nothing that must or must not be.",
        "Still here.",
    ]
    assert "Nothing was said yet" in ran.err
    assert "'7'" in ran.err
    assert ran.err.count("/constraints takes nothing, `add TEXT`, or `remove N`.") == 2
    assert ran.code == 0


def test_in_a_chat_a_message_is_pinned_and_stays(chats: Chats) -> None:
    """Without a handle the newest messages are shown with theirs; the pinned one stays in the view, and what left is recalled whole."""
    answers = [f"answer-{number}- {'word ' * 200}" for number in range(6)]
    asks = "".join(f"q{number}\n" for number in range(6))
    model = chats.script(*answers)
    first = chats.pipe(f"{asks}/pin\n", "-m", model, "-s", "x")
    assert "Nothing is pinned." in first.out
    places = dict(reversed(one) for one in re.findall(r"^(\S+:\d+)  assistant: (answer-\d-)", first.out, re.MULTILINE))
    kept, left = places["answer-3-"], places["answer-2-"]
    lines = [
        f"/pin {kept}",
        "/compact",
        "/view",
        "/pin",
        f"/recall {left}",
        f"/pin {kept} --undo",
        f"/pin {left} --undo",
    ]
    ran = chats.pipe("\n".join([*lines, "/recall", "/pin a b", "/pin --undo", ""]), "-m", model, "-s", "x")
    assert f"{kept} is pinned; /pin {kept} --undo lets it go." in ran.err
    view, _, rest = ran.out.partition("tokens (estimated)")
    assert ("answer-3-" in view, "answer-2- word word word" in view) == (True, False)
    assert f"{kept}  assistant: answer-3- " in rest
    assert answers[2].strip() in rest
    assert f"{kept} is pinned no longer." in ran.err
    assert f"{left} is not pinned" in ran.err
    assert "/recall needs a handle." in ran.err
    assert ran.err.count("/pin takes one handle") == 2


def test_in_a_chat_as_json_all_of_it_is_objects(chats: Chats) -> None:
    """Every line of standard output, whatever the command."""
    lines = "You must never push.\n/constraints\n/pin\n/recall nonsense\n/help\n"
    ran = chats.pipe(lines, "-m", chats.script("ok"), "-s", "x", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert any("1. You must never push." in str(row) for row in rows)
    assert any(row["type"] == "error" and "nonsense" in str(row) for row in rows)


def test_on_a_terminal_they_are_in_the_help_and_work(chats: Chats) -> None:
    """Typed at the keyboard: help lists them, a sentence is put on the list, a message is pinned by the handle that is shown."""
    with chats.terminal("-m", chats.script("A heron."), "-s", "bird") as here:
        here.type("What is that?")
        here.expect("A heron.")
        here.type("/help")
        for usage in ("/recall HANDLE", "/pin [HANDLE] [--undo]", "/constraints [add TEXT | remove N]"):
            here.expect(usage)
        here.type("/constraints add Say it in Latin.")
        here.expect("1. Say it in Latin.")
        here.type("/pin")
        here.expect("Nothing is pinned.")
        shown = here.expect("assistant: A heron.")
        place = re.findall(r"\w+:\d+", shown)[-1]
        here.type(f"/pin {place}")
        here.expect(f"{place} is pinned")
        here.type(f"/recall {place}")
        here.expect("A heron.")
        here.type("/quit")
        assert here.ended() == 0
