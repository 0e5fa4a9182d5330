"""Compactions, labels and pins beside a conversation that goes on in another process: nothing interleaves silently, and no turn fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from palaver import Session
from palaver.log import Compaction, decode_entry
from palaver.testing.log_strategies import assert_closed
from palaver.testing.tape import entries_in
from palaver.wire import PROFILES
from tests import postgres

_SPEAKER = r"""
import sys
from palaver import Session
from palaver.testing.logs import model, result, user
turns, dialog = int(sys.argv[2]), Session.open("shared", sys.argv[1]).root
for number in range(turns):  # no reload, no retry: what stands beside the turn is no conflict
    dialog.append(user(f"question {number} " + "with many words " * 20))
    dialog.append(model(f"look {number}", f"c{number}", response=f"r{number}"))
    dialog.append(result(f"c{number}", f"line {number} of a file\n" * 60))
    dialog.append(model(f"found {number}", response=f"s{number}"))
    print(number, flush=True)
"""

_COMPACTOR = """
import sys
from palaver import Session
from palaver.errors import Conflict, InfeasibleBudget, InvalidInput
dialog, made, told = Session.open("shared", sys.argv[1]).root, 0, 0
print("ready", flush=True)
for line in sys.stdin:
    dialog.reload()
    if not len(dialog.messages):
        continue
    dialog.label(dialog.messages.handle(0), f"label {made}")
    try:
        dialog.commit(dialog.compose("default", 700, model="gpt-4o"), margin=0)
        made += 1
    except (InfeasibleBudget, InvalidInput):
        pass
    except Conflict:
        told += 1
print(made, told, flush=True)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the address of an empty store of each kind that processes share."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: postgres.Server = request.getfixturevalue("postgres_server")
    return server.url()


@pytest.mark.parametrize(
    ("compactors", "turns"), [(1, 5), pytest.param(3, 200, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
def test_compactions_land_beside_a_conversation_that_goes_on(url: str, compactors: int, turns: int) -> None:
    """The speaker never meets a conflict; every word of his is there in its order; of two compactions at once one is told; all views hold."""
    with Session.create(url, "shared") as session:
        session.root.put_text("Be brief.", role="system")
        root = session.root.dialog_id
    pipe = subprocess.PIPE
    others = [
        subprocess.Popen([sys.executable, "-c", _COMPACTOR, url], stdin=pipe, stdout=pipe, text=True)
        for _ in range(compactors)
    ]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
    with subprocess.Popen([sys.executable, "-c", _SPEAKER, url, str(turns)], stdout=pipe, text=True) as speaker:
        assert speaker.stdout is not None
        for _ in speaker.stdout:  # each turn sets the others going, while the next one is under way
            for other in others:
                assert other.stdin is not None
                other.stdin.write("now\n")
                other.stdin.flush()
    said = [tuple(map(int, other.communicate()[0].split())) for other in others]
    assert speaker.returncode == 0
    made, told = (sum(numbers) for numbers in zip(*said, strict=True))
    with Session.open("shared", url, verify=True) as session:
        dialog = session.dialog(root)
        texts = [message.text_content() for message in dialog.messages.bare() if not message.tool_results()]
        wanted = [
            text
            for n in range(turns)
            for text in (f"question {n} " + "with many words " * 20, f"look {n}", f"found {n}")
        ]
        assert texts == ["Be brief.", *wanted]
        kinds = [decode_entry(body) for _, body in dialog.store.bodies(root)]
        assert sum(isinstance(entry, Compaction) for entry in kinds) == made
        assert made > 0
        assert len(session.dialogs) == 1, "a branch that nobody asked for"
        for seq in (seq for seq, entry in enumerate(kinds) if isinstance(entry, Compaction)):
            assert_closed(dialog.view(at=seq))
        for name in PROFILES:
            dialog.request(name, "gpt-4o" if "openai" in name else "some-model", max_tokens=100)
        sys.stdout.write(f"{entries_in(session.store)} entries, {made} compactions beside {turns} turns, {told} told\n")
