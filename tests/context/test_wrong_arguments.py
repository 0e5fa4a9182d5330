"""Arguments that cannot be used, and policies that raise: each is a typed error that names what is wrong and says what to do."""

from collections.abc import Callable
from typing import Any

import pytest

from palaver import Agent, Dialog, Prompt, ProviderInvoker, ScriptedProvider, fit
from palaver.context import ContextManager, Policy, policy
from palaver.context.presets.palaver import Palaver
from palaver.errors import InfeasibleBudget, InvalidInput, InvalidMessage, PolicyFailed
from palaver.view import Plan, View
from tests.agent.helper import entries

HI = {"role": "user", "content": "hi"}


class Raising(Policy):
    """Raises what it was made with instead of planning."""

    name = "raising"

    def __init__(self, fault: BaseException) -> None:
        """Take what to raise."""
        super().__init__("gpt-4o")
        self.fault = fault

    def plan(self, view: View, *others: object) -> Plan:
        """Raise it."""
        del view, others
        raise self.fault


class RaisingManager(ContextManager):
    """A plain manager that raises."""

    name = "raising manager"

    def __call__(self, dialog: object) -> Any:  # noqa: ANN401 - a dialog of some kind
        """Raise."""
        del dialog
        raise KeyError("k")


def _talk() -> Dialog:
    dialog = Dialog(owner="h")
    for number in range(6):
        dialog.put_text(f"ask {number}")
        dialog.put_text(f"answer {number}", role="assistant")
    dialog.put_text("the newest")
    return dialog


ASKED: tuple[Callable[[Any], object], ...] = (
    lambda given: fit([HI], model="gpt-4o", policy=given),
    lambda given: _talk().view(given, 3_000, model="gpt-4o"),
    lambda given: _talk().compact(policy=given, budget=3_000, model="gpt-4o"),
    policy,
)
WAYS = ("fit", "view", "compact", "policy")


@pytest.mark.parametrize("asked", ASKED, ids=WAYS)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Palaver, r"The policy is the class Palaver, not an object of it\. Give an object: Palaver\(\)\."),
        (5, r"The policy is 5\. Give a name such as"),
        (["palaver"], r"The policy is \['palaver'\]\. Give a name such as"),
        (b"palaver", r"The policy is b'palaver'\. Give a name such as"),
        (len, r"The policy is <built-in function len>\. Give a name such as"),
        ({"typ": "palaver"}, r"configuration has no 'type'; its keys: 'typ'\. Name the policy with 'type'"),
        ({"type": 5}, r"5 is no policy\. Policies: "),
    ],
)
def test_what_is_no_policy_is_named(asked: Callable[[Any], object], given: object, says: str) -> None:
    """Wherever a policy is given: the error says what stands there, and what may; of a class, that an object is wanted."""
    with pytest.raises(InvalidInput, match=says):
        asked(given)


@pytest.mark.parametrize("nothing", [None, {}, {"type": None}, {"type": "null"}, "null"])
def test_none_stays_none(nothing: Any) -> None:  # noqa: ANN401 - all the ways to say none
    """What says that there is to be no policy is no mistake."""
    assert policy(nothing) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"model": None}, "The model is None. Give its name"),
        ({"model": 5}, "The model is 5. Give its name"),
        ({"tools": "x"}, "The tools are 'x', not a list"),
        ({"tools": {"name": "x"}}, "The tools are {'name': 'x'}, not a list"),
        ({"tools": 5}, "The tools are 5, not a list"),
        ({"tools": [{"type": "function", "name": "x"}, 5]}, "Item 1 of the tools is 5, no tool's schema"),
        ({"pinned": 0}, "What is pinned is 0. Give a list of places"),
        ({"pinned": ["a"]}, "What is pinned is ['a']. Give a list of places"),
        ({"counter": 5}, "The counter is 5. Give a palaver.tokens.Counter"),
        ({"dialect_name": ["anthropic"]}, "The dialect_name is ['anthropic']. Give one of openai-chat"),
    ],
)
def test_an_argument_of_fit_that_cannot_be_used_is_named(words: dict[str, Any], says: str) -> None:
    """The error names the argument, what was given, and what to give instead."""
    with pytest.raises(InvalidInput) as caught:
        fit([HI], **{"model": "gpt-4o", **words})
    assert says in str(caught.value)


def _endless() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["again"] = found
    return found


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [_endless()]},
        {"role": "user", "content": [{"type": "hologram", "x": _endless()}]},
        {"role": "user", "content": "hi", "x": _endless()},
        {"type": "function_call", "call_id": "c", "name": "sh", "arguments": _endless()},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "sh", "input": _endless()}]},
    ],
)
def test_a_message_that_contains_itself_is_refused(message: dict[str, Any]) -> None:
    """Wherever in it: an error that says which message, before anything that would come to no end; the same of a tool."""
    with pytest.raises(InvalidInput, match="Item 1 of the messages contains itself"):
        fit([HI, message], model="gpt-4o")
    with pytest.raises(InvalidInput, match="Item 0 of the tools contains itself"):
        fit([HI], model="gpt-4o", tools=[{"name": "sh", "input_schema": _endless()}])


