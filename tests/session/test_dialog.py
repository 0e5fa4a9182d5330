"""Putting things into a dialog and looking at them: scenarios A6 to A8, conflicts C12, C14, C19 and C20."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from palaver import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
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
from palaver.errors import InvalidInput, InvalidMessage, MissingFile, NotFound
from palaver.messages import InvokeCost, Media, Modalities
from palaver.session import Dialog
from palaver.wire import PROFILES

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_r49_arguments_of_the_wrong_type_are_named(dialog: Dialog) -> None:
    """R50: what must be a mapping, a text or a prompt and is not, and variables that are missing, are named; nothing is appended."""
    dialog.put_text("before")
    before = dialog.top_prompt
    with pytest.raises(InvalidInput, match="b"):
        dialog.put_prompt(Prompt(path="p", prompt="{a} {b}"), {"a": 1})
    prompt = Prompt(path="p", prompt="x")
    with pytest.raises(TypeError, match="prompt_args"):
        dialog.put_prompt(prompt, ["x"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metadata"):
        dialog.put_text("x", metadata="y")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text"):
        dialog.put_text(b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="prompt"):
        dialog.put_prompt(3)  # type: ignore[arg-type]
    assert len(dialog.messages) == 1
    assert dialog.top_prompt is before


def test_a06_put_text_is_verbatim_and_resets_what_governs(dialog: Dialog) -> None:
    """A6, R42, R51: the text is stored as it is, braces too; what governs then has no tools and no parser."""
    for text in ("What is the capital of France?", "a { b", 'json {"a": 1} {x}', "", "{{twice}} }"):
        dialog.put_prompt(Prompt(path="p", prompt="x", parser=len, function_list=["search"]))
        put = dialog.put_text(text)
        assert put.content == text
        assert put.role is Role.USER
        top = dialog.top_prompt
        assert top is not None
        assert (top.parser, top.function_list, top()) == (None, (), text)


def test_c12_a_text_leaves_a_temporary_prompt(dialog: Dialog) -> None:
    """C12: after put_text the agent can tell that nothing governs: the top prompt says that it is a temporary one."""
    prompt = Prompt(path="p", prompt="x")
    dialog.put_prompt(prompt)
    assert not prompt.is_temporary
    dialog.put_text("plain")
    assert dialog.top_prompt is not None
    assert dialog.top_prompt.is_temporary
    assert dialog.top_prompt is dialog.top_prompt


def test_c20_nothing_is_rendered_twice(dialog: Dialog) -> None:
    """C20, law 12: what a template's argument or a text holds is never a template."""
    dialog.put_prompt(Prompt(path="p", prompt="{x}"), {"x": "{y} {{z}}"})
    assert dialog.tail is not None
    assert dialog.tail.content == "{y} {{z}}"


def _image(message: Message | None, block: int = 0) -> Media:
    assert message is not None
    shown = message.contents[block]
    assert isinstance(shown, ImageContent)
    return shown.images[0]


def _jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, format="JPEG")
    return buffer.getvalue()


IMAGES: dict[str, Callable[[Path], object]] = {
    "str path": str,
    "Path": lambda path: path,
    "PIL": Image.open,
    "base64": lambda path: base64.b64encode(path.read_bytes()).decode(),
    "bytes": lambda path: path.read_bytes(),
    "data address": lambda path: "data:image/jpeg;base64," + base64.b64encode(path.read_bytes()).decode(),
}


def test_a07_put_image(dialog: Dialog, tmp_path: Path) -> None:
    """A7, R53, R56: every form gives an image message with its true type; the caption is kept, the dialog's id stamped, the top prompt left."""
    path = tmp_path / "screenshot.png"
    path.write_bytes(PNG)
    dialog.put_text("before")
    top = dialog.top_prompt
    for form in IMAGES.values():
        put = dialog.put_image(form(path), caption="Current state of the UI")
        assert put.modality is Modalities.IMAGE
        assert put.metadata == {"caption": "Current state of the UI", "dialog_id": dialog.dialog_id}
        assert put.text_content() == "Current state of the UI"
        assert dialog.top_prompt is top
        assert _image(put, 1).media_type == "image/png"
        assert dialog.tail == put
        assert _image(dialog.tail, 1).data


