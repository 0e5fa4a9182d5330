"""Where the source documents disagree: what palaver does, one test a conflict (those of dialogs and sessions)."""

from palaver import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    Prompt,
    TextContent,
    ToolCallContent,
    UserMessage,
)
from palaver.context.presets.own import DefaultContextManager
from palaver.session import Dialog, DialogTreeNode
from palaver.wire import PROFILES


def test_c13_the_top_prompt_can_be_held_and_put_back(dialog: Dialog) -> None:
    """C13: what a loop takes at entry stays what it was, however many prompts are put; and it can be put back."""
    task = Prompt(path="task", prompt="do")
    dialog.put_prompt(task)
    held = dialog.top_prompt
    dialog.put_prompt(task.extend(path="interrupt", prompt="results"))
    dialog.put_text("more")
    assert held is task
    dialog.top_prompt = held
    assert dialog.top_prompt is task
    dialog.top_prompt = None
    assert dialog.top_prompt is None


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


def test_c15_a_pruned_dialog_is_never_written_back(five: Dialog) -> None:
    """C15: a context manager's result lives for one call; what is kept of it is one entry, and only on request."""
    for number in range(30):
        five.put_text(f"long {number} " * 100)
    before = five.store.last(five.dialog_id)
    pruned = five.compaction.compose(DefaultContextManager("gpt-4o", max_tokens=2000))
    assert pruned.view.omissions
    assert five.store.last(five.dialog_id) == before
    assert five.children == ()
    five.compaction.commit(pruned)
    assert five.store.last(five.dialog_id).seq == before.seq + 1
    assert len(five.messages) == 35


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


def test_c28_split_point_is_a_count(five: Dialog) -> None:
    """C28: split_point says how many messages were kept; which ones, the node's spans say."""
    node: DialogTreeNode = five.fork(last_n=1, first_k=1).tree_node
    assert node.split_point == 2
    assert [(span.start, span.stop) for span in node.kept] == [(0, 1), (4, 5)]
