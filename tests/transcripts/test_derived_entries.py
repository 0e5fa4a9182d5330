"""What a reader derives from a whole file changes as the file grows, and must not make the session branch."""

from __future__ import annotations

from pathlib import Path

from palaver.store.memory import MemoryStore
from palaver.transcripts import Importer
from palaver.view import fold
from tests.formats.transcripts import Claude, call


def test_a_new_tool_in_a_grown_file_makes_no_branch(tmp_path: Path) -> None:
    """A grown file that calls a tool for the first time adds a declaration of all tools, in the same dialog, once."""
    session = Claude()
    session.user("u1", "Go.")
    session.model("a1", "m1", call("t1", "Bash"))
    session.result("r1", "t1")
    path = tmp_path / "session.jsonl"
    path.write_bytes(session.bytes())
    importer = Importer(MemoryStore(), keep_source=False)
    assert [done.dialogs for done in importer.import_path(path)] == [1]
    session.model("a2", "m2", call("t2", "Read"))
    session.result("r2", "t2")
    path.write_bytes(session.bytes())
    (grown,) = importer.import_path(path)
    assert (grown.outcome, grown.dialogs, grown.entries) == ("grown", 1, 3)
    (again,) = importer.import_path(path)
    assert (again.outcome, again.dialogs, again.entries) == ("unchanged", 1, 0)
    assert grown.main is not None
    view = fold(importer.store, grown.main)
    assert [tool.name for tool in view.tools] == ["Bash", "Read"]
    assert len(view.exchanges) == 3
