"""Compactions on branches and beside a conversation that goes on: documented failures of others, under every policy."""

import re

import pytest

from palaver import AssistantMessage, Dialog, Session, Store, ToolMessage, ToolResultContent
from palaver.context import POLICIES
from palaver.log import Handle
from palaver.messages import TextContent, ToolCallContent
from palaver.view import View

CUTTING = tuple(name for name in POLICIES if name != "full")
"""Every policy that leaves something out."""

PAGE = "\n".join(f"line {number} of some output" for number in range(60))


def work(dialog: Dialog, what: str, turns: int) -> None:
    """Let a dialog read files, each with a word of its own."""
    for turn in range(turns):
        name = f"{what}-{turn}"
        args = {"file_path": f"src/{name}.py"}
        dialog.append(AssistantMessage(contents=(ToolCallContent(id=name, name="Read", args=args),)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=name, content=f"{name}: {PAGE}")))
        dialog.append(AssistantMessage(content=f"Read {name}."))


def reached(view: View) -> set[Handle]:
    """Give every entry that a view shows, or leaves out with a handle."""
    shown = {Handle(run.dialog, seq) for x in view.exchanges for run in x.runs for seq in range(run.start, run.stop)}
    return shown | {Handle(handle.dialog, handle.seq) for gone in view.omissions for handle in gone.handles()}


def words(view: View) -> str:
    """Give every text of a view."""
    contents = [block.content for x in view.exchanges for block in x.blocks()]
    return "\n".join(str(one.content if isinstance(one, TextContent) else one) for one in contents)


@pytest.mark.parametrize("name", CUTTING)
def test_t9_what_was_tried_on_an_abandoned_branch_is_in_no_view_of_another(name: str, store: Store) -> None:
    """Two branches of one trunk, one of them forked again, each worked on: compacting any of them tells of its own line alone, all of it."""
    trunk = Session.create(store).root
    trunk.put_text("Make the tests pass. Never touch src/kept.py.")
    work(trunk, "trunk", 4)
    abandoned, active = trunk.fork(), trunk.fork()
    for branch, what in ((abandoned, "abandoned"), (active, "active")):
        branch.put_text(f"Try the {what} way. You must not forget {what}.")
        work(branch, what, 6)
    later = active.fork()
    work(later, "later", 4)
    work(active, "after", 4)

    for branch, others in ((active, "abandoned|later"), (later, "abandoned|after"), (abandoned, "active|later|after")):
        composed = branch.compose(
            name, max(branch.compose("full", model="gpt-4o").tokens_before // 5, 400), model="gpt-4o"
        )
        assert not re.search(others, words(composed.view))
        held = {Handle(span.dialog, seq) for span in branch.spans for seq in range(span.start, span.stop)}
        assert reached(composed.view) == held
        if composed.tokens_after < composed.tokens_before * 0.8:
            branch.commit(composed)
            assert not re.search(others, words(branch.reload().view()))

    assert later.diff(abandoned).ancestor == trunk.messages.handle(-1)
    assert later.diff(active).ancestor == active.diff(later).ancestor
    assert "active" in words(active.fork().view())


@pytest.mark.parametrize("name", CUTTING)
def test_t16_what_is_said_while_a_compaction_is_made_is_not_lost(name: str, store: Store) -> None:
    """A view is composed, three more messages come from two writers, then it is committed: they follow it, word for word, and the next append works."""
    session = Session.create(store)
    session.root.put_text("Make the tests pass.")
    work(session.root, "early", 12)
    mine, theirs = session.root, Session.open(session.session_id, store).root
    composed = mine.compose(name, mine.compose("full", model="gpt-4o").tokens_before // 4, model="gpt-4o")
    theirs.put_text("And keep the public names.")
    mine.reload()
    mine.append(AssistantMessage(content="I shall keep them."))
    theirs.reload()
    theirs.label(theirs.messages.handle(0), "start")

    mine.commit(composed)

    assert [x.first for x in mine.view().exchanges[-2:]] == [mine.messages.handle(-2), mine.messages.handle(-1)]
    assert words(mine.view()).endswith("And keep the public names.\nI shall keep them.")
    assert words(Session.open(session.session_id, store).root.view()) == words(mine.view())
    assert mine.put_text("Go on.").text_content() == words(mine.view()).splitlines()[-1]
