"""Exporting: a file that only its owner reads, whole or not at all; a page that is only read."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.messages import ImageContent, Message, TextContent, ThinkingContent, ToolCallContent
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts import export, partial_path, write_file


def talk() -> Log:
    """Return a session with a call."""
    log = Log()
    log.put(system("Be brief."), user("go"), model("I look.", "a"), result("a"), model("Done."))
    log.store.update_session(log.session, root=log.dialog)
    return log


class Read(HTMLParser):
    """What a browser makes of a page: the addresses that it would load, and the text."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.sources: list[str | None] = []
        self.said: list[str] = []

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element."""
        self.sources += [value for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.said.append(data)


def test_unknown_form_or_session_is_not_found() -> None:
    """The error names the forms; a session without a dialog says so."""
    log = talk()
    with pytest.raises(NotFound, match="anthropic"):
        export(log.store, log.session, "antropic")
    with pytest.raises(NotFound):
        export(log.store, Log().session, "markdown")
    log.store.update_session(log.session, root=None)
    with pytest.raises(InvalidInput, match="no dialog"):
        export(log.store, log.session, "markdown")


def test_html_page_runs_and_loads_nothing() -> None:
    """What was said is text wherever it stands, control and bidirectional characters are numbers, and images are inside."""
    hostile = "</pre></p>'\"><script src=http://x></script>&lt;\x1b[2J\u202e"
    png = b"\x89PNG\r\n\x1a\n"
    log = talk()
    call = ToolCallContent(id=hostile, name=hostile, args={"to": hostile})
    log.put(Message(contents=(TextContent(hostile), ImageContent([png, "http://x/" + hostile]))))
    log.put(Message(role="assistant", contents=(ThinkingContent(hostile), call)), result(hostile, hostile))
    log.store.update_session(log.session, name=hostile, workdir=hostile)
    text = b"".join(export(log.store, log.session, "html").pieces).decode()

    read = Read()
    read.feed(text)
    assert read.sources == [f"data:image/png;base64,{base64.b64encode(png).decode()}"]
    assert "<script" not in text
    assert not set("\x1b\u202e") & set(text)
    assert "".join(read.said).count(hostile.replace("\x1b", "[U+001B]").replace("\u202e", "[U+202E]")) >= len(
        ["title", "h1", "folder", "words", "address", "thinking", "call", "id", "id of the result", "result"]
    )


def test_export_is_private_and_appears_whole(tmp_path: Path) -> None:
    """Only the owner may read it, also where a file was that others could read; nothing else is left beside it."""
    target = tmp_path / "out.md"
    target.write_text("old")
    target.chmod(0o644)
    noted: list[bool] = []
    assert write_file(target, iter([b"new ", b"words"]), lambda path: noted.append(path.exists())) == 9
    assert target.read_bytes() == b"new words"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert noted == [False], "the unfinished file is noted before it exists"
    assert [path.name for path in tmp_path.iterdir()] == ["out.md"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failed_export_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    """An interrupt, too, leaves no half file."""
    target = tmp_path / "out.md"
    target.write_text("old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise error

    with pytest.raises(error):
        write_file(target, pieces())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.md", "old")]


def test_killed_export_leaves_one_file_that_is_known(tmp_path: Path) -> None:
    """It lies where `partial_path` says, only the owner may read it, and the next export takes it away."""
    target = tmp_path / "out.md"
    child = os.fork()
    if child == 0:
        write_file(target, iter(lambda: os._exit(9) if partial_path(target).exists() else b"half", None))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert list(tmp_path.iterdir()) == [partial_path(target)]
    assert stat.S_IMODE(partial_path(target).stat().st_mode) == 0o600
    write_file(target, [b"whole"])
    assert [path.name for path in tmp_path.iterdir()] == ["out.md"]
