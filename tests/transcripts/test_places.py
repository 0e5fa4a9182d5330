"""Places of a foreign conversation: whatever an entry names by puts of a reader names entries of the log when it is written."""

from __future__ import annotations

import pytest

from palaver.ids import DialogId
from palaver.log import BlockEdit, Compaction, ContextEdit, Place, Run
from palaver.transcripts.places import Landed, Places

HERE = DialogId("a" * 32)
PUTS = [Landed("r", b"", HERE, seq) for seq in (3, 4, 9, 12)]


@pytest.mark.parametrize("kind", [ContextEdit, Compaction])
def test_what_a_form_was_made_from_is_named_by_entries(kind: type[ContextEdit | Compaction]) -> None:
    """Its target, and each run of its sources, in as many runs as they lie apart; a form without sources has none."""
    edits = (
        BlockEdit(
            target=Place(dialog=DialogId("key"), seq=2, block=0),
            text="short",
            reason="shortened",
            sources=(Run(dialog=DialogId("key"), start=0, stop=3),),
            trust="outside",
        ),
        BlockEdit(target=Place(dialog=DialogId("key"), seq=0, block=0), text="short", reason="shortened"),
    )
    places = Places(dialogs={"key": HERE}, landed={"key": PUTS})
    made = places.here(kind(base=3, edits=edits, policy="p"), "key")
    assert isinstance(made, kind)
    one, other = made.edits
    assert one.target == Place(dialog=HERE, seq=9, block=0)
    assert one.sources == (Run(dialog=HERE, start=3, stop=5), Run(dialog=HERE, start=9, stop=10))
    assert (one.trust, other.sources) == ("outside", None)
