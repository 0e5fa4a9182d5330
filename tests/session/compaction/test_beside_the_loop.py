"""A compaction keeps nobody waiting: what its own loop does is the same for any length, and the model is all that it waits for."""

from collections import Counter

import anyio
import pytest

from palaver import CompactionPreview, Dialog
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import HEADINGS
from tests.loops import called_here
from tests.session.compaction.test_compactions import talked

WORK = ("context/", "view/", "wire/", "tokens/", "log/", "messages/", "store/", "session/", "prompts/")
"""Where what takes time in proportion to something is done."""

ASKED_FIRST = {"store/blocks.py:require_no_block", "store/blocks.py:in_block", "store/memory/store.py:in_block"}
"""Of those, all that is asked in the loop itself: whether it stands in a block of the store."""


class Asked:
    """A summariser that answers at once, in so many words, and knows nothing of palaver meanwhile."""

    def __init__(self, words: int) -> None:
        """Say so much under each heading."""
        self.text = "\n\n".join(f"## {heading}\n" + "it is so " * words for heading in HEADINGS)
        self.requests = 0

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Answer."""
        self.requests += 1
        del request
        return SummaryAnswer(text=self.text)


def on_the_loop(dialog: Dialog, by: Asked) -> tuple[Counter[str], CompactionPreview]:
    """Look at a compaction, and give what was called in the thread of the loop."""

    async def main() -> tuple[Counter[str], CompactionPreview]:
        with called_here(*WORK) as called:
            preview = await dialog.acompact(summarizer=by)
        return called, preview

    return anyio.run(main)


@pytest.mark.parametrize(("turns", "words"), [(60, 2), (30, 12)])
def test_the_loop_does_the_same_for_a_view_and_a_summary_of_any_length(turns: int, words: int) -> None:
    """What the thread that serves everybody calls for a compaction with a summariser: as much at any length, and nothing that reads."""
    short, one = on_the_loop(talked(30), Asked(2))
    longer, other = on_the_loop(talked(turns), Asked(words))
    assert one.refused == other.refused == ""
    assert longer == short
    assert {name for name in longer if not name.startswith("session/")} == ASKED_FIRST
