"""What the model sees: views, requests, commits, and context managers that never write back."""

from collections.abc import Iterator
from typing import Any

import pytest

from palaver import (
    AssistantMessage,
    Conflict,
    Dialog,
    InfeasibleBudget,
    Message,
    Session,
    Store,
    ToolMessage,
    ToolResultContent,
)
from palaver.context import ContextManager, DefaultContextManager, OffloadContextManager
from palaver.errors import InvalidInput, UnknownPolicy, UnknownProfile
from palaver.log import Compaction, Instructions, MessageEntry, Omitted, Run, Section, Toolset, ToolSpec, TurnStarted
from palaver.messages import ImageContent, TextContent, ToolCallContent
from palaver.prompts import Runtime
from palaver.view import Drop, Insert, Plan, Reason, View, fold
from palaver.wire import PROFILES

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    + bytes(20)
)
MODEL = "gpt-4o"


def _talk(dialog: Dialog, rounds: int, size: int = 200) -> Dialog:
    """Let a user ask and an agent call a tool and answer, so many times."""
    if not len(dialog.messages):
        dialog.put_text("Be brief.", role="system")
    for number in range(rounds):
        dialog.put_text(f"ask {number}")
        call = ToolCallContent(id=f"c{number}", name="ls", args={"path": str(number)})
        dialog.append(Message(role="assistant", contents=(call,)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=call.id, content=f"out {number} " * size)))
        dialog.append(Message(role="assistant", content=f"answer {number}"))
    return dialog


def _texts(view: View) -> list[str]:
    return [
        block.content.content
        for one in view.exchanges
        for block in one.blocks()
        if isinstance(block.content, TextContent)
    ]


@pytest.fixture
def talked(dialog: Dialog) -> Dialog:
    """Give a dialog of ten rounds with tools."""
    return _talk(dialog, 10)


def test_the_plain_view_is_the_fold(talked: Dialog) -> None:
    """Without a policy the view holds everything the dialog knows, and an earlier one is chosen by its number."""
    assert talked.view() == fold(talked.store, talked.dialog_id)
    assert len(talked.view().exchanges) == 30
    assert _texts(talked.view(at=1)) == ["ask 0"]


def test_a_view_is_of_what_the_dialog_knows(talked: Dialog) -> None:
    """What another writer appended is not in the view before the reload."""
    other = Session.open("demo", talked.store).root
    other.put_text("unheard")
    assert "unheard" not in _texts(talked.view())
    assert "unheard" in _texts(talked.reload().view())


@pytest.mark.parametrize(
    "policy", ["default", "offload", DefaultContextManager(MODEL, max_tokens=3000), {"type": "offload"}]
)
def test_a_policy_makes_the_view_fit_and_writes_nothing(talked: Dialog, policy: Any) -> None:  # noqa: ANN401 - any form of a policy
    """By name, as an object or as a configuration: the view is smaller, every omission resolves, the log is untouched."""
    budget = None if isinstance(policy, ContextManager) else 3000
    before = talked.store.last(talked.dialog_id)
    composed = talked.compose(policy, budget, model=MODEL)
    assert composed.tokens_after < composed.tokens_before
    assert composed.view == talked.view(policy, budget, model=MODEL)
    assert talked.store.last(talked.dialog_id) == before
    assert len(talked.messages) == 41
    for omission in composed.view.omissions:
        for handle in omission.handles():
            talked.recall(handle)


def test_a_budget_alone_takes_the_default_policy(talked: Dialog) -> None:
    """A number of tokens is enough; what cannot fit is a typed error with the breakdown; a wrong name has close matches."""
    assert talked.view(budget=3000, model=MODEL) == talked.view("palaver", 3000, model=MODEL)
    with pytest.raises(InfeasibleBudget) as caught:
        talked.view(budget=10, model=MODEL)
    assert sum(caught.value.breakdown.values()) == caught.value.needed
    with pytest.raises(UnknownPolicy) as unknown:
        talked.view("defautl", 3000)
    assert "default" in unknown.value.close
    with pytest.raises(InvalidInput):
        talked.compose({"type": "null"})


