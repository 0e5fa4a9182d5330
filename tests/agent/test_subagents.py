"""R309: another agent works in a dialog of its own, and brings back its answer alone."""

import pytest

from palaver import MemoryStore, Prompt, Session, Store
from palaver.agent import Agent, ModelSummarizer, ProviderInvoker, subagent
from palaver.agent.approvals import Decision, decide
from palaver.errors import Ambiguous, DecisionNeeded, InvalidInput, NotFound, ParseError
from palaver.log import ERASED
from palaver.messages import words_of
from palaver.providers import ScriptedProvider
from palaver.testing.kills import dying_store
from palaver.tools import tool
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, Died, both, calling, die, roles, scripted, sent, talkative


def worker(script: object, **options: object) -> tuple[Agent, ScriptedProvider]:
    """Return the agent that is to be called, and its provider."""
    provider = ScriptedProvider(script)  # type: ignore[arg-type]
    prompt = options.pop("prompt", Prompt(path="digger/system", prompt="You dig."))
    return Agent("digger", prompt, MODEL, ProviderInvoker(provider), **options), provider  # type: ignore[arg-type]


def boss(
    script: list[object], helper: Agent, store: MemoryStore | None = None, **options: object
) -> tuple[Agent, ScriptedProvider]:
    """Return the agent that calls it."""
    tools = [subagent(helper, **options)]  # type: ignore[arg-type]
    return scripted(script, Prompt(path="boss/system", prompt="You lead.", function_list=tools), store=store)


def test_the_parent_gets_the_answer_and_nothing_else() -> None:
    """R309: the child's dialog hangs under the parent's, knows the task only, and the parent's view grows by the answer."""
    helper, dug = worker(["Found it."])
    agent, provider = boss([calling("digger", task="Find the key."), "It was found."], helper)
    assert agent.respond("go").content == "It was found."
    assert sent(dug.requests[0]) == [("system", "You dig."), ("user", "Find the key.")]
    assert sent(provider.requests[1])[-1] == ("tool", "Found it.")
    session = Session.open(agent.store, "tester_main")
    (child,) = [dialog for dialog in session.dialogs if dialog.owner == "digger"]
    assert child.parent is not None
    assert child.parent.dialog_id == agent.current_dialog.dialog_id
    assert agent.store.node(child.dialog_id).relation == "subagent"
    assert roles(child) == ["system", "user", "assistant"]
    assert session.newest.dialog_id == agent.current_dialog.dialog_id
    assert helper.dialogs == {}


def test_a_task_and_an_answer_are_erased_with_their_originals() -> None:
    """The task repeats the parent's call, and the parent's result the sub-agent's answer: neither outlives what it repeats."""
    helper, _ = worker(["It is under the tree."])
    agent, _ = boss([calling("digger", task="Find the key."), "done"], helper)
    agent.respond("go")
    session = Session.open(agent.store, "tester_main")
    (child,) = agent.current_dialog.children
    call, answer = session.root.messages.handle(2), child.messages.handle(2)
    session.erase(entries=[call])
    assert [message.content for message in session.dialog(child.dialog_id).messages][1:] == [
        ERASED,
        answer_text := "It is under the tree.",
    ]
    assert answer_text in repr(session.root.messages[3])
    session.erase(entries=[answer])
    assert answer_text not in repr(session.root.messages[3])


def test_what_a_sub_agent_inherits() -> None:
    """With `brief` it reads what there is to know before the task; with `fork` it shares the parent's entries, and each goes on by itself."""
    helper, dug = worker(["ok"])
    agent, _ = boss([calling("digger", task="Dig.", brief="The ground is hard."), "done"], helper, inherits="brief")
    agent.respond("go")
    assert sent(dug.requests[0])[-1] == ("user", "The ground is hard.\n\nDig.")
    helper, dug = worker(["ok"])
    agent, provider = boss([calling("digger", task="Dig there."), "done"], helper, inherits="fork")
    agent.respond("The key is under the tree.")
    said = [str(content) for _, content in sent(dug.requests[0])]
    assert any("under the tree" in words for words in said)
    assert said[-1] == "Dig there."
    assert [role for role, _ in sent(provider.requests[1])] == ["system", "user", "assistant", "tool"]