def test_r54_r57_the_type_is_that_of_the_bytes(dialog: Dialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web address is an image without bytes; a JPEG in a file called .png is a JPEG; base64 of an image is never taken for a file."""
    put = dialog.put_image("https://example.org/a.png")
    assert (_image(put).url, "caption" in put.metadata) == ("https://example.org/a.png", False)
    path = tmp_path / "wrong.png"
    path.write_bytes(_jpeg())
    assert _image(dialog.put_image(path)).media_type == "image/jpeg"
    gif = base64.b64encode(b"GIF89a" + bytes(24)).decode()
    monkeypatch.chdir(tmp_path)
    (tmp_path / gif).write_bytes(PNG)
    assert _image(dialog.put_image(gif)).media_type == "image/gif"


def test_r54_what_is_no_image_is_refused(dialog: Dialog, tmp_path: Path) -> None:
    """R58: a missing file is a FileNotFoundError and palaver's own error; a text file, base64 of no image and other objects are a ValueError; nothing is appended."""
    note = tmp_path / "note.txt"
    note.write_text("hello")
    for missing in (tmp_path / "none.png", "no/such.png"):
        with pytest.raises(FileNotFoundError) as caught:
            dialog.put_image(missing)
        assert caught.value.filename == str(missing)
    for wrong in (note, str(note), base64.b64encode(b"no image at all").decode(), b"bytes", 3, "data:image/png"):
        with pytest.raises(InvalidMessage):
            dialog.put_image(wrong)
    assert len(dialog.messages) == 0


def test_marks_take_handles_and_their_printed_form(dialog: Dialog) -> None:
    """Labels and pins take a handle or its text; what is no handle is an InvalidInput that names it, and nothing is written."""
    dialog.put_text("first")
    handle = dialog.messages.handle(0)
    dialog.marks.label(str(handle), "start")
    dialog.marks.pin(str(handle))
    assert (dict(dialog.marks.labels), dialog.marks.pins) == ({handle: "start"}, (handle,))
    before = dialog.store.last(dialog.dialog_id)
    wrongs: tuple[Any, ...] = (3, "3", None, (dialog.dialog_id, 0))
    for wrong in wrongs:
        for mark in (lambda place: dialog.marks.label(place, "x"), dialog.marks.pin, dialog.recall):
            with pytest.raises(InvalidInput) as caught:
                mark(wrong)
            assert repr(wrong) in str(caught.value)
    with pytest.raises(NotFound):
        dialog.marks.label(f"{'0' * 12}:0", "x")
    assert dialog.store.last(dialog.dialog_id) == before


def test_a08_inspection(dialog: Dialog) -> None:
    """A8, R31-R33: head, tail, messages, cost and overview; both ends are None when there is nothing."""
    assert (dialog.head, dialog.tail) == (None, None)
    assert dialog.messages == []
    assert dialog.overview() == ""
    first = dialog.put_text("You are brief.", role=Role.SYSTEM)
    dialog.put_text("x" * 150)
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "response_cost": 0.5}
    last = dialog.append(Message(role="assistant", content="line\nbreak", usage=usage, model="m"))
    dialog.append(Message(role="assistant", content="b", usage=usage))
    assert dialog.head == first
    assert dialog.messages[2] == last
    assert dialog.messages[-1] == dialog.tail
    assert dialog.cost == InvokeCost(prompt_tokens=20, completion_tokens=10, total_tokens=30, cost=1.0)
    assert dialog.overview().splitlines() == [
        "[0. system (system)]: You are brief.",
        "[1. user (user)]: " + "x" * 100 + "...",
        "[2. assistant (assistant)]: line break",
        "[3. assistant (assistant)]: b",
    ]


def test_r35_overview_options(five: Dialog) -> None:
    """The tail can be left out, lines cut shorter and parted, and the text written to a stream."""
    stream = io.StringIO()
    text = five.overview(True, max_length=1, stream=stream, divider=True)
    assert stream.getvalue() == text + "\n"
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        f"[{i}. {'system' if i == 0 else 'user'} ({'system' if i == 0 else 'user'})]: m..." for i in range(4)
    ]
    assert len(lines) == 7


def test_overview_shows_what_is_no_text(dialog: Dialog) -> None:
    """Calls, results, images and thinking have a gist of their own."""
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
    dialog.append(Message(role="assistant", content=None, tool_calls=[call]))
    dialog.append(ToolMessage.from_result(ToolResultContent(id="c1", content="a b")))
    dialog.put_image(PNG)
    assert dialog.overview().splitlines() == [
        '[0. assistant (assistant)]: [call ls({"path": "."})]',
        "[1. tool (tool)]: a b",
        "[2. user (user)]: [image]",
    ]


