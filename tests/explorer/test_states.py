"""Whatever a store holds, and whatever becomes of it, the page says so in words and does not go on loading."""

from __future__ import annotations

from pathlib import Path

from palaver import Session, SqliteStore
from palaver.session import Dialog
from tests.explorer.running import looked_at
from tests.store.backends import SqliteBackend

LARGE = 5_000_000


def _stocked(store: SqliteStore) -> dict[str, Dialog]:
    found = {name: Session.create(store, name).root for name in ("empty", "one", "large", "damaged", "branches")}
    for name in ("one", "damaged", "branches"):
        found[name].put_text("The only thing that was said.")
    found["damaged"].put_text("What is whole.")
    found["large"].put_text("x" * LARGE)
    for _ in range(300):
        found["branches"].fork()
    return found


def test_each_state_of_a_session_is_said_in_words(tmp_path: Path) -> None:
    """Nothing was said, no calls, one entry, a very long one, a damaged one, many branches, and addresses of nothing."""
    with looked_at(tmp_path, _stocked) as (process, tab, dialogs):
        at = {name: f"#/s/{dialog.session_id}" for name, dialog in dialogs.items()}
        SqliteBackend(tmp_path / "store.db").damage(dialogs["damaged"].dialog_id, 0)
        assert "Nothing was said yet." in tab.go(at["empty"])
        for screen in ("/call/1", "/cost"):
            assert "call" in tab.go(at["one"] + screen)
        assert "The only thing that was said." in tab.go(f"{at['one']}?e=0")
        assert "Show more" in tab.go(f"{at['large']}?e=0")
        assert tab.ask("document.body.innerText.length") < LARGE / 10
        assert "damaged" in tab.go(f"{at['damaged']}?e=0")
        assert "What is whole." in tab.go(f"{at['damaged']}?e=1")
        assert "300 " in tab.go(at["branches"])
        assert tab.ask("document.querySelectorAll('*').length") < 2_000
        for nothing in ("#/s/none", f"{at['one']}?d=none", f"{at['one']}/call/99", f"{at['one']}/compare?a=1&b=99"):
            assert "Loading" not in tab.go(nothing)
        with SqliteStore(tmp_path / "store.db") as store:
            Session.open(store, "one").root.put_text("Said meanwhile.")
        tab.go(at["one"])
        assert "Said meanwhile." in tab.reload()
        process.kill()
        process.wait()
        assert "The server has ended." in tab.go(at["empty"])
