"""Copies of a session: within a store, as a bundle and as a dictionary. Ids are renamed where they name something, and nowhere else."""

import json

from palaver import (
    AssistantMessage,
    MemoryStore,
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.compat.manager import SessionManager
from palaver.log import (
    KINDS,
    Approval,
    BlockEdit,
    BranchSummary,
    CallStarted,
    Cancelled,
    Compaction,
    ContextEdit,
    Custom,
    Derived,
    Entry,
    ErrorEntry,
    Inbox,
    Instructions,
    Invocation,
    Label,
    LateResult,
    MessageEntry,
    ModeChange,
    ModelChange,
    Omitted,
    Pin,
    Place,
    Quarantine,
    Run,
    Section,
    Tombstone,
    Toolset,
    ToolSpec,
    TurnEnded,
    TurnStarted,
    UnknownEntry,
    copy_of,
    draft,
    rule,
)
from palaver.messages import ThinkingContent, ToolCallContent
from palaver.session import Dialog
from palaver.testing.logs import model
from palaver.transfer.bundle import export_bundle, import_bundle


def planted(root: Dialog, words: str) -> list[Entry]:
    """Return entries of every kind with the words in every field that holds a text, and places of the dialog in every other."""
    place, run = Place(dialog=root.dialog_id, seq=0, block=0), Run(dialog=root.dialog_id, start=0, stop=1)
    edit = BlockEdit(target=place, text=words, reason="shortened", sources=(run,))
    gone = Omitted(run=run, reason="folded", by=words)
    derived = Derived(text=words, label=words, sources=(run,), facts=words)
    call = ToolCallContent(id=words, name=words, args={"dialog": root.dialog_id, "words": words})
    result = ToolResultContent(
        id=words, content=words, name=words, metadata={"about": words, **copy_of([place.handle])}
    )
    about = {"words": words, words: root.dialog_id, **copy_of([place.handle])}
    said = UserMessage(contents=(TextContent(words),), name=words, metadata=about)
    answer = AssistantMessage(contents=(ThinkingContent(words, signature=words), TextContent(words), call), model=words)
    return [
        MessageEntry(message=said, prompt=words),
        Instructions(sections=(Section(name=words, text=words),), replaces=(place,)),
        Toolset(tools=(ToolSpec(name=words, description=words, parameters={"x": words}),), provided={words: words}),
        TurnStarted(agent=words),
        MessageEntry(message=answer),
        CallStarted(call_id=words, tool=words, repeats=place),
        MessageEntry(message=ToolMessage.from_result(result)),
        TurnEnded(outcome=words),
        Inbox(message=said),
        Approval(call_id=words, decision="deny", by=words, reason=words, arguments={"x": words}),
        LateResult(message=ToolMessage.from_result(result)),
        Compaction(
            base=0, pieces=(run, derived), edits=(edit,), omitted=(gone,), policy=words, attempt={"focus": words}
        ),
        ContextEdit(base=0, edits=(edit,), omitted=(Omitted(target=place, reason="offloaded"),), policy=words),
        Pin(target=place),
        BranchSummary(summary=words, dialog=root.dialog_id, left=place, sources=(run,)),
        Custom(custom_type=words, data={"dialog": root.dialog_id, "words": [words]}),
        Label(target=place, label=words),
        ModelChange(model=words, provider=words),
        ModeChange(mode=words, value=words),
        Invocation(model=words, manifest={"words": words, "dialog": root.dialog_id}),
        ErrorEntry(error=words, data={"x": words}),
        Quarantine(target=place, reason=words),
        Cancelled(),
        Tombstone(was=words, role=words, calls=(words,)),
        UnknownEntry.model_validate({"kind": "of tomorrow", "words": words, "dialog": root.dialog_id}),
    ]


def texts(value: object, words: str) -> list[str]:
    """Return all strings in a JSON value that hold the words, in order, keys too."""
    if isinstance(value, str):
        return [value] if words in value else []
    if isinstance(value, dict):
        return [found for pair in value.items() for part in pair for found in texts(part, words)]
    return [found for item in value for found in texts(item, words)] if isinstance(value, list) else []


def test_ids_in_texts_stay_as_they_are() -> None:
    """A bundle, a restore and a copy change no text that quotes an id or a handle; in the copy, all that names an entry names its copy."""
    manager = SessionManager.in_memory()
    root, store = manager.dialog, manager.store
    words = f"see {root.dialog_id}, {root.dialog_id[:12]}:0 and {root.dialog_id}:0"
    root.put_text("first")
    with store.transaction():
        for entry in planted(root, words):
            ready = draft(entry)[0]
            if rule(entry.kind).turn and entry.kind != "tombstone":
                store.append(root.dialog_id, [ready], store.last(root.dialog_id).turn_head)
            else:
                store.annotate(root.dialog_id, ready)
    kinds = {header.kind for header in store.headers(root.dialog_id)}
    assert kinds == {*KINDS, "of tomorrow"}
    before = [body for _seq, body in store.bodies(root.dialog_id)]
    pieces, arrived = export_bundle(store, manager.session_id), MemoryStore()
    import_bundle(arrived, lambda _size: next(pieces, b""))
    again = Dialog.from_dict(root.to_dict())
    for other in (arrived, again.store):
        assert [body for _seq, body in other.bodies(root.dialog_id)] == before
    copy = SessionManager.fork_from(manager.session_id, "/c", store)
    new = copy.dialog.dialog_id
    assert new != root.dialog_id
    after = [body for _seq, body in store.bodies(new)]
    for old_body, new_body in zip(before, after, strict=True):
        old_entry, new_entry = json.loads(old_body), json.loads(new_body)
        assert texts(new_entry, words) == texts(old_entry, words)
        for text in texts(new_entry, root.dialog_id):  # what is left of the old id is in texts, or in data of others
            assert words in text or text == root.dialog_id
        if old_entry["kind"] in {"pin", "label", "quarantine"}:
            assert new_entry["target"]["dialog"] == new
    assert json.loads(after[0])["message"]["metadata"]["dialog_id"] == new
    for seq in (1, 7):  # the copies that are erased with their original
        assert f"{new}:0" in str(after[seq])
    assert copy.dialog.recall(f"{root.dialog_id[:12]}:0") == copy.dialog.recall(f"{new}:0")


def test_call_is_reproduced_in_a_copy() -> None:
    """The recorded requests of a copied session are made again byte for byte, with handles in their texts, and edits and runs in their views."""
    manager = SessionManager.in_memory()
    root = manager.dialog
    for number in range(8):
        root.append([UserMessage.text(f"{number} " + "w " * 90), model("v " * 90)])
    for policy, budget in ((None, None), ("palaver", 700), ("palaver", 500)):
        root.append(UserMessage.text("now"))
        root.calls.record(root.request("openai", "gpt-5", policy=policy, budget=budget))
        root.append(model("yes"))
    root.compaction.preview("palaver", 400).approve()
    root.append(UserMessage.text("and now"))
    root.calls.record(root.request("openai", "gpt-5"))
    copy = SessionManager.fork_from(manager.session_id, "/c", manager.store).dialog
    assert [call.request().data for call in copy.calls] == [call.request().data for call in root.calls]
    assert all(
        block.origin is None or block.origin.dialog == copy.dialog_id
        for call in copy.calls
        for exchange in call.view().exchanges
        for block in exchange.blocks()
    )
