"""What governs a call: the prompt in force when it begins, from beginning to end."""

import pickle
from typing import Any, ClassVar

import pytest

from palaver import Prompt
from palaver.errors import AgentFailure, CallbackFailed, ParseError, RepairFailed
from palaver.log.entries import Custom
from palaver.prompts import DefaultHandler
from palaver.tools import CallContext, tool
from tests.agent.helper import calling, entries, kinds, roles, scripted, sent


@tool
def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}"


@tool
def count(things: int) -> int:
    """Count."""
    return things


class Recording(DefaultHandler):
    """A handler that notes for which prompt it was asked."""

    seen: ClassVar[list[tuple[str, str]]] = []

    def on_interrupt(self, prompt: Any, session: object) -> Any:  # noqa: ANN401 - the handler's own signature
        """Note it."""
        self.seen.append(("interrupt", prompt.path))
        return super().on_interrupt(prompt, session)


def word_first(text: str) -> dict[str, Any]:
    """Take an answer that begins with Answer."""
    if not text.startswith("Answer"):
        raise ParseError("It does not begin with Answer.", content=text)
    return {"said": text.removeprefix("Answer ")}


def test_a4_the_prompt_is_the_same_from_beginning_to_end() -> None:
    """A4, R44, C13: the same tools in every request, the handler asked for the task prompt each time, the final answer parsed."""
    Recording.seen.clear()
    other = Prompt(path="t/other", prompt="Something else.")

    @tool
    def disturb(context: CallContext) -> str:
        """Put another prompt while the turn goes on."""
        context.dialog.top_prompt = other
        return "put"

    task = Prompt(path="t/task", prompt="Task.", function_list=[look, disturb], parser=word_first, handler=Recording())
    agent, provider = scripted([calling("look", where="a"), calling("disturb"), calling("look", where="b"), "Answer 1"])
    agent.receive_prompt(task)
    response = agent.respond()
    assert response.parsed["said"] == "1"
    offered = [[one["function"]["name"] for one in request.body["tools"]] for request in provider.requests]
    assert offered == [["look", "disturb"]] * 4
    assert Recording.seen == [("interrupt", "t/task")] * 3
    assert agent.current_dialog.top_prompt is other


def test_c12_a_text_leaves_the_system_prompts_contract_in_force() -> None:
    """C12, R46: after `receive` the agent's own prompt governs, tools and parser; `inherit_system_contract=False` takes S000 literally."""
    system = Prompt(path="t/system", prompt="Look.", function_list=[look], parser=word_first)
    agent, provider = scripted([calling("look", where="x"), "Answer it"], system)
    agent.receive("go")
    assert agent.current_dialog.top_prompt is not None
    assert agent.current_dialog.top_prompt.is_temporary
    assert agent.respond().parsed["said"] == "it"
    assert len(provider.requests[0].body["tools"]) == 1
    bare, asked = scripted(["no parser"], system, inherit_system_contract=False)
    bare.receive("go")
    assert bare.respond().parsed == {}
    assert "tools" not in asked.requests[0].body


def test_c13_what_governed_the_answer_stays() -> None:
    """C13: after the call the dialog's top prompt is the task prompt, not one that a handler wrote."""
    task = Prompt(path="t/task", prompt="Task.", function_list=[look])
    agent, _ = scripted([calling("look", where="x"), "done"])
    agent.receive_prompt(task)
    agent.respond()
    assert agent.current_dialog.top_prompt == task


def test_a_new_contract_declares_its_tools() -> None:
    """Another prompt's tools are another toolset; a prompt without tools takes them back."""
    agent, provider = scripted(["a", "b", "c"])
    agent.receive_prompt(Prompt(path="t/1", prompt="One.", function_list=[look]))
    agent.respond()
    agent.receive_prompt(Prompt(path="t/2", prompt="Two.", function_list=[count]))
    agent.respond()
    agent.receive("three")
    agent.respond()
    named = [[one["function"]["name"] for one in request.body.get("tools", ())] for request in provider.requests]
    assert named == [["look"], ["count"], []]
    assert kinds(agent.current_dialog).count("toolset") == 3


# --- repairs -----------------------------------------------------------------------------------------------------------------


