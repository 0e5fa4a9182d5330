"""Seeds 000, «Dialog and Message», and 001, «Prompt And Dialog»: every block of code it shows, run with its import lines changed and what its prose implies."""

import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest

from palaver import (
    Agent,
    AssistantMessage,
    ContextManager,
    DefaultContextManager,
    Dialog,
    DialogTreeNode,
    InvokeCost,
    Message,
    Prompt,
    ProviderInvoker,
    Role,
    Runtime,
    ScriptedProvider,
    build_agents,
    lllm,
    load_config,
)
from tests.seeds.ported import imported, invoker, ported, run

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"
USAGE = {"prompt_tokens": 11, "completion_tokens": 5}


def a_dialog(count: int = 5) -> Dialog:
    """Return a dialog with a system prompt and some messages."""
    dialog = Dialog(owner="coder", session_name="demo")
    dialog.put_text("You are careful.", role=Role.SYSTEM)
    for number in range(1, count):
        role = Role.USER if number % 2 else Role.ASSISTANT
        dialog.put_text(f"message {number}", role=role)
    return dialog


def contents(dialog: Dialog) -> list[str]:
    """Return the texts of a dialog's messages."""
    return [message.text_content() for message in dialog.messages]


BLOCK_01 = """
message.cost              # InvokeCost — token counts and dollar costs
message.is_function_call  # True if the LLM requested tool calls
message.sanitized_name    # name safe for API submission (alphanumeric + _ -)
"""


def test_properties_are_computed() -> None:
    """A1, R14-R16: the three can be read of any message; cost has the tokens of the usage, the name is safe to send."""
    message: Message = AssistantMessage(content="hi", name="agent/007:x", usage=USAGE)
    run(BLOCK_01, message=message)
    assert (message.cost.prompt_tokens, message.cost.completion_tokens) == (11, 5)
    assert not message.is_function_call
    assert Message(role="assistant", tool_calls=[{"id": "c", "function": {"name": "look"}}]).is_function_call
    assert re.fullmatch(r"[A-Za-z0-9_-]+", message.sanitized_name)


def test_a_message_has_the_fields_shown() -> None:
    """R4-R6, R8, R9, R11-R13, R17, R21, R22: fields have the declared defaults; what belongs to a call is not among them."""
    message = Message(role="assistant", content="hi")
    assert (message.modality, message.api_type) == (lllm.Modalities.TEXT, lllm.APITypes.COMPLETION)
    assert (lllm.APITypes.COMPLETION, lllm.APITypes.RESPONSE) == ("completion", "response")
    assert (lllm.Modalities.TEXT, lllm.Modalities.IMAGE) == ("text", "image")
    assert (message.parsed, message.model) == ({}, None)
    assert [list(value) for value in (message.function_calls, message.vectors, message.logprobs)] == [[], [], []]
    assert not {"raw_response", "model_args", "execution_errors"} & set(message.model_dump())


BLOCK_02 = """
agent.open('planning', prompt_args={'language': 'Python'}, session_name='run_001')
"""


def test_open_makes_an_active_dialog() -> None:
    """A3, R25, R32, R80, R81, R94: the alias is active, the system prompt stands first and is rendered, the session has its name, the dialog its owner."""
    agent = Agent("coder", Prompt(path="coder/system", prompt="You plan in {language}."), "gpt-4o", invoker())
    run(BLOCK_02, agent=agent)
    dialog = agent.current_dialog
    assert agent.active_alias == "planning"
    assert dialog.head is not None
    assert (dialog.head.role, dialog.head.text_content()) == (Role.SYSTEM, "You plan in Python.")
    assert (dialog.session_name, dialog.owner) == ("run_001", "coder")
    assert dialog.head.metadata["dialog_id"] == dialog.dialog_id


BLOCK_03 = """
task_prompt = dialog.top_prompt  # stable for the entire agent call
"""


