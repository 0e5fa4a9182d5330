"""A turn one of whose entries cannot be read any more: what it did is not guessed, and the error says how to go on."""

from pathlib import Path

import pytest

from palaver import tool
from palaver.errors import ModelCallFailed, RequestRefused, StoreDamaged
from palaver.store import SqliteStore
from tests.agent.helper import calling, kinds, scripted
from tests.store.backends import SqliteBackend


@pytest.mark.parametrize("how", ["damage", "lose"])
def test_a_turn_with_a_spoilt_entry_is_gone_on_with_before_it(tmp_path: Path, how: str) -> None:
    """The result of a call is spoilt or lost on the disk: no tool runs again, the error names the entry, and a rewind before it goes on."""
    ran: list[str] = []

    @tool
    def pay(sum: str) -> str:  # noqa: A002 - the tool's word
        """Pay."""
        ran.append(sum)
        return "paid"

    script = [calling("pay", "", "c1", sum="7"), RequestRefused("not now", status=400), "Done."]
    backend = SqliteBackend(tmp_path / "store.db")
    store = backend.open()
    assert isinstance(store, SqliteStore)
    agent, _ = scripted(script, tools=[pay], store=store)
    agent.receive("Pay.")
    with pytest.raises(ModelCallFailed):
        agent.respond()
    dialog = agent.current_dialog
    seq = kinds(dialog).index("tool")
    getattr(backend, how)(dialog.dialog_id, seq)

    with pytest.raises(StoreDamaged) as refused:
        agent.respond()
    assert refused.value.place == f"{dialog.dialog_id[:12]}:{seq}"
    before = f"{dialog.dialog_id[:12]}:{seq - 1}"
    assert f"--to {before}" in str(refused.value)
    agent.adopt("back", dialog.rewind(before).apply())
    agent.receive("Leave it.")
    assert agent.respond("back").content == "Done."
    assert ran == ["7"]
    store.close()
