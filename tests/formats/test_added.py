"""Formats that packages add under the entry point `palaver.formats`."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.errors import UnsupportedTranscript
from palaver.formats import detect, open_source
from tests.formats.reading import written
from tests.formats.samples import chat, document

MODULE = """
class Chatter:
    name, title, signs, series = "chatter", "Chatter", "text that begins with chatter:", False

    def sniff(self, source):
        return 1.0 if source.opening.text.startswith(("chatter:", "[")) else 0.0


FORMAT = Chatter()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package with a format."""
    about = tmp_path / "chatter_format-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: chatter-format\nVersion: 1.0\n", "utf-8")
    (about / "entry_points.txt").write_text("[palaver.formats]\nchatter = chatter_format:FORMAT\n", "utf-8")
    (tmp_path / "chatter_format.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_added_format_reads_what_no_other_does(installed: Path) -> None:
    """It is asked after the built-in formats, and errors list it."""
    with open_source(written(installed, b"chatter: hello")) as source:
        assert detect(source).name == "chatter"
    with open_source(written(installed, document(chat()))) as source:
        assert detect(source).name == "chat-completions"
    with open_source(written(installed, b"nothing")) as source, pytest.raises(UnsupportedTranscript) as error:
        detect(source)
    assert "Chatter (text that begins with chatter:)" in error.value.tried


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b"\x89PNG\r\n\x1a\n", "it is a PNG image"),
        (b"%PDF-1.7\n", "it is a PDF document"),
        (b"PAR1", "it is a Parquet file"),
        ("[]".encode("utf-16"), "it is text in UTF-16"),
        (b"\x01", "it is binary, or not UTF-8 text"),
    ],
)
def test_refusal_says_what_a_file_is(tmp_path: Path, data: bytes, looks: str) -> None:
    """A file that is not text is called by its kind, and only text in another encoding is to be converted."""
    with (
        open_source(written(tmp_path, data + bytes(range(256)) * 4)) as source,
        pytest.raises(UnsupportedTranscript, match=looks) as error,
    ):
        detect(source)
    assert ("iconv" in (error.value.hint or "")) == ("UTF-16" in looks)
