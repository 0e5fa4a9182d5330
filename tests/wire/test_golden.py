"""The parity corpus: common histories, each compiled for four providers, compared with files that were read."""

from tests.wire import golden
from tests.wire.histories import HISTORIES


def test_every_history_is_compiled_as_it_was() -> None:
    """R243: bodies and reports are those of the golden file, byte for byte, the order of keys included."""
    for name in HISTORIES:
        path = golden.FOLDER / f"{name}.json"
        assert golden.written(golden.snapshot(name)) == path.read_text(encoding="utf-8"), name


def test_there_is_a_golden_file_for_every_history_and_no_other() -> None:
    """Files and histories go together."""
    assert {path.stem for path in golden.FOLDER.glob("*.json")} == set(HISTORIES)
