"""What tools said and did again: the same is what is the same in all of it, pictures too, and a part of a file is not the file."""

from __future__ import annotations

import pytest

from palaver.context.work import acts_of
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