def test_a_fork_is_under_the_sub_agents_instructions() -> None:
    """A sub-agent that shares its caller's conversation has one system message in force, its own; a decision later changes nothing."""
    ran: list[str] = []

    @tool(needs_approval=True)
    def dig(where: str) -> str:
        """Dig."""
        ran.append(where)
        return "a key"

    prompt = Prompt(path="digger/system", prompt="You dig in {place}.", function_list=[dig])
    helper, dug = worker([calling("dig", where="there"), "Found it."], prompt=prompt)
    agent, _ = boss(
        [calling("digger", task="Dig."), "done"], helper, inherits="fork", prompt_args={"place": "the garden"}
    )
    (call,) = agent.respond("Find it.", return_session=True).waiting
    agent.approve(call.id)
    assert agent.respond().content == "done"
    assert ran == ["there"]
    for request in dug.requests:
        assert [content for role, content in sent(request) if role == "system"] == ["You dig in the garden."]
    (child,) = agent.current_dialog.children
    assert [words_of(block.content) for block in child.view().system] == ["You dig in the garden."]
    assert [words_of(block.content) for block in agent.current_dialog.view().system] == ["You lead."]


def test_cost_is_everything_that_was_paid_for() -> None:
    """A turn's cost has its answers, refused ones, cut-off ones, summaries and sub-agents; the session's cost is the sum of its turns."""

    def paid(text: str, tokens: int, **more: object) -> dict[str, object]:
        return {"text": text, "usage": {"prompt_tokens": tokens, "completion_tokens": 1}, **more}

    def not_bad(text: str) -> dict[str, object]:
        if text == "bad":
            raise ParseError("It is bad.", content=text)
        return {}

    deeper, _ = worker([paid("deep", 10)], prompt=Prompt(path="deeper/system", prompt="You dig deeper."))
    call = {"name": "deeper", "arguments": {"task": "Dig."}}
    helper, _ = worker([paid("", 200, tool_calls=[call]), paid("Found it.", 300)], tools=[subagent(deeper, "deeper")])
    writer = ScriptedProvider([paid("They talked.", 4_000)])
    call = {"name": "digger", "arguments": {"task": "Dig."}}
    agent, _ = scripted(
        [
            paid("cut", 5, error="down"),
            paid("", 50_000, tool_calls=[call]),
            paid("bad", 600_000),
            paid("fine", 7_000_000),
        ],
        Prompt(path="boss/system", prompt="You lead.", function_list=[subagent(helper)], parser=not_bad),
        context_manager="fold",
        budget=3_000,
        summarizer=ModelSummarizer(writer, MODEL),
        retry=QUICK,
    )
    talkative(agent)
    trace = agent.respond("go", return_session=True)
    assert [each.agent_name for each in trace.all_subagents] == ["digger", "digger"]
    assert trace.cost.prompt_tokens == 7_654_515
    assert trace.cost.cost > 0
    whole = agent.current_dialog.session.cost
    assert (whole.total_tokens, round(whole.cost, 9)) == (trace.cost.total_tokens, round(trace.cost.cost, 9))


def test_interrupted_sub_agent_continues() -> None:
    """Wherever the process dies, in the parent's steps or the child's: one child, and nothing asked or done twice."""
    for writes in range(4, 24, 2):
        _interrupted_after(writes)


def _interrupted_after(writes: int) -> None:
    ran: list[int] = []

    @tool
    def dig(depth: int) -> str:
        """Dig."""
        ran.append(depth)
        return f"dug {depth}"

    def answer_below(request: Request) -> object:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        return f"Dug {done}." if done == 2 else calling("dig", depth=done)

    def answer_above(request: Request) -> object:
        return "All dug." if request.body["messages"][-1]["role"] == "tool" else calling("digger", task="Dig.")

    store = MemoryStore()

    def run(over: Store) -> object:
        helper, _ = worker(answer_below, prompt=Prompt(path="digger/system", prompt="You dig.", function_list=[dig]))
        invoker = ProviderInvoker(ScriptedProvider(answer_above))
        leader = Agent("boss", "You lead.", MODEL, invoker, store=over, tools=[subagent(helper)])
        if list(over.sessions()):
            return leader.resume("dig").respond().content
        return leader.open("dig", session_name="dig").respond("go").content

    try:
        run(dying_store(store, writes, die))
    except (Died, BaseExceptionGroup):
        assert run(store) == "All dug."
    session = Session.open(store, "dig")
    (child,) = [dialog for dialog in session.dialogs if dialog.owner == "digger"]
    assert sorted(ran) in ([0, 1], [0], [1], [])
    results = [block for message in child.messages for block in message.tool_results()]
    assert len(results) == 2
    assert sum(not result.is_error for result in results) == len(ran)
    assert roles(session.root) == ["system", "user", "tool_call", "tool", "assistant"]