@pytest.mark.parametrize("name", PROFILES)
def test_requests_for_every_provider_are_valid(talked: Dialog, name: str) -> None:
    """A request with tools, media and a further word compiles for every profile and passes its own check."""
    talked.record(Toolset(tools=(ToolSpec(name="ls"),)))
    talked.put_image(PNG, caption="the screen")
    request = talked.request(name, MODEL, policy="offload", budget=6000, then="And now?")
    assert request.body
    assert not request.history
    with pytest.raises(UnknownProfile):
        talked.request("nobody", MODEL)


def test_commit_is_one_entry_from_which_later_views_start(talked: Dialog) -> None:
    """C10, C15: the committed view is what comes back, messages are untouched, and what is said later follows it."""
    messages = list(talked.messages)
    composed = talked.compose("default", 3000, model=MODEL)
    handle = talked.commit(composed)
    entry = talked.recall(handle)
    assert isinstance(entry, Compaction)
    assert (entry.tokens_before, entry.tokens_after) == (composed.tokens_before, composed.tokens_after)
    assert talked.messages == messages
    assert talked.view().exchanges == composed.view.exchanges
    talked.put_text("next")
    assert _texts(talked.view()) == [*_texts(composed.view), "next"]
    assert _texts(talked.fork().view()) == [*_texts(composed.view), "next"]


def test_a_committed_view_survives_a_reload(store: Store) -> None:
    """Opening the session anew gives the committed view, and an earlier one can still be had."""
    dialog = _talk(Session.create(store, "s").root, 10)
    whole = dialog.view()
    dialog.commit(dialog.compose("offload", 3000, model=MODEL))
    again = Session.open("s", store).root
    assert again.view() == dialog.view()
    assert again.view(at=whole.at) == whole


def test_undo_brings_everything_back(talked: Dialog) -> None:
    """After undo the view is the one before the commit, with what was said since; with nothing left to undo the error says so."""
    with pytest.raises(InvalidInput, match="nothing to undo"):
        talked.undo()
    whole = talked.view()
    commit = talked.commit(talked.compose("default", 3000, model=MODEL))
    talked.put_text("later")
    entry = talked.recall(talked.undo())
    assert isinstance(entry, Compaction)
    assert entry.undone == commit.seq
    assert talked.view().exchanges[:-1] == whole.exchanges
    assert _texts(talked.view())[-1] == "later"
    with pytest.raises(InvalidInput, match="is undone"):
        talked.undo()


def test_undo_is_a_stack(talked: Dialog) -> None:
    """Two commits are undone one after the other; an undo after a new commit undoes that one, also when opened anew."""
    whole = talked.view().exchanges
    talked.commit(talked.compose("default", 3000, model=MODEL))
    once = talked.view().exchanges
    talked.put_text("and " * 200)
    said = talked.view().exchanges[-1:]
    talked.commit(talked.compose("default", 1500, model=MODEL))
    talked.undo()
    assert talked.view().exchanges == (*once, *said)
    talked.commit(talked.compose("default", 1100, model=MODEL))
    talked.undo()
    assert talked.view().exchanges == (*once, *said)
    again = Session.open("demo", talked.store).root
    again.undo()
    assert again.view().exchanges == (*whole, *said)
    with pytest.raises(InvalidInput, match="is undone"):
        again.undo()


def test_undo_on_a_fork_says_whose_compaction_it_inherited(talked: Dialog) -> None:
    """A fork cannot undo what it inherited; the error names the dialog that can, and what it advises works."""
    whole = _texts(talked.view())
    talked.commit(talked.compose("default", 3000, model=MODEL))
    fork = talked.fork().fork()
    with pytest.raises(InvalidInput, match=f"dialog {talked.dialog_id} made") as caught:
        fork.undo()
    assert "fork that one anew" in caught.value.hint
    talked.undo()
    anew = talked.fork()
    assert _texts(anew.view()) == whole
    with pytest.raises(InvalidInput, match="nothing to undo"):
        anew.undo()