def test_a24_a_refused_answer_is_repaired() -> None:
    """A24, R130, R134: state, counts, cost and delivery; the dialog has the good answer only, the log keeps the refused one."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=word_first)
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    agent, provider = scripted([{"text": "Hm.", "usage": usage}, {"text": "Answer yes", "usage": usage}], prompt)
    agent.receive("Well?")
    session = agent.respond(return_session=True)
    assert session.state == "success"
    assert session.exception_retries_count == 1
    assert session.llm_recalls_count == 0
    assert session.cost.total_tokens == 14
    assert session.delivery is not None
    assert session.delivery.content == "Answer yes"
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    assert sent(provider.requests[1])[2] == ("assistant", "Hm.")
    assert "It does not begin with Answer." in sent(provider.requests[1])[3][1]
    (kept,) = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Custom) and "why" in entry.data]
    assert kept.data["why"] == "refused"
    assert kept.data["message"]["contents"][0]["content"] == "Hm."


def test_refused_answers_never_reach_later_views() -> None:
    """A repair lives in its turn's working copy: the next turn's request knows nothing of it."""
    agent, provider = scripted(
        ["Hm.", "Answer yes", "Answer no"], Prompt(path="t/p", prompt="Answer.", parser=word_first)
    )
    agent.receive("Well?")
    agent.respond()
    agent.receive("And now?")
    agent.respond()
    assert sent(provider.requests[2]) == [
        ("system", "Answer."),
        ("user", "Well?"),
        ("assistant", "Answer yes"),
        ("user", "And now?"),
    ]


def test_r135_a_parser_that_never_accepts_is_a_typed_failure() -> None:
    """R135, bug 10: after the last repair the error has the session, the state is `failure`, and every answer is in the log."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=word_first)
    agent, provider = scripted(["a", "b", "c"], prompt, max_exception_retry=2)
    agent.receive("Well?")
    with pytest.raises(RepairFailed, match="does not begin") as caught:
        agent.respond()
    session = caught.value.session
    assert session.state == "failure"
    assert session.exception_retries_count == 3
    assert len(session.invokes) == len(provider.requests) == 3
    assert roles(agent.current_dialog) == ["system", "user"]
    assert sum(isinstance(entry, Custom) and "why" in entry.data for entry in entries(agent.current_dialog)) == 3
    assert kinds(agent.current_dialog)[-1] == "turn_ended"


def test_after_a_failed_repair_the_next_call_begins_with_fresh_repairs() -> None:
    """Refused answers of a call that failed are not shown to the next one, and do not count for it."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=word_first)
    agent, provider = scripted(["a", "b", "c", "Answer d"], prompt, max_exception_retry=1)
    agent.receive("Well?")
    with pytest.raises(RepairFailed):
        agent.respond()
    assert agent.respond().content == "Answer d"
    assert sent(provider.requests[2]) == [("system", "Answer."), ("user", "Well?")]


def test_a_format_is_sent_and_held_to() -> None:
    """R111: the schema is in the request, an answer that does not hold to it is repaired, and what it says is in `parsed`."""
    schema = {
        "title": "Sum",
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
    agent, provider = scripted(['{"sum": "three"}', '{"sum": 3}'], Prompt(path="t/f", prompt="Add.", format=schema))
    agent.receive("1+2")
    assert agent.respond().parsed == {"sum": 3}
    asked = provider.requests[0].body["response_format"]["json_schema"]
    assert asked["schema"]["properties"] == schema["properties"]
    assert "sum" in sent(provider.requests[1])[-1][1]


def test_parser_arguments_reach_the_parser() -> None:
    """R85: `parser_args` go to the parser beside the text."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=lambda text, *, least: {"long": len(text) >= least})
    agent, _ = scripted(["abcd"], prompt)
    agent.receive("?")
    assert agent.respond(parser_args={"least": 3}).parsed["long"] is True


class Raising:
    """A handler that raises wherever it is asked."""

    def on_exception(self, session: object) -> Prompt:
        """Raise."""
        raise ZeroDivisionError(f"the handler's own, in {type(session).__name__}")

    on_interrupt = on_interrupt_final = on_exception


def test_a_handler_that_raises_on_a_repair_is_a_typed_failure() -> None:
    """Bad input of the issue: the refused answer is kept first; the session is valid, and goes on when the handler is mended."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=word_first, handler=Raising())
    agent, _ = scripted(["Hm.", "Answer yes"], prompt)
    agent.receive("Well?")
    with pytest.raises(CallbackFailed, match="handler") as caught:
        agent.respond()
    assert isinstance(caught.value.error, ZeroDivisionError)
    assert caught.value.session.state == "failure"
    assert sum(isinstance(entry, Custom) and "why" in entry.data for entry in entries(agent.current_dialog)) == 1
    assert agent.respond().content == "Answer yes"


def test_a_handler_that_raises_on_a_result_loses_no_result() -> None:
    """The tool's own words are recorded, the call fails, and the next call goes on without running the tool again."""
    ran: list[str] = []

    @tool
    def once(what: str) -> str:
        """Do it once."""
        ran.append(what)
        return "done"

    prompt = Prompt(path="t/p", prompt="Go.", function_list=[once], handler=Raising())
    agent, _ = scripted([calling("once", what="it"), "fine"], prompt)
    agent.receive("go")
    with pytest.raises(CallbackFailed):
        agent.respond()
    assert agent.respond().content == "fine"
    assert ran == ["it"]
    assert agent.current_dialog.messages[3].text_content() == "done"


def test_failures_are_one_family() -> None:
    """Whoever catches AgentFailure catches every end of a turn without an answer."""
    assert issubclass(RepairFailed, AgentFailure)
    assert issubclass(CallbackFailed, AgentFailure)


def test_a_failure_crosses_to_another_process() -> None:
    """An error of a turn is pickled with its trace; the dialog stays where it lies."""
    agent, _ = scripted(["a"], Prompt(path="t/p", prompt="Answer.", parser=word_first), max_exception_retry=0)
    agent.receive("Well?")
    with pytest.raises(RepairFailed) as caught:
        agent.respond()
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert again.session.state == "failure"
    assert again.session.exception_retries_count == 1
    assert again.session.dialog is None
    assert again.session.invokes[0].message.content == "a"