def test_what_stands_twice_in_a_message_does_not_contain_itself() -> None:
    """One object at many places is no mistake."""
    part = {"type": "text", "text": "again"}
    assert fit([{"role": "user", "content": [part] * 500}], model="gpt-4o").messages


@pytest.mark.parametrize(
    ("messages", "words", "says"),
    [
        ([HI, {"role": "model", "parts": [{"text": "x"}]}], {}, (0, "parts", "role, content", "gemini: item 1")),
        (
            [{"role": "tool", "tool_call_id": "c", "content": "x"}, {"role": "user", "parts": [{"text": "x"}]}],
            {},
            (1, "content", "role, parts", "openai-chat: item 0"),
        ),
        (
            [HI, {"role": "user"}],
            {"tools": [{"name": "x", "input_schema": {}}]},
            (1, "content", "role", "anthropic: item 0 of the tools"),
        ),
    ],
)
def test_a_list_in_two_dialects_names_both_items(
    messages: list[Any], words: dict[str, Any], says: tuple[int, str, str, str]
) -> None:
    """The error names the item that cannot be read, what it lacks, and the item by which the list was taken for that dialect's."""
    place, lacks, keys, by = says
    with pytest.raises(InvalidMessage) as caught:
        fit(messages, model="gpt-4o", **words)
    said = str(caught.value)
    assert said.startswith(f"Item {place} of the messages has no {lacks}; its keys: {keys}.")
    assert f"The list is read as that of {by} is written so." in said


def test_a_dialect_that_was_named_is_what_speaks_for_it() -> None:
    """The error says that the list is read so because the caller said so."""
    with pytest.raises(InvalidMessage, match=r"has no parts.*as that of gemini: dialect_name says so\."):
        fit([HI], model="gpt-4o", dialect_name="gemini")


@pytest.mark.parametrize("asked", ASKED[:3], ids=WAYS[:3])
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Raising(ValueError("boom")), "The policy 'raising' raised ValueError: boom. Mend the policy"),
        (Raising(RecursionError()), "The policy 'raising' raised RecursionError. Mend the policy"),
        (RaisingManager(), "The policy 'raising manager' raised KeyError: 'k'. Mend the policy"),
    ],
)
def test_a_policy_that_raises_is_named(asked: Callable[[Any], object], broken: ContextManager, says: str) -> None:
    """Outside of an agent, whose default policy then decides: a typed error that names it, with what it raised as its cause."""
    with pytest.raises(PolicyFailed) as caught:
        asked(broken)
    assert says in str(caught.value)
    assert caught.value.__cause__ is caught.value.error
    assert caught.value.policy == broken.name


@pytest.mark.parametrize("asked", ASKED[:3], ids=WAYS[:3])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), InfeasibleBudget(1, 2, {"all": 2}), InvalidInput("mine")])
def test_an_interrupt_and_errors_of_ours_pass_a_policy(asked: Callable[[Any], object], fault: BaseException) -> None:
    """What a policy lets through that means something to the caller comes as it is."""
    with pytest.raises(type(fault)) as caught:
        asked(Raising(fault))
    assert not isinstance(caught.value, PolicyFailed)


def _agent(given: Any) -> Agent:  # noqa: ANN401 - also what may not be given
    model = ProviderInvoker(ScriptedProvider(["Done."]))
    return Agent("h", Prompt(path="h/s", prompt="You help."), "gpt-4o", model, context_manager=given, budget=3_000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (5, r"The context_manager is 5\. Give a name"),
        (RaisingManager, r"The context_manager is the class RaisingManager, .* Give an object: RaisingManager\(\)\."),
        (int, r"The context_manager is <class 'int'>\. Give a name"),
    ],
)
def test_an_agent_is_not_made_with_what_is_no_context_manager(given: object, says: str) -> None:
    """It is said when the agent is made; assigned later, when it is used: no default policy hides it."""
    with pytest.raises(InvalidInput, match=says):
        _agent(given)
    agent = _agent(None)
    agent.open("main").receive("Go.")
    agent.context_manager = given  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="The policy is "):
        agent.respond()


def test_what_an_agents_policy_raised_is_recorded_as_it_was_raised() -> None:
    """The turn goes on with the default policy, and the log has the kind of the policy's own error, not of ours around it."""
    agent = _agent(Raising(ValueError("boom")))
    agent.open("main").receive("Go.")
    assert agent.respond().content == "Done."
    assert "the policy raised ValueError: boom" in str(entries(agent.current_dialog))