def test_a_recorded_order_survives_commit_and_undo(dialog: Dialog) -> None:
    """Another agent's compaction may have put exchanges into another order: what is written down afterwards keeps it."""
    for number in range(6):
        dialog.put_text(f"m{number}")
    own = dialog.dialog_id
    runs = tuple(Run(dialog=own, start=seq, stop=seq + 1) for seq in (4, 1, 5))
    gone = tuple(Omitted(run=Run(dialog=own, start=a, stop=b), reason="compacted") for a, b in ((0, 1), (2, 4)))
    dialog.annotate(Compaction(base=5, pieces=runs, omitted=gone, policy="theirs", foreign=True))
    dialog.put_text("m7")
    assert _texts(dialog.view()) == ["m4", "m1", "m5", "m7"]
    dialog.commit(Plan(policy="mine", drops=(Drop(index=2),)), model=MODEL, margin=0)
    assert _texts(dialog.view()) == ["m4", "m1", "m7"]
    dialog.undo()
    assert _texts(dialog.view()) == ["m4", "m1", "m5", "m7"]
    assert _texts(Session.open("demo", dialog.store).root.view()) == ["m4", "m1", "m5", "m7"]


def test_plans_and_views_can_be_committed(talked: Dialog) -> None:
    """A plan of one's own, or the view it gives, is measured and committed; the newest word names the policy."""
    drops = tuple(Drop(index=index) for index in range(12))
    plan = Plan(
        policy="mine", drops=drops, inserts=(Insert(before=12, text="Earlier: twelve things.", label="summary"),)
    )
    talked.commit(plan, model=MODEL)
    assert _texts(talked.view())[0] == "Earlier: twelve things."
    view = talked.view(DefaultContextManager(MODEL, max_tokens=2500))
    talked.commit(view, model=MODEL)
    assert talked.view().exchanges == view.exchanges


def test_law_08_a_commit_that_does_not_help_is_refused(talked: Dialog) -> None:
    """A view of the same size, or smaller by less than the margin, is not committed: compaction cannot loop."""
    last = talked.store.last(talked.dialog_id)
    with pytest.raises(InvalidInput, match="smaller"):
        talked.commit(talked.view(), model=MODEL)
    with pytest.raises(InvalidInput, match="smaller"):
        talked.commit(Plan(policy="mine", drops=(Drop(index=0),)), model=MODEL)
    talked.commit(Plan(policy="mine", drops=(Drop(index=0),)), model=MODEL, margin=0)
    assert talked.store.last(talked.dialog_id).seq == last.seq + 1


def test_a_commit_that_came_too_late_is_refused(talked: Dialog) -> None:
    """A view made before another compaction is a Conflict; one made before further messages is committed, and they stay."""
    other = Session.open("demo", talked.store).root
    composed = talked.compose("default", 3000, model=MODEL)
    early = other.compose("default", 3000, model=MODEL)
    talked.put_text("meanwhile")
    talked.commit(composed)
    assert _texts(talked.view())[-1] == "meanwhile"
    with pytest.raises(Conflict):
        other.commit(early)


def test_a_view_that_hides_something_is_refused(talked: Dialog) -> None:
    """What every view must hold, and what is left out unsaid, is found at the commit, however the view was made."""
    whole = talked.view()
    without_newest = View(**{**_fields(whole), "exchanges": whole.exchanges[:-3]})
    with pytest.raises(InvalidInput, match="must hold"):
        talked.commit(without_newest, model=MODEL)
    unsaid = View(**{**_fields(whole), "exchanges": whole.exchanges[10:]})
    with pytest.raises(InvalidInput, match="without a reason"):
        talked.commit(unsaid, model=MODEL)


def _fields(view: View) -> dict[str, Any]:
    return {name: getattr(view, name) for name in View.__dataclass_fields__}


def test_what_was_pinned_meanwhile_stays(talked: Dialog) -> None:
    """A commit is validated as things stand when it is made: an entry pinned after the view was made is not left out."""
    composed = talked.compose("default", 3000, model=MODEL)
    talked.pin(talked.messages.handle(1))
    with pytest.raises(InvalidInput, match="must hold"):
        talked.commit(composed)
    talked.commit(talked.compose("default", 3000, model=MODEL))
    assert "ask 0" in _texts(talked.view())
    talked.pin(talked.messages.handle(1), pinned=False)
    assert talked.pins == ()


