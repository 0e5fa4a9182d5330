"""Seed 001, «Prompt And Dialog»: every block of code it shows, run with its import lines changed."""

from palaver import Dialog, Prompt
from tests.seeds.ported import imported, run

BLOCK_01 = """
from lllm.runtimes.native import Prompt

prompt = Prompt(
    path="research/summarize",
    prompt="Summarize {topic} for {audience}.",
    metadata={"revision": "current"},
)

text = prompt(topic="native runtime", audience="maintainers")
assert "native runtime" in text
"""


def test_seed_001_block_01_a20_a_prompt() -> None:
    """R108: made, called, asserted as in the document; both arguments are in the text, and the metadata is kept."""
    assert imported(BLOCK_01) == ["Prompt"]
    names = run(BLOCK_01)
    prompt: Prompt = names["prompt"]
    assert names["text"] == "Summarize native runtime for maintainers."
    assert prompt.metadata == {"revision": "current"}
    assert prompt.path == "research/summarize"
    assert prompt.template_vars == {"topic", "audience"}
    assert prompt.validate_args({"topic": "x"}) == ["audience"]


BLOCK_02 = """
from lllm.runtimes.native import Dialog, Prompt, Role

prompt = Prompt(path="assistant/system", prompt="You are concise.")

dialog = Dialog(owner="assistant", session_name="demo")
dialog.put_prompt(prompt, role=Role.SYSTEM, name="system")
dialog.put_text("Explain the native dialog model.", role=Role.USER)

child = dialog.fork(last_n=1, first_k=1)

assert child.parent is dialog
assert child.tree_node.parent_id == dialog.dialog_id
assert dialog.tree_node.children_ids == [child.dialog_id]
"""


def test_seed_001_block_02_a22_the_lineage_of_dialogs() -> None:
    """R26, R28, R67: the three asserts of the document hold; the child has both messages; overviews do not print whole messages."""
    assert imported(BLOCK_02) == ["Dialog", "Prompt", "Role"]
    names = run(BLOCK_02)
    dialog, child = names["dialog"], names["child"]
    assert isinstance(child, Dialog)
    assert [message.content for message in child.messages] == ["You are concise.", "Explain the native dialog model."]
    assert child in dialog.children
    assert child.tree_node.split_point == 2
    assert dialog.tree_overview().count("\n") == 1
