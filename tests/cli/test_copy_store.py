"""palaver copy-store: from a file into another, and into PostgreSQL."""

from pathlib import Path

import pytest

from palaver.cli.outcome import Exit
from palaver.store import open_store
from tests import postgres
from tests.cli.commands import Palaver, run


def test_a_store_is_copied_and_proved(stocked: Palaver, tmp_path: Path) -> None:
    """The counts and both digests are told, the exit code is 0, and a second copy writes nothing."""
    target = tmp_path / "copy.db"
    ran = run("copy-store", stocked.store, target, "--json")
    assert ran.code == Exit.OK
    told = ran.row()
    assert told["equal"]
    assert told["digest"]["from"] == told["digest"]["to"]
    assert told["written"] == told["entries"] > 0
    again = run("copy-store", stocked.store, target)
    assert again.code == Exit.OK
    assert "equal" in again.out.splitlines()
    assert "; entries written 0" in again.out
    assert run("sessions", "--json", "--store", target).out == run("sessions", "--json", "--store", stocked.store).out


def test_a_difference_is_an_exit_code(stocked: Palaver, tmp_path: Path) -> None:
    """A target that went on by itself is not equal: exit code 1, and the place is told."""
    target = tmp_path / "copy.db"
    run("copy-store", stocked.store, target)
    with open_store(str(target)) as store:  # type: ignore[attr-defined]
        (record,) = store.sessions()
        (node,) = store.nodes(record.session_id)[:1]
        store.update_session(record.session_id, metadata={"other": True})
        last = store.last(node.dialog_id)
        store.take_entries(
            node.dialog_id,
            [(last._replace(seq=last.seq + 1, total=last.total + last.size), store.body(node.dialog_id, last.seq))],
        )
    ran = run("copy-store", stocked.store, target)
    assert ran.code == Exit.FOUND
    assert "NOT equal" in ran.out
    assert node.dialog_id in ran.out


@pytest.mark.parametrize(
    ("source", "target", "code"), [("missing.db", "b.db", Exit.MISSING), ("memory:", "b.db", Exit.INPUT)]
)
def test_what_cannot_be_copied_is_told(tmp_path: Path, source: str, target: str, code: Exit) -> None:
    """A store that is not there, or would not last, is told in words; no target is made for it."""
    given = source if ":" in source else tmp_path / source
    assert run("copy-store", given, tmp_path / target).code == code
    assert list(tmp_path.iterdir()) == []


def test_a_store_moves_to_postgresql_and_back(
    stocked: Palaver, tmp_path: Path, postgres_server: postgres.Server
) -> None:
    """Every command works on the address of a database; a copy there and back is the store it was."""
    url = postgres_server.url()
    there = run("copy-store", stocked.store, url, "--json")
    back = run("copy-store", url, tmp_path / "back.db", "--json")
    assert (there.code, back.code) == (Exit.OK, Exit.OK)
    assert there.row()["digest"] == back.row()["digest"]
    for words in (("sessions", "--json"), ("search", "the", "--json"), ("doctor", "--json"), ("stats", "--json")):
        here = run(*words, "--store", stocked.store)
        at_the_server = run(*words, "--store", url)
        assert (at_the_server.code, at_the_server.err) == (here.code, here.err)
    assert run("sessions", "--json", "--store", url).out == run("sessions", "--json", "--store", stocked.store).out