def test_a_view_of_another_dialog_is_refused(talked: Dialog) -> None:
    """A view says whose it is: a fork's is not committed on its parent."""
    with pytest.raises(InvalidInput, match="not of"):
        talked.commit(talked.fork().view(budget=3000, model=MODEL), model=MODEL)


def test_law_10_open_calls_stay(talked: Dialog) -> None:
    """A call that waits for its result is in the committed view, and its result finds it there."""
    talked.record(TurnStarted())
    call = ToolCallContent(id="open", name="build", args={})
    talked.append(Message(role="assistant", contents=(call,)))
    talked.commit(talked.compose("default", 2000, model=MODEL))
    assert talked.view().exchanges[-1].open
    talked.append(ToolMessage.from_result(ToolResultContent(id="open", content="built")))
    assert not talked.view().exchanges[-1].open
    talked.request("anthropic", "claude-sonnet-4-5").check()


# --- plain context managers --------------------------------------------------------------------------------------------------


class Window(ContextManager):
    """Keeps the head and the last three, by forking."""

    name = "window"

    def __call__(self, dialog: Dialog) -> Dialog:
        """Fork."""
        return dialog.fork(last_n=3, first_k=1)


class Rewriting(ContextManager):
    """Builds a dialog of its own: shortens what tools gave, and adds a summary."""

    name = "rewriting"

    def __call__(self, dialog: Dialog) -> Dialog:
        """Copy what is wanted."""
        made = Dialog(owner=dialog.owner)
        made.append(list(self._wanted(dialog)))
        return made

    def _wanted(self, dialog: Dialog) -> Iterator[Message]:
        for index, message in enumerate(dialog.messages):
            if index == 0:
                yield message
                yield Message(role="user", content="Summary: much was listed.")
            elif message.role == "tool":
                yield message.model_copy(update={"content": "listed"})
            elif index > 30:
                yield message


class Nothing(ContextManager):
    """Gives back what it got."""

    name = "nothing"

    def __call__(self, dialog: Dialog) -> Dialog:
        """Change nothing."""
        return dialog


def test_r150_a_plain_manager_may_give_the_same_dialog(talked: Dialog) -> None:
    """The same dialog back is the view as it stands."""
    assert talked.view(Nothing()) == talked.view()


def test_r151_what_a_manager_forks_is_never_written_back(talked: Dialog) -> None:
    """R77, R151: the canonical dialog keeps all its messages and gets no child; the view has what was kept, exchanges whole."""
    view = talked.view(Window())
    assert talked.children == ()
    assert len(talked.messages) == 41
    assert _texts(view) == ["ask 9", "answer 9"]
    assert [exchange.role.value for exchange in view.exchanges] == ["user", "assistant", "assistant"]
    assert {omission.reason for omission in view.omissions} == {Reason.MANAGER}
    assert sum(omission.messages for omission in view.omissions) == 36
    talked.commit(view, model=MODEL)
    assert talked.view().exchanges == view.exchanges


def test_r153_a_manager_may_rewrite_and_summarize(talked: Dialog) -> None:
    """Changed results are shown as changed with their handle, a new message is a derived text without the user's authority."""
    view = talked.view(Rewriting())
    assert _texts(view)[0] == "Summary: much was listed."
    assert view.exchanges[0].derived
    results = [
        block for one in view.exchanges for block in one.blocks() if isinstance(block.content, ToolResultContent)
    ]
    assert [block.content.text() for block in results] == ["listed"] * len(results)  # type: ignore[union-attr]
    for block in results:
        assert block.reason is Reason.MANAGER
        assert block.origin is not None
        original = talked.recall(block.origin)
        assert isinstance(original, ToolResultContent)
        assert original.text().startswith("out")
    for name in PROFILES:
        talked.request(name, MODEL, policy=Rewriting())


def test_a_manager_cannot_drop_what_must_stay(talked: Dialog) -> None:
    """A manager that drops the newest user message gets a view that holds it all the same, and the plan says so."""

    class Careless(ContextManager):
        name = "careless"

        def __call__(self, dialog: Dialog) -> Dialog:
            return dialog.fork(last_n=1, first_k=1)

    composed = talked.compose(Careless(), 10_000, model=MODEL)
    assert "ask 9" in _texts(composed.view)
    assert any("stays" in note for note in composed.plan.notes)