def test_the_prompt_put_last_governs() -> None:
    """A4, R40: the prompt put last is the one that the loop takes at entry (tests/agent/test_contract.py has the call)."""
    dialog = a_dialog()
    dialog.put_prompt(task := Prompt(path="task", prompt="Do {what}."), {"what": "it"})
    assert run(BLOCK_03, dialog=dialog)["task_prompt"] is task


BLOCK_04 = """
dialog.put_prompt(my_prompt, {'task': task_str}, name='user')
dialog.put_prompt('research/agent', {'topic': 'transformers'})  # path string resolved via runtime
"""


def test_put_prompt_renders_and_governs() -> None:
    """A5, R28, R41, R47-R49: both are rendered and appended; the prompt in force is the very object; a path is looked up in the dialog's runtime."""
    runtime = Runtime()
    registered = Prompt(path="research/agent", prompt="Research {topic}.")
    runtime.register_prompt(registered)
    dialog = Dialog(owner="coder", runtime=runtime)
    run(BLOCK_04, dialog=dialog, my_prompt=Prompt(path="mine", prompt="Do {task}."), task_str="it")
    assert contents(dialog) == ["Do it.", "Research transformers."]
    assert dialog.top_prompt is registered
    with pytest.raises(KeyError, match="research/agent"):
        dialog.put_prompt("research/agnet")


BLOCK_05 = """
dialog.put_text("What is the capital of France?")
"""


def test_put_text_is_verbatim() -> None:
    """A6, R42, R51, R52: the text stands as it is, the user said it, and what governed the next turn no longer does."""
    dialog = a_dialog(1)
    run(BLOCK_05, dialog=dialog)
    assert dialog.tail is not None
    assert (dialog.tail.role, dialog.tail.content) == (Role.USER, "What is the capital of France?")
    assert dialog.top_prompt is not None
    assert not dialog.top_prompt.function_list


BLOCK_06 = """
dialog.put_image('screenshot.png', caption='Current state of the UI')
"""


def test_put_image_reads_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A7, R4, R53, R56: a file of the folder becomes an image message with its caption and its dialog's id."""
    monkeypatch.chdir(tmp_path)
    Path("screenshot.png").write_bytes(PNG)
    dialog = a_dialog(1)
    run(BLOCK_06, dialog=dialog)
    assert dialog.tail is not None
    assert dialog.tail.modality.value == "image"
    assert dialog.tail.metadata == {"caption": "Current state of the UI", "dialog_id": dialog.dialog_id}


BLOCK_07 = """
dialog.tail       # last Message, or None
dialog.head       # first Message (system prompt)
dialog.messages   # full list, read-only by convention
dialog.cost       # InvokeCost — aggregate across all messages
dialog.overview() # human-readable summary
"""


def test_inspection_shows_both_ends() -> None:
    """A8, R31-R33: each is what its comment says; an empty dialog has no tail."""
    dialog = a_dialog()
    run(BLOCK_07, dialog=dialog)
    assert (dialog.head, dialog.tail) == (dialog.messages[0], dialog.messages[-1])
    assert isinstance(dialog.cost, InvokeCost)
    assert "message 1" in dialog.overview()
    assert Dialog(owner="x").tail is None


BLOCK_08 = """
d = dialog.to_dict()
dialog = Dialog.from_dict(d, log_base=log_base, runtime=runtime)
"""


def test_serialization_restores_a_dialog(tmp_path: Path) -> None:
    """A9, R37, R38, R182: the tree's node and the prompt's path are recorded; the dialog comes back with its messages, and the prompt by its path."""
    runtime = Runtime()
    runtime.register_prompt(prompt := Prompt(path="research/agent", prompt="Research."))
    before = Dialog(owner="coder", runtime=runtime)
    before.put_prompt(prompt)
    after = run(BLOCK_08, dialog=before, Dialog=Dialog, log_base=tmp_path / "log", runtime=runtime)
    assert after["d"]["top_prompt_path"] == "research/agent"
    assert after["d"]["tree_node"]["dialog_id"] == before.dialog_id
    assert contents(after["dialog"]) == ["Research."]
    assert after["dialog"].top_prompt is prompt