def test_r30_the_stored_message_is_stamped_and_the_callers_is_not(dialog: Dialog) -> None:
    """Appending stamps a copy; the same object appended to two dialogs is in both, each under its own id."""
    message = UserMessage(content="hi", metadata={"mine": 1})
    other = Dialog(owner="other")
    one, two = dialog.append(message), other.append(message)
    assert message.metadata == {"mine": 1}
    assert one.metadata == {"mine": 1, "dialog_id": dialog.dialog_id}
    assert two.metadata == {"mine": 1, "dialog_id": other.dialog_id}
    assert other.append(one).metadata["dialog_id"] == other.dialog_id
    assert dialog.tail == one
    assert one.id == two.id == message.id


def test_a_list_is_appended_as_one(dialog: Dialog) -> None:
    """Several messages are appended in order, and given back as they are stored."""
    stored = dialog.append([UserMessage(content="a"), Message(role="assistant", content="b")])
    assert isinstance(stored, tuple)
    assert dialog.messages == stored
    assert dialog.append([]) == ()


def test_what_is_no_message_is_refused(dialog: Dialog) -> None:
    """A text, a dict or a list with one among its messages is a TypeError, and nothing of it is appended."""
    for wrong in ("text", [UserMessage(content="a"), "b"], [{"role": "user", "content": "x"}]):
        with pytest.raises(TypeError, match="put_text"):
            dialog.append(wrong)  # type: ignore[arg-type]
    assert dialog.messages == []


def test_c06_results_of_a_batch_are_a_message_each(dialog: Dialog) -> None:
    """C6: a tool message with two results becomes two messages that share a batch."""
    results = [ToolResultContent(id=f"c{i}", content=str(i)) for i in range(2)]
    last = dialog.append(ToolMessage.from_results(results))
    assert [message.tool_call_id for message in dialog.messages] == ["c0", "c1"]
    assert len({message.metadata["batch_id"] for message in dialog.messages}) == 1
    assert dialog.tail == last


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


def test_r29_messages_are_a_snapshot_that_cannot_change_the_log(five: Dialog) -> None:
    """What is handed out is read-only, stays as it was, and nothing done to it reaches the store."""
    before = five.messages
    kept = list(before)
    five.put_text("later")
    assert before == kept
    assert len(before) == 5
    assert not hasattr(before, "append")
    with pytest.raises(TypeError):
        before[0] = kept[1]  # type: ignore[index]
    with pytest.raises((TypeError, ValueError)):
        before[0].metadata["x"] = 1  # type: ignore[index]
    with pytest.raises((TypeError, ValueError)):
        before[0].contents += ()  # type: ignore[misc]
    assert list(before) == kept
    assert five.messages[:5] == tuple(kept)


def test_messages_are_a_sequence(five: Dialog) -> None:
    """Indexes from both ends, slices with steps, membership, reversal and equality work as for a tuple."""
    messages, plain = five.messages, tuple(five.messages)
    for chosen in (slice(None), slice(1, 3), slice(-2, None), slice(None, None, -1), slice(0, 5, 2), slice(3, 1)):
        assert messages[chosen] == plain[chosen]
    assert [messages[i] for i in range(-5, 5)] == [plain[i] for i in range(-5, 5)]
    assert tuple(reversed(messages)) == plain[::-1]
    assert plain[3] in messages
    assert messages.index(plain[2]) == 2
    assert messages != plain[:4]
    assert messages != "other"
    with pytest.raises(IndexError):
        messages[5]
    with pytest.raises(IndexError):
        five.messages.handle(-6)


def test_c14_session_only_messages(dialog: Dialog) -> None:
    """C14: a custom message stays in the session; the two summaries reach the model as text that no user said."""
    dialog.append(CustomMessage(content="for the screen only", custom_type="note"))
    dialog.append(CustomMessage(content="for the model too", custom_type="note", in_context=True))
    dialog.append(BranchSummaryMessage(summary="the other branch failed"))
    dialog.append(CompactionSummaryMessage(summary="much was said"))
    dialog.append(UserMessage(content="go on"))
    assert len(dialog.messages) == 5
    for profile in PROFILES:
        sent = dialog.request(profile, "gpt-4o").data.decode()
        assert "for the screen only" not in sent
        for text in ("for the model too", "the other branch failed", "much was said", "go on"):
            assert text in sent


def test_c19_a_prompt_is_a_contract_and_a_message_formats_itself(dialog: Dialog) -> None:
    """C19: a Prompt has no messages; the chat form is the message's own."""
    assert not hasattr(Prompt(path="p", prompt="x"), "format_messages")
    call = ToolCallContent(id="c", name="ls", args={"a": 1})
    put = dialog.append(Message(role="assistant", contents=(TextContent("look"), call)))
    assert put.to_api_dict() == {
        "role": "assistant",
        "content": "look",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}],
    }
