"""A call that nothing can answer any more stays closed, however often the view is written down."""

from palaver import AssistantMessage, Dialog, Session, ToolCallContent
from palaver.context import Policy
from palaver.context.ledger import Ledger
from palaver.context.texts import cleared
from palaver.log import Compaction, Handle
from palaver.store import MemoryStore
from palaver.tokens import Budget, Rates
from palaver.view import Drop, Insert, Plan, View
from tests.session.compaction.test_compactions import entries

MODEL = "gpt-4o"


class Leaving(Policy):
    """Leaves the exchanges out that begin with these numbers, with a line for them."""

    name = "leaving"

    def __init__(self, *seqs: int) -> None:
        """Take their numbers."""
        super().__init__()
        self.seqs = seqs

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Leave them out."""
        del ledger, budget, prices
        gone = [index for index, x in enumerate(view.exchanges) if x.first is not None and x.first.seq in self.seqs]
        line = cleared(Handle(view.dialog_id, self.seqs[0]), "")
        return Plan(
            policy=self.name,
            drops=tuple(Drop(index=index) for index in gone),
            inserts=(Insert(before=gone[-1] + 1, text=line, label="notice"),),
        )


def interrupted() -> Dialog:
    """Give a dialog with a call that was never answered, and longer words behind it."""
    dialog = Session.create(MemoryStore(), "s").root
    dialog.put_text("Go.")
    dialog.append(AssistantMessage(contents=(ToolCallContent(id="c", name="bash", args={}),), response_id="r1"))
    for number in range(4):
        dialog.append(AssistantMessage(content=f"{number} " + "word " * 300, response_id=f"r{number + 2}"))
    dialog.put_text("And now?")
    return dialog


def results(view: View) -> list[str]:
    """Give what stands for results that are not there."""
    return [block.derived for x in view.exchanges for turn in x.turns[1:] for block in turn.blocks]


def test_a_view_whose_newest_response_left_is_made_smaller_again_and_undone() -> None:
    """The responses that closed the call leave; what is written down then, and before it by an undo, has the call as closed as ever."""
    dialog = interrupted()
    assert results(dialog.view()) == ["interrupted"]
    before = dialog.view()
    for seqs in ((2, 3, 4, 5), (8,), (11,)):
        before = dialog.view()
        dialog.compact(policy=Leaving(*seqs), budget=100_000, model=MODEL).approve()
        assert results(dialog.view()) == ["interrupted"]
        if seqs != (11,):
            dialog.put_text("word " * 300)
            dialog.put_text("Go on.")
    dialog.undo()
    assert dialog.view().exchanges == before.exchanges
    assert results(dialog.view()) == ["interrupted"]
    assert all(entry.closed for entry in entries(dialog) if isinstance(entry, Compaction))