BLOCK_09 = """
node = dialog.tree_node
node.is_root        # True if no parent
node.depth          # number of forks from root
node.subtree_ids()  # BFS: all reachable dialog_ids including self
node.to_dict()      # serialize for logging
"""


def test_a_tree_node_knows_its_place() -> None:
    """A10, R59, R60, R62-R64: of a root with two children, one of them with a child."""
    dialog = a_dialog()
    one, two = dialog.fork(), dialog.fork()
    deep = one.fork()
    node: DialogTreeNode = run(BLOCK_09, dialog=dialog)["node"]
    assert node.is_root
    assert node.depth == 0
    assert node.subtree_ids() == [dialog.dialog_id, one.dialog_id, two.dialog_id, deep.dialog_id]
    assert node.to_dict()["children_ids"] == [one.dialog_id, two.dialog_id]
    assert (deep.tree_node.depth, deep.tree_node.is_root) == (2, False)


BLOCK_10 = """
# Full copy
child = dialog.fork()

# Keep first message (system prompt) + last 3 messages
child = dialog.fork(last_n=3, first_k=1)

# Keep first 2 messages + last 5
child = dialog.fork(last_n=5, first_k=2)
"""


def test_forks_keep_exactly_their_window() -> None:
    """A11, R28, R66, R68-R73, R75, R78: all; the first and the last three; the first two and the last five: exactly these messages, and neither side changes the other."""
    dialog = a_dialog(12)
    run(BLOCK_10, dialog=dialog)
    whole, four, seven = dialog.children
    all_of_them = contents(dialog)
    assert contents(whole) == all_of_them
    assert contents(four) == [all_of_them[0], *all_of_them[-3:]]
    assert contents(seven) == [*all_of_them[:2], *all_of_them[-5:]]
    four.put_text("only here")
    assert contents(dialog) == all_of_them
    assert contents(dialog.fork(last_n=9, first_k=9)) == all_of_them
    assert contents(dialog.fork(last_n=2, first_k=0)) == all_of_them[-2:]
    assert (seven.tree_node.split_point, seven.owner, seven.session_name) == (7, "coder", "demo")
    assert seven.top_prompt is not None
    assert seven.top_prompt() == all_of_them[-1]


BLOCK_11 = """
print(dialog.tree_overview())
"""
BLOCK_11_OUTPUT = """\
[a1b2c3d4] owner=coder msgs=5 split@None
  └─ [e5f6g7h8] owner=coder msgs=5 split@5
  └─ [i9j0k1l2] owner=coder msgs=3 split@3 (last_n=2, first_k=1)
"""


def test_the_tree_is_drawn_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A12, R36, R71: the very lines that the document shows, but for the ids."""
    dialog = a_dialog()
    children = [dialog.fork(), dialog.fork(last_n=2, first_k=1)]
    run(BLOCK_11, dialog=dialog)
    ids = iter([each.dialog_id[:8] for each in (dialog, *children)])
    assert capsys.readouterr().out == re.sub(r"\[\w{8}\]", lambda _: f"[{next(ids)}]", BLOCK_11_OUTPUT)


BLOCK_12 = """
agent.open('planning')           # create and activate
agent.receive("What's the plan?") # append to active dialog
response = agent.respond()        # run agent loop

agent.open('execution')           # create second dialog
agent.switch('planning')          # switch back

# Fork for exploration
agent.fork('planning', 'planning_alt', last_n=2, switch=True)