def test_registered_managers_are_found_by_name(store: Store) -> None:
    """A class registered with the runtime is a policy by its name."""
    runtime = Runtime()
    runtime.register_context_manager(_Configured)
    dialog = _talk(Dialog(owner="x", runtime=runtime, store=store), 4)
    assert dialog.view("configured").exchanges == dialog.view(Window()).exchanges


class _Configured(Window):
    name = "configured"

    def __init__(self, model_name: str, max_tokens: int | None = None) -> None:
        self.model_name = model_name
        self.max_tokens = max_tokens


def test_policies_called_on_a_dialog_give_a_derived_one(talked: Dialog) -> None:
    """R150, R157: called as context managers are, a policy gives the very dialog, or one whose messages are what the model sees."""
    assert DefaultContextManager(MODEL)(talked) is talked
    pruned = DefaultContextManager(MODEL, max_tokens=3000)(talked)
    assert pruned is not talked
    assert pruned.view() == talked.view(DefaultContextManager(MODEL, max_tokens=3000))
    assert pruned.head == talked.head
    assert pruned.tail == talked.tail
    assert len(pruned.messages) < len(talked.messages)
    assert talked.children == ()
    assert pruned.owner == talked.owner


def test_a_derived_dialog_goes_on_by_itself(talked: Dialog) -> None:
    """What is appended to it shows in its messages and its view, and nowhere else; its handles still resolve."""
    pruned = OffloadContextManager(MODEL, max_tokens=3000)(talked)
    kept = list(pruned.messages)
    pruned.put_text("a repair prompt")
    assert pruned.messages == [*kept, pruned.tail]
    assert _texts(pruned.view())[-1] == "a repair prompt"
    assert len(talked.messages) == 41
    omitted = next(iter(talked.view(OffloadContextManager(MODEL, max_tokens=3000)).omissions), None)
    if omitted is not None:
        pruned.recall(next(omitted.handles()))
    assert isinstance(pruned.recall(talked.messages.handle(1)), MessageEntry)
    assert DefaultContextManager(MODEL)(pruned) is pruned


def test_derived_messages_say_what_the_view_says(dialog: Dialog) -> None:
    """Instructions, images, merged fragments, several results and derived texts all become messages, ids kept where they can be."""
    dialog.record(Instructions(sections=(Section(name="a", text="one"), Section(name="b", text="two"))))
    image = dialog.put_image(PNG)
    calls = tuple(ToolCallContent(id=f"c{i}", name="ls", args={}) for i in range(2))
    dialog.append([Message(role="assistant", contents=(call,), response_id="r") for call in calls])
    dialog.append(ToolMessage.from_results([ToolResultContent(id=f"c{i}", content=str(i)) for i in range(2)]))
    derived = dialog.derive(dialog.view())
    assert [message.role.value for message in derived.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert derived.messages[0].text_content() == "onetwo"
    assert derived.messages[1].id == image.id
    assert isinstance(derived.messages[1].contents[0], ImageContent)
    assert derived.messages[1].contents[0].images[0].data == PNG
    assert derived.messages[2:] == dialog.messages[1:]
    assert [message.tool_call_id for message in derived.messages[3:]] == ["c0", "c1"]


def test_a_record_is_made_of_originals_also_of_what_a_commit_set_aside(store: Store) -> None:
    """Decision 8: what an earlier commit shows as a short reference is read from the log when a later record is made of it."""
    dialog = Session.create(store, "records").root
    dialog.put_text("Run the checks.")
    hidden = "\n".join(
        [*(f"line {n}" for n in range(400)), "ValueError: the hidden one", *(f"line {n}" for n in range(400))]
    )
    for number in range(12):
        call = ToolCallContent(id=f"c{number}", name="shell", args={"command": f"check {number}"})
        dialog.append(AssistantMessage(contents=(call,)))
        dialog.append(ToolMessage.from_result(ToolResultContent(id=f"c{number}", content=hidden, is_error=True)))
    dialog.put_text("And now?")
    dialog.commit(dialog.compose("offload", 20_000, model=MODEL))

    texts = _texts(dialog.view("fold", 2_500, model=MODEL))
    assert any("the hidden one" in text for text in texts if "line 399" not in text)
