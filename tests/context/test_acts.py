"""What tools said and did again: the same is what is the same in all of it, pictures too, and a part of a file is not the file."""

from __future__ import annotations

import pytest

from palaver.context.work import acts_of
from palaver.context.work.deeds import deed
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.testing.conversations import picture
from palaver.testing.logs import Log, user
from tests.context.helper import fitted, seen, texts

CAPTION = "Took a screenshot of the page, size 1280x720."


def page(kind: int) -> tuple[TextContent | ImageContent, ...]:
    """Give one of several pictures, each under the same words."""
    return (TextContent(content=CAPTION), ImageContent(images=(picture(kind, 100),)))


def called(log: Log, place: int, name: str, said: str | tuple[TextContent | ImageContent, ...], **args: object) -> None:
    """Put a call and its result into a log."""
    call = ToolCallContent(id=f"c{place}", name=name, args=args)
    log.put(
        AssistantMessage(contents=(call,), response_id=f"r{place}"),
        ToolMessage.from_result(ToolResultContent(id=call.id, name=name, content=said)),
    )


def test_other_pictures_under_the_same_words_are_another_output() -> None:
    """Only where words and pictures are the same, the later one is the earlier one again."""
    log = Log()
    log.put(user("Look at the pages."))
    for number, kind in enumerate((1, 2, 3, 1)):
        called(log, number, "screenshot", page(kind), number=number)
    assert dict(acts_of(seen(log).exchanges).repeated) == {0: 4}


def test_a_picture_set_aside_is_told_of() -> None:
    """The line in the place of an output names the pictures that went with its words."""
    log = Log()
    log.put(user("Look at the pages."))
    for number in range(12):
        called(log, number, "screenshot", page(number), number=number)
    log.put(user("Go on."))
    view = seen(log)
    made = fitted(view, "offload", 6_000)
    assert any("1 lines, image/png; recall" in text for text in texts(made.view))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("NotebookEdit", {"notebook_path": "n.ipynb", "cell_id": "{0}", "new_source": "x = {0}"}),
        ("append_file", {"path": "report.md", "content": "chapter {0}"}),
        ("write_file", {"path": "report.md", "content": "chapter {0}", "mode": "append"}),
    ],
)
def test_a_part_that_was_written_does_not_do_the_file_over(name: str, args: dict[str, str]) -> None:
    """Cells of a notebook and what is appended leave what was written before as it is."""
    log = Log()
    log.put(user("Write it."))
    for number in range(4):
        called(log, number, name, "ok", **{key: value.format(number) for key, value in args.items()})
    acts = acts_of(seen(log).exchanges)
    assert not acts.overwritten
    assert not any(act.whole or act.shows for act in acts.all)


@pytest.mark.parametrize(
    "tail",
    ["\n" * 20_000, "   \n" * 5_000, "cat <<EOF\n" * 400, "<<a\n" * 5_000, "<<" + "a" * 8_000 + "\n" + "b\n" * 6_000],
    ids=["lines", "blanks", "marks", "many marks", "a long mark"],
)
def test_a_heredoc_without_an_end_is_read_at_once(tail: str) -> None:
    """A model that repeats line breaks until it may say no more leaves a command that is still read: nothing here takes time by the cube of it."""
    call = ToolCallContent(id="c", name="bash", args={"command": f"cat <<EOF > a.py\n{tail}"})
    assert deed(call).run


@pytest.mark.parametrize("stub", ["File unchanged since last read. Refer to that.", "Error: file a.py does not exist"])
def test_what_stands_in_the_place_of_an_answer_overtakes_none(stub: str) -> None:
    """A harness that shows nothing because it was shown before refers to the text of before: that is not out of date."""
    log = Log()
    for number, result in enumerate(("one\ntwo\n", stub)):
        call = ToolCallContent(id=f"c{number}", name="Read", args={"file_path": "a.py"})
        log.put(
            AssistantMessage(contents=(call,), response_id=f"r{number}"),
            ToolMessage.from_result(ToolResultContent(id=call.id, name="Read", content=result)),
        )
    acts = acts_of(seen(log).exchanges)
    assert acts.outdated == {}
    assert [act.shows for act in acts.all] == ["a.py", ""]


@pytest.mark.parametrize(
    ("command", "read", "wrote"),
    [
        ("cat > a.py <<'EOF'\ncat b.py\nEOF\ncat c.py", ("c.py",), ("a.py",)),
        ("cat <<EOF > a.py; cat d.py\ncat b.py\n  EOF  \ncat c.py", ("d.py", "c.py"), ("a.py",)),
        ("cat <<A <<B > a.py\ncat b.py\nA\ncat e.py\nB\ncat c.py", ("c.py",), ("a.py",)),
        ("cat > a.py <<EOFX\ncat b.py\nEOF\ncat c.py\nEOFX\ncat d.py", ("d.py",), ("a.py",)),
        ("cat <<EOF > a.py\ncat b.py", ("b.py",), ("a.py",)),
    ],
    ids=["quoted", "indented", "two", "a longer word", "without an end"],
)
def test_the_text_that_a_command_reads_from_itself_is_not_a_command(
    command: str, read: tuple[str, ...], wrote: tuple[str, ...]
) -> None:
    """A heredoc ends at its own word alone on a line, and what stands behind it on its first line is done; without an end there is none."""
    done = deed(ToolCallContent(id="c", name="bash", args={"command": command}))
    assert (done.read, done.wrote) == (read, wrote)