# Access dialogs
agent.current_dialog              # the active Dialog object
agent.dialogs                     # dict of alias → Dialog
agent.active_alias                # current alias string
"""


def test_dialogs_are_reached_by_alias() -> None:
    """A13, R79, R80, R82, R85, R87-R93: aliases, the active one, the mapping and the lineage, after each step as the comments say."""
    agent = Agent("coder", Prompt(path="s", prompt="You plan."), "gpt-4o", invoker("First this, then that."))
    response = run(BLOCK_12, agent=agent)["response"]
    assert response.content == "First this, then that."
    assert list(agent.dialogs) == ["planning", "execution", "planning_alt"]
    assert agent.active_alias == "planning_alt"
    assert agent.current_dialog is agent.dialogs["planning_alt"]
    assert agent.current_dialog.parent is agent.dialogs["planning"]
    assert [message.role for message in agent.dialogs["planning"].messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
    assert agent.close("execution").owner == "coder"
    assert list(agent.dialogs) == ["planning", "planning_alt"]


BLOCK_13 = """
class SummarizeAgent(Tactic):
    tactic_type = "summarizer"
    agent_group = ["assistant"]

    def call(self, task: str, **kwargs):
        agent = self.agents["assistant"]

        # 1. Open dialog (system prompt goes in automatically)
        agent.open('summarize', prompt_args={'persona': 'helpful assistant'})

        # 2. Send the user's task
        agent.receive(task)

        # 3. Run the agent loop
        response = agent.respond()

        # 4. Inspect results
        print(response.parsed)                    # structured output
        print(agent.current_dialog.cost)          # total token cost
        print(agent.current_dialog.overview())    # human-readable message log

        return response.content
"""


def test_a_tactic_runs_a_complete_turn(capsys: pytest.CaptureFixture[str]) -> None:
    """A14, R96-R98, R100: the tactic gives the content; the parser of the system prompt filled `parsed`; cost and overview can be printed."""
    from palaver import DefaultTagParser, Tactic  # noqa: PLC0415 - the names this block implies

    kind = run(BLOCK_13, Tactic=Tactic)["SummarizeAgent"]
    runtime = Runtime()
    parser = DefaultTagParser(required_xml_tags=["summary"])
    runtime.register_prompt(Prompt(path="summarizer/system", prompt="You are a {persona}.", parser=parser))
    config = {
        "agent_configs": [{"name": "assistant", "model_name": "gpt-4o", "system_prompt_path": "summarizer/system"}]
    }
    answer = {"text": "<summary>Short.</summary>", "usage": USAGE}
    tactic = kind(config, runtime=runtime, llm_invoker=invoker(answer))
    session = tactic("Summarize this.", return_session=True)
    assert session.delivery == "<summary>Short.</summary>"
    printed = capsys.readouterr().out
    assert "'summary': ['Short.']" in printed
    assert "prompt_tokens=11" in printed
    assert "Summarize this." in printed
    assert session.cost.total_tokens == 16


BLOCK_15 = '''
class ContextManager(ABC):
    name: ClassVar[str]   # registry key — must be set on every concrete subclass

    @abstractmethod
    def __call__(self, dialog: Dialog) -> Dialog:
        """Return a dialog that is safe to send to the LLM."""
'''


def test_context_managers_are_abstract_and_change_no_dialog() -> None:
    """A15, R131, R149-R151: abstract in its call; one that drops the middle decides what the model sees, and the dialog goes on growing whole."""
    shown = run(BLOCK_15, ABC=ABC, abstractmethod=abstractmethod, ClassVar=ClassVar, Dialog=Dialog)["ContextManager"]
    contracts: tuple[Any, ...] = (shown, ContextManager)
    for contract in contracts:
        assert contract.__abstractmethods__ == {"__call__"}
        with pytest.raises(TypeError, match="abstract"):
            contract()

    class DropsTheMiddle(ContextManager):
        name = "drops"

        def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
            return dialog if len(dialog.messages) <= 4 else dialog.fork(last_n=2, first_k=1)

    asked = ProviderInvoker(provider := ScriptedProvider(["one", "two", "three"], profile="openai-chat"))
    agent = Agent("a", Prompt(path="s", prompt="hi"), "gpt-4o", asked, context_manager=DropsTheMiddle())
    agent.open("main")
    for text in ("a", "b", "c"):
        agent.receive(text)
        agent.respond()
    sent = [[message["content"] for message in request.body["messages"]] for request in provider.requests]
    assert sent == [["hi", "a"], ["hi", "a", "one", "b"], ["hi", "two", "c"]]
    assert contents(agent.current_dialog) == ["hi", "a", "one", "b", "two", "c", "three"]
    assert agent.current_dialog.children == ()


BLOCK_16 = """
from lllm.core.dialog import DefaultContextManager
from lllm.core.agent import Agent

