"""Whatever a store holds, and whatever becomes of it, the page says so in words and does not go on loading."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from palaver import Session, SqliteStore
from palaver.log.entries import Inbox
from palaver.messages import UserMessage
from palaver.session import Dialog
from tests.explorer.browser import Tab
from tests.explorer.running import explorer, looked_at
from tests.store.backends import SqliteBackend

LARGE = 50_000_000
BRANCHES = 2_000


def _stocked(store: SqliteStore) -> dict[str, Dialog]:
    names = ("empty", "one", "large", "damaged", "branches", "erased", "queued")
    found = {name: Session.create(store, name).root for name in names}
    found["queued"].record(Inbox(message=UserMessage(content="Are you there?")), beside=True)
    for name in ("one", "damaged", "branches", "erased"):
        found[name].put_text("The only thing that was said.")
    found["damaged"].put_text("What is whole.")
    found["large"].put_text("x" * LARGE)
    for _ in range(BRANCHES):
        found["branches"].fork()
    return found


def test_each_state_of_a_session_is_said_in_words(tmp_path: Path) -> None:
    """Nothing was said, no calls, one entry, a very long one, a damaged one, one that waits, many branches, and addresses of nothing."""
    with looked_at(tmp_path, _stocked) as (process, tab, dialogs):
        at = {name: f"#/s/{dialog.session_id}" for name, dialog in dialogs.items()}
        SqliteBackend(tmp_path / "store.db").damage(dialogs["damaged"].dialog_id, 0)
        assert "Nothing was said yet." in tab.go(at["empty"])
        for screen in ("/call/1", "/cost"):
            assert "call" in tab.go(at["one"] + screen)
        assert "The only thing that was said." in tab.go(f"{at['one']}?e=0")
        assert "Show all of this entry" in tab.go(at["large"])
        assert "Show more" in tab.go(f"{at['large']}/log?e=0")
        assert tab.ask("document.body.innerText.length") < LARGE / 100
        for screen in ("", "/log"):
            assert "damaged" in tab.go(f"{at['damaged']}{screen}?e=0")
            assert "What is whole." in tab.go(f"{at['damaged']}{screen}?e=1")
        queued = tab.go(f"{at['queued']}/log")
        assert all(words in queued for words in ("Are you there?", "1 waiting message", "waiting\n"))
        assert f"{BRANCHES:,} other branches" in tab.go(at["branches"])
        assert tab.ask("document.querySelectorAll('*').length") < 2_000
        for nothing in ("#/s/none", f"{at['one']}?d=none", f"{at['one']}/call/99", f"{at['one']}/compare?a=1&b=99"):
            assert "Loading" not in tab.go(nothing)
        assert "The only thing" in tab.go(at["one"])
        with SqliteStore(tmp_path / "store.db") as store:
            dialog = Session.open(store, "one").root
            dialog.put_text("word " * 900)
            dialog.put_text("Said meanwhile.")
            _read_again(tab, "Said meanwhile.")
            dialog.compaction.commit(dialog.compaction.compose("fold", 300))
            _read_again(tab, "1 compaction")
            with store.transaction():
                dialog.put_text("A write on its way, for which no reader waits.")
                assert "The only thing" in tab.go(at["erased"])
            Session.open(store, "erased").erase()
        tab.until("document.querySelector('header').innerText.includes('erased')")
        second = tab.ask("location.href").replace(at["erased"], f"{at['one']}?e=0")
        tab.open(second)
        assert "The only thing" in tab.text()
        link = tab.ask("location.href")
        process.kill()
        process.wait()
        tab.until("document.querySelector('header').innerText.includes('The server has ended.')")
        assert "palaver open" in tab.go(at["empty"])
        _open_again(tab, link, tmp_path / "store.db")


def _open_again(tab: Tab, link: str, store: Path) -> None:
    """Follow a link of a server that has ended: to another server without its login, then with the address that `palaver open` gives for it."""
    with explorer(link, "--store", store, login=False) as (_, page):
        tab.open(link.replace(urlsplit(link).netloc, page.host))
        assert "not logged in" in tab.text()
        tab.open(page.address)
        assert "The only thing" in tab.text()
        assert tab.ask("location.hash") == f"#{urlsplit(link).fragment}"


def _read_again(tab: Tab, words: str) -> None:
    """Wait until the page says that the session has changed, read it again, and check what is new."""
    tab.until("document.querySelector('header [role=status] button')")
    assert words not in tab.text()
    tab.ask("document.querySelector('header [role=status] button').click()")
    assert words in tab.settle()
