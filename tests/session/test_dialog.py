"""Putting things into a dialog and looking at them: scenarios A6 to A8, conflicts C12, C14, C19 and C20."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from palaver import (
    ImageContent,
    Message,
    Prompt,
    Role,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.errors import InvalidInput, InvalidMessage, MissingFile
from palaver.messages import InvokeCost, Media, Modalities
from palaver.providers import APIS
from palaver.session import Dialog, Session

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_arguments_of_the_wrong_type_are_named(dialog: Dialog) -> None:
    """R49, R50: what must be a mapping, a text or a prompt and is not, and variables that are missing, are named; nothing is appended."""
    before = dialog.put_text("before")
    prompt = Prompt(path="p", prompt="x")
    with pytest.raises(InvalidInput, match="b"):
        dialog.put_prompt(Prompt(path="p", prompt="{a} {b}"), {"a": 1})
    with pytest.raises(TypeError, match="prompt_args"):
        dialog.put_prompt(prompt, ["x"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text"):
        dialog.put_text(b"x")  # type: ignore[arg-type]
    assert dialog.messages == [before]


def test_put_text_is_verbatim_and_resets_what_governs(dialog: Dialog) -> None:
    """A6, C12, R42, R51, law 12: the text is stored as it is, braces too; what governs then is temporary, without tools and parser."""
    for text in ("What is the capital of France?", 'json {"a": 1} {x}', "", "{{twice}} }"):
        dialog.put_prompt(Prompt(path="p", prompt="x", parser=len, function_list=["search"]))
        assert dialog.put_text(text).content == text
        top = dialog.top_prompt
        assert top is not None
        assert (top.parser, top.function_list, top(), top.is_temporary) == (None, (), text, True)


def _image(message: Message | None, block: int = 0) -> Media:
    assert message is not None
    shown = message.contents[block]
    assert isinstance(shown, ImageContent)
    return shown.images[0]


def test_put_image_accepts_every_form(dialog: Dialog, tmp_path: Path) -> None:
    """A7, R43, R53, R54, R56: every form gives an image message with its true type; the caption is kept, the dialog's id stamped, the top prompt left."""
    path = tmp_path / "screenshot.png"
    path.write_bytes(PNG)
    encoded = base64.b64encode(PNG).decode()
    dialog.put_text("before")
    top = dialog.top_prompt
    for form in (str(path), path, Image.open(path), encoded, PNG, f"data:image/jpeg;base64,{encoded}"):
        put = dialog.put_image(form, caption="Current state of the UI")
        assert put.modality is Modalities.IMAGE
        assert put.metadata == {"caption": "Current state of the UI", "dialog_id": dialog.dialog_id}
        assert dialog.top_prompt is top
        assert _image(put, 1).media_type == "image/png"
        assert _image(dialog.tail, 1).data


def test_the_type_is_that_of_the_bytes(dialog: Dialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R54, R57: a web address is an image without bytes; a GIF in a file called .png is a GIF; base64 of an image is never taken for a file."""
    assert _image(dialog.put_image("https://example.org/a.png")).url == "https://example.org/a.png"
    gif = b"GIF89a" + bytes(24)
    (tmp_path / "wrong.png").write_bytes(gif)
    assert _image(dialog.put_image(tmp_path / "wrong.png")).media_type == "image/gif"
    monkeypatch.chdir(tmp_path)
    (tmp_path / base64.b64encode(gif).decode()).write_bytes(PNG)
    assert _image(dialog.put_image(base64.b64encode(gif).decode())).media_type == "image/gif"


def test_what_is_no_image_is_refused(dialog: Dialog, tmp_path: Path) -> None:
    """R54, R58: a missing file is a FileNotFoundError and palaver's own error; what is not an image is a ValueError; nothing is appended."""
    note = tmp_path / "note.txt"
    note.write_text("hello")
    with pytest.raises(FileNotFoundError) as caught:
        dialog.put_image("no/such.png")
    assert caught.value.filename == "no/such.png"
    for wrong in (note, base64.b64encode(b"no image at all").decode(), b"bytes", 3, "data:image/png"):
        with pytest.raises(InvalidMessage):
            dialog.put_image(wrong)
    assert len(dialog.messages) == 0


def test_inspection_and_overview(dialog: Dialog) -> None:
    """A8, R31-R35, R52: head, tail, cost and overview; both ends are None when there is nothing; calls and images have a gist."""
    assert (dialog.head, dialog.tail, dialog.overview()) == (None, None, "")
    first = dialog.put_text("You are brief.", role=Role.SYSTEM)
    dialog.put_text("x" * 150)
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "response_cost": 0.5}
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
    dialog.append(Message(role="assistant", content=None, tool_calls=[call], usage=usage, model="m"))
    dialog.append(ToolMessage.from_result(ToolResultContent(id="c1", content="line\nbreak")))
    last = dialog.put_image(PNG)
    assert (dialog.head, dialog.tail, dialog.messages[-1]) == (first, last, last)
    assert dialog.cost == InvokeCost(prompt_tokens=10, completion_tokens=5, total_tokens=15, cost=0.5)
    assert dialog.overview().splitlines() == [
        "[0. system (system)]: You are brief.",
        "[1. user (user)]: " + "x" * 100 + "...",
        '[2. assistant (assistant)]: [call ls({"path": "."})]',
        "[3. tool (tool)]: line break",
        "[4. user (user)]: [image]",
    ]
    stream = io.StringIO()
    text = dialog.overview(True, max_length=1, stream=stream, divider=True)
    assert stream.getvalue() == text + "\n"
    assert "[0. system (system)]: Y..." in text.splitlines()
    assert "[4." not in text