cm = DefaultContextManager("gpt-4o")               # context window auto-detected from litellm
cm = DefaultContextManager("gpt-4o", max_tokens=32000)  # manual cap

agent = Agent(..., context_manager=cm)
"""


def test_the_default_context_manager_is_made_both_ways() -> None:
    """A16, R154, R167: both ways to make one; the dots of the document stand for the agent's other arguments."""
    assert imported(BLOCK_16) == ["DefaultContextManager", "Agent"]
    others = {"name": "a", "system_prompt": Prompt(path="s", prompt="hi"), "model": "gpt-4o", "llm_invoker": invoker()}
    names = run(BLOCK_16.replace("Agent(...,", "Agent(**others,"), others=others)
    assert names["agent"].context_manager is names["cm"]
    assert names["cm"].max_tokens == 32_000
    assert DefaultContextManager("gpt-4o").max_tokens == 128_000


BLOCK_17 = """
# applies to every agent in the tactic
global:
  context_manager:
    type: default        # built-in — no registration needed
    max_tokens: 128000   # optional; auto-detected from litellm if omitted

agent_configs:
  - name: cheap_agent
    model_name: gpt-4o-mini
    context_manager:     # per-agent override (deep-merged with global)
      type: default
      max_tokens: 16000

  - name: no_prune_agent
    model_name: gpt-4o
    context_manager:     # explicitly disable for this agent
      type: null
"""
PROMPTED = ("global:\n", "global:\n  system_prompt: You help.\n")
"""What the excerpt leaves out: every agent has a system prompt."""


def test_agents_inherit_the_global_configuration() -> None:
    """A17, R99, R166, R168, R169, R171, R173: the cheap agent has a cap of its own and its own model, the other no manager; whoever says nothing has what `global` says."""
    source = BLOCK_17.replace(*PROMPTED) + "\n  - name: third\n    model_name: gpt-4o\n"
    agents = build_agents(load_config(source), runtime=Runtime(), llm_invoker=invoker())
    cheap, third = agents["cheap_agent"].context_manager, agents["third"].context_manager
    assert isinstance(cheap, DefaultContextManager)
    assert (cheap.max_tokens, cheap.model_name) == (16_000, "gpt-4o-mini")
    assert agents["no_prune_agent"].context_manager is None
    plain = load_config("agent_configs:\n  - {name: one, model_name: gpt-4o, system_prompt: hi}\n")
    assert build_agents(plain, runtime=Runtime(), llm_invoker=invoker())["one"].context_manager is None
    assert isinstance(third, DefaultContextManager)
    assert (third.max_tokens, third.model_name) == (128_000, "gpt-4o")


BLOCK_18 = """
from lllm.core.dialog import ContextManager, Dialog

class SummaryCompressor(ContextManager):
    name = "summary"   # config type key

    def __init__(self, model_name: str, max_tokens: int = None):
        self.model_name = model_name
        self._max_tokens = max_tokens

    def __call__(self, dialog: Dialog) -> Dialog:
        # ... compress older messages into a rolling summary, return new dialog ...
        return compressed_dialog
"""