def test_a_sub_agents_call_waits_for_a_decision_too() -> None:
    """The parent's turn waits with it; deciding through the parent's dialog lets both go on, and the task is not begun anew."""
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    helper, dug = worker(
        [calling("pay", amount=5), "Paid it."], prompt=Prompt(path="d/s", prompt="D.", function_list=[pay])
    )
    agent, provider = boss([calling("digger", task="Pay."), "All paid."], helper)
    session = agent.respond("go", return_session=True)
    assert session.state == "waiting"
    (call,) = agent.waiting
    assert call.name == "pay"
    agent.approve(call.id)
    assert agent.respond().content == "All paid."
    assert paid == [5]
    assert len(dug.requests) == 2
    assert len(provider.requests) == 2


def test_a_decision_reaches_the_call_that_waits() -> None:
    """However deep it waits, `waiting` lists this call and not the calls above it, and a decision about any other call is refused."""

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    lowest, _ = worker([calling("pay", amount=5), "It was refused."], tools=[pay], approve=lambda _: None)
    middle, _ = worker([calling("low", task="Pay."), "No."], tools=[subagent(lowest, "low")], approve=lambda _: True)
    agent, _ = boss([calling("digger", task="Pay."), "Not paid."], middle)
    with pytest.raises(DecisionNeeded, match="pay") as caught:
        agent.respond("go")
    assert [call.name for call in caught.value.calls] == ["pay"]
    assert caught.value.trace.waiting == caught.value.calls == agent.waiting
    (above,) = agent.current_dialog.messages[-1].tool_calls()
    for call_id in (above.id, "nowhere"):
        with pytest.raises(NotFound, match="open call"):
            agent.approve(call_id)
    agent.deny(caught.value.calls[0].id, "too much")
    assert agent.respond().content == "Not paid."
    assert agent.waiting == ()


def test_an_id_that_several_waiting_calls_have_decides_none() -> None:
    """Two sub-agents whose provider numbers calls alike: the parent's decision is refused, and made in one's dialog the other can be decided from above."""
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    def answer(request: Request) -> object:
        said = request.body["messages"][-1]
        return "Done." if said["role"] == "tool" else calling("pay", "", "pay:0", to=said["content"])

    helper, _ = worker(answer, tools=[pay])
    agent, _ = boss([both(("digger", {"task": "Ann"}), ("digger", {"task": "Bob"})), "All done."], helper)
    assert agent.respond("go", return_session=True).state == "waiting"
    with pytest.raises(Ambiguous, match="pay:0"):
        agent.approve("pay:0")
    first, second = agent.current_dialog.children
    decide(first, "pay:0", Decision(decision="deny"))
    agent.approve("pay:0")
    agent.respond()
    assert paid == [second.messages[1].content]


def test_subagent_refuses_what_is_no_agent() -> None:
    """Anything but an agent is a typed error."""
    with pytest.raises(InvalidInput, match="5"):
        subagent(5)  # type: ignore[arg-type]


def test_a_sub_agent_that_fails_is_an_error_the_parent_reads() -> None:
    """What ends the child's turn is a result for the parent's model."""
    helper, _ = worker([{"error": "down"}])
    agent, _ = boss([calling("digger", task="Dig."), "It failed."], helper)
    assert agent.respond("go").content == "It failed."
    (result,) = agent.current_dialog.messages[3].tool_results()
    assert result.is_error
    assert "AgentFailure" in result.text()


def test_a_sub_agent_that_calls_itself_comes_to_an_end() -> None:
    """Sub-agents are eight deep at most: the last one reads that it has to do the task itself, and every answer comes back."""
    refused: list[str] = []

    def answer(request: Request) -> object:
        said = request.body["messages"][-1]
        if said["role"] != "tool":
            return calling("digger", task="Dig.")
        refused.extend([said["content"]] if "no deeper" in said["content"] else [])
        return "dug"

    helper, _ = worker(answer)
    helper.tools = (subagent(helper),)
    helper.open("main").receive("Dig.")
    assert helper.respond().content == "dug"
    assert len(refused) == 1
    assert len(Session.open(helper.store, "digger_main").dialogs) == 9