def test_calls_without_words_are_safe_everywhere(dialog: Dialog) -> None:
    """R296: a message whose content is None can be listed, searched, counted, copied, cut and sent."""
    dialog.put_text("go")
    for number in range(20):
        call = ToolCallContent(id=f"c{number}", name="ls", args={"path": "notes"})
        silent = dialog.append(Message(role="assistant", content=None, contents=(call,)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=f"c{number}", content="words " * 60)))
        assert (silent.content, silent.text_content()) == (None, "")
    dialog.put_text("and now?")
    assert "[call ls(" in dialog.overview()
    assert Dialog.from_dict(dialog.to_dict()).messages == dialog.messages
    assert Session.open(dialog.store, dialog.session_id).search("words", limit=5)
    composed = dialog.compaction.compose("fold", 1_500, model="gpt-4o")
    assert composed.plan.drops
    dialog.compaction.commit(composed)
    for profile in APIS:
        dialog.request(profile, "m", max_tokens=64).check()


def test_the_stored_message_is_stamped_the_callers_is_not(dialog: Dialog) -> None:
    """R30: appending stamps a copy; the same object appended to two dialogs is in both, each under its own id."""
    message = UserMessage(content="hi", metadata={"mine": 1})
    for into in (dialog, Dialog(owner="other")):
        put = into.append(message)
        assert put.metadata == {"mine": 1, "dialog_id": into.dialog_id}
        assert (into.tail, put.id) == (put, message.id)
    assert message.metadata == {"mine": 1}


def test_a_list_of_messages_is_appended_as_one(dialog: Dialog) -> None:
    """Messages are appended in order, and returned as they are stored; a list with something else among them appends nothing."""
    stored = dialog.append([UserMessage(content="a"), Message(role="assistant", content="b")])
    assert dialog.messages == stored
    for wrong in ("text", [UserMessage(content="a"), "b"]):
        with pytest.raises(TypeError, match="put_text"):
            dialog.append(wrong)  # type: ignore[arg-type]
    assert dialog.messages == stored


def test_media_travel_with_their_message(dialog: Dialog) -> None:
    """A message with an image can go to a dialog in another store; one whose bytes nobody has is refused."""
    put = dialog.put_image(PNG)
    other = Dialog(owner="other")
    assert dialog.tail is not None
    other.append(dialog.tail)
    assert _image(other.tail).data == PNG
    bare = put.model_copy(update={"contents": ({"type": "image", "images": [Media(digest="0" * 64, size=3)]},)})
    with pytest.raises(MissingFile):
        other.append(bare)
    assert len(other.messages) == 1


def test_messages_are_a_snapshot_that_cannot_change_the_log(five: Dialog) -> None:
    """R29: what is handed out is a read-only sequence, stays as it was, and nothing done to it reaches the store."""
    messages, plain = five.messages, tuple(five.messages)
    five.put_text("later")
    assert messages == plain
    for chosen in (slice(1, 3), slice(-2, None), slice(None, None, -1), slice(0, 5, 2), slice(3, 1)):
        assert messages[chosen] == plain[chosen]
    assert [messages[i] for i in range(-5, 5)] == [plain[i] for i in range(-5, 5)]
    with pytest.raises(IndexError):
        messages[5]
    with pytest.raises(TypeError):
        messages[0] = plain[1]  # type: ignore[index]
    with pytest.raises((TypeError, ValueError)):
        messages[0].metadata["x"] = 1  # type: ignore[index]
    assert five.messages[:5] == plain


def test_a_prompt_is_a_contract_and_a_message_formats_itself(dialog: Dialog) -> None:
    """C19: a Prompt has no messages; the chat form is the message's own."""
    assert not hasattr(Prompt(path="p", prompt="x"), "format_messages")
    call = ToolCallContent(id="c", name="ls", args={"a": 1})
    put = dialog.append(Message(role="assistant", contents=(TextContent("look"), call)))
    assert put.to_api_dict() == {
        "role": "assistant",
        "content": "look",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}],
    }