BLOCK_19 = """
runtime.register_context_manager(SummaryCompressor)
# reads SummaryCompressor.name ("summary") as the registry key
"""


def test_a_registered_manager_is_reached_by_its_name() -> None:
    """A18, A19, A26, R163, R165, R176: it can be made and called; it is found by its name, in this runtime and no other; one without a name is refused."""
    assert imported(BLOCK_18) == ["ContextManager", "Dialog"]
    runtime, shorter = Runtime(), a_dialog(2)
    kind = run(BLOCK_18, compressed_dialog=shorter)["SummaryCompressor"]
    assert kind("gpt-4o", max_tokens=64_000)(a_dialog()) is shorter
    run(BLOCK_19, runtime=runtime, SummaryCompressor=kind)
    assert runtime.get_context_manager("summary") is kind
    with pytest.raises(KeyError):
        Runtime().get_context_manager("summary")

    class Nameless(ContextManager):
        def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
            return dialog

    with pytest.raises(ValueError, match="name"):
        runtime.register_context_manager(Nameless)


BLOCK_20 = """
global:
  context_manager:
    type: summary
    max_tokens: 64000
"""


def test_a_registered_manager_is_made_from_a_configuration() -> None:
    """A18, R172: the registered class is made with the agent's model and the configured cap."""
    runtime, kind = Runtime(), run(BLOCK_18)["SummaryCompressor"]
    runtime.register_context_manager(kind)
    source = BLOCK_20.replace(*PROMPTED) + "agent_configs:\n  - name: one\n    model_name: gpt-4o\n"
    manager: Any = build_agents(load_config(source), runtime=runtime, llm_invoker=invoker())["one"].context_manager
    assert type(manager) is kind
    assert (manager.model_name, manager._max_tokens) == ("gpt-4o", 64_000)


def test_every_name_of_the_documents_resolves() -> None:
    """C29: `palaver.lllm` has each name of the documents, from the face or from its room; only the package's name changes in an import."""
    assert [name for name in lllm.__all__ if getattr(lllm, name, None) is None] == []
    for block in (BLOCK_16, BLOCK_18):
        assert "from lllm" not in ported(block)
        assert imported(block)


# --- seed 001, «Prompt And Dialog» ---------------------------------------------------------------------------------------------------

BLOCK_001_01 = """
from lllm.runtimes.native import Prompt

prompt = Prompt(
    path="research/summarize",
    prompt="Summarize {topic} for {audience}.",
    metadata={"revision": "current"},
)

text = prompt(topic="native runtime", audience="maintainers")
assert "native runtime" in text
"""


def test_a_prompt_renders_and_keeps_its_metadata() -> None:
    """A20, R104, R108: made, called, asserted as in the document; both arguments are in the text, and the metadata is kept."""
    assert imported(BLOCK_001_01) == ["Prompt"]
    names = run(BLOCK_001_01)
    prompt: Prompt = names["prompt"]
    assert names["text"] == "Summarize native runtime for maintainers."
    assert prompt.metadata == {"revision": "current"}
    assert prompt.path == "research/summarize"
    assert prompt.template_vars == {"topic", "audience"}
    assert prompt.validate_args({"topic": "x"}) == ["audience"]


BLOCK_001_02 = """
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


def test_forked_dialogs_know_their_lineage() -> None:
    """A22, R26, R28, R67: the three asserts of the document hold; the child has both messages; overviews do not print whole messages."""
    assert imported(BLOCK_001_02) == ["Dialog", "Prompt", "Role"]
    names = run(BLOCK_001_02)
    dialog, child = names["dialog"], names["child"]
    assert isinstance(child, Dialog)
    assert [message.content for message in child.messages] == ["You are concise.", "Explain the native dialog model."]
    assert child in dialog.children
    assert child.tree_node.split_point == 2
    assert dialog.tree_overview().count("\n") == 1
