"""Exporting: a file that only its owner reads, whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.dialects import names, read_messages
from palaver.errors import InvalidInput, NotFound
from palaver.log import ToolSpec
from palaver.log.entries import Toolset
from palaver.messages import (
    ImageContent,
    Media,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
)
from palaver.providers import APIS
from palaver.testing.logs import Log, model, result, system, user
from palaver.transcripts import export, partial_path, write_file
from palaver.transcripts.exporting import TOOLS, export_forms

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""


def talk() -> Log:
    """Return a session with a call."""
    log = Log()
    log.put(system("Be brief."), user("go"), model("I look.", "a"), result("a"), model("Done."))
    log.store.update_session(log.session, root=log.dialog)
    return log


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


@pytest.mark.parametrize("tool", TOOLS)
def test_dropped_usage_is_reported(tool: str) -> None:
    """A tool's transcript has no usage of other agents' calls: the report says so where the log has usage, and only there."""
    log = talk()
    assert "usage" not in {change.what for change in export(log.store, log.session, tool).report}
    log.put(model("More.").model_copy(update={"usage": Usage(input_tokens=9)}))
    assert "usage" in {change.what for change in export(log.store, log.session, tool).report.lost()}


@pytest.mark.parametrize("to", names())
def test_list_of_a_dialect_reads_back(to: str) -> None:
    """The instructions, the texts, the call, its result and an image, whose bytes are in the store, come back from each dialect."""
    log = talk()
    log.put(UserMessage.with_images("look", [PIXEL]))
    done = export(log.store, log.session, to)
    body = json.loads(b"".join(done.pieces))
    items = body[APIS[to].dialect.items] if to in APIS else body
    contents = [content for message in read_messages(items, to) for content in message.contents]
    texts = [content.content for content in contents if isinstance(content, TextContent)]
    assert texts[-4:] == ["go", "I look.", "Done.", "look"]
    assert "Be brief." in json.dumps(body)
    assert [content.name for content in contents if isinstance(content, ToolCallContent)] == ["shell"]
    assert [content.text() for content in contents if isinstance(content, ToolResultContent)] == ["done"]
    assert [image.to_base64()[0][0] for image in contents if isinstance(image, ImageContent)] == [PIXEL]
    assert not list(done.report.lost())


@pytest.mark.parametrize("to", names())
def test_result_of_several_texts_reads_back_as_text(to: str) -> None:
    """A result of two texts is not read back as JSON that lists them."""
    log = Log()
    said = ToolResultContent(id="a", name="shell", content=(TextContent("one"), TextContent("two")))
    log.put(user("go"), model("", "a"), ToolMessage(contents=(said,)), model("Done."))
    log.store.update_session(log.session, root=log.dialog)
    body = json.loads(b"".join(export(log.store, log.session, to).pieces))
    read = read_messages(body[APIS[to].dialect.items] if to in APIS else body, to)
    (result,) = [content for message in read for content in message.contents if isinstance(content, ToolResultContent)]
    assert result.text().split() == ["one", "two"]


@pytest.mark.parametrize("to", names())
def test_lost_image_of_a_list_is_a_text(to: str) -> None:
    """G3: where the bytes of an image are not in the store, the list has a text in its place, and the report says why."""
    log = Log()
    log.put(UserMessage.with_images("look", [Media(media_type="image/png", digest="0" * 64, size=9)]))
    log.store.update_session(log.session, root=log.dialog)
    done = export(log.store, log.session, to)
    assert b"[image left out: its bytes cannot be had: NotFound" in b"".join(done.pieces)
    assert [change.what for change in done.report] == ["image"]


def test_tools_stay_out_of_a_plain_list() -> None:
    """A list of an API has the tools beside it; one of a framework has only messages, and the report says so."""
    log = talk()
    log.put(Toolset(tools=(ToolSpec(name="shell"),)))
    body = json.loads(b"".join(export(log.store, log.session, "openai-chat").pieces))
    assert body["tools"][0]["function"]["name"] == "shell"
    assert [change.what for change in export(log.store, log.session, "vercel-ui").report] == ["tools"]


@pytest.mark.parametrize("to", export_forms())
def test_other_dialogs_are_reported(to: str) -> None:
    """A format of one dialog names the session's others in one change; a bundle has them all."""
    log = talk()
    branches = [log.fork().dialog, log.fork().dialog]
    changes = [change for change in export(log.store, log.session, to).report if "other dialog" in change.what]
    assert len(changes) == (to != "bundle")
    assert all(branch[:12] in change.why for change in changes for branch in branches)


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
