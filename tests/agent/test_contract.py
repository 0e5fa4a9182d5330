"""What governs a call: the prompt in force when it begins, from beginning to end; answers that are refused, and repaired."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from palaver import Prompt
from palaver.errors import ParseError, RepairFailed
from palaver.prompts import DefaultHandler
from palaver.tools import CallContext, tool
from tests.agent.helper import attempts, calling, kinds, offered, roles, scripted, sent

HM = "It does not begin with Answer."


@tool
def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}"


def word_first(text: str) -> dict[str, Any]:
    """Accept an answer that begins with Answer."""
    if not text.startswith("Answer"):
        raise ParseError(HM, content=text)
    return {"said": text.removeprefix("Answer ")}


STRICT = Prompt(path="t/p", prompt="Answer.", parser=word_first)


class Recording(DefaultHandler):
    """A handler that notes for which prompt it was asked."""

    seen: ClassVar[list[str]] = []

    def on_interrupt(self, prompt: Any, session: object) -> Any:  # noqa: ANN401 - the handler's own signature
        """Note it."""
        self.seen.append(prompt.path)
        return super().on_interrupt(prompt, session)


def test_one_prompt_from_beginning_to_end() -> None:
    """A4, C13, R44: the same tools in every request, the task prompt's handler each time, the final answer parsed."""
    Recording.seen.clear()
    other = Prompt(path="t/other", prompt="Something else.")

    @tool
    def disturb(context: CallContext) -> str:
        """Put another prompt while the turn runs."""
        context.dialog.top_prompt = other
        return "put"

    task = Prompt(path="t/task", prompt="Task.", function_list=[look, disturb], parser=word_first, handler=Recording())
    agent, provider = scripted([calling("look", where="a"), calling("disturb"), calling("look", where="b"), "Answer 1"])
    agent.receive_prompt(task)
    assert agent.respond().parsed["said"] == "1"
    assert [offered(request) for request in provider.requests] == [["look", "disturb"]] * 4
    assert Recording.seen == ["t/task"] * 3
    assert agent.current_dialog.top_prompt is other


def test_text_leaves_the_system_prompt_in_force() -> None:
    """C12, R46: after `receive` the agent's own prompt governs; `inherit_system_contract=False` takes S000 literally."""
    system = Prompt(path="t/system", prompt="Look.", function_list=[look], parser=word_first)
    agent, provider = scripted([calling("look", where="x"), "Answer it"], system)
    agent.receive("go")
    assert agent.current_dialog.top_prompt is not None
    assert agent.current_dialog.top_prompt.is_temporary
    assert agent.respond().parsed["said"] == "it"
    assert offered(provider.requests[0]) == ["look"]
    bare, asked = scripted(["no parser"], system, inherit_system_contract=False)
    assert bare.respond("go").parsed == {}
    assert "tools" not in asked.requests[0].body


# --- repairs ----------------------------------------------------------------------------------------------------------


def test_a_refused_answer_is_repaired() -> None:
    """A24, R77, R130, R134: state, counts, cost and delivery; the dialog has the good answer only, the log keeps the refused one."""
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    script = [{"text": "Hm.", "usage": usage}, {"text": "Answer yes", "usage": usage}, "Answer no"]
    agent, provider = scripted(script, STRICT)
    session = agent.respond("Well?", return_session=True)
    assert (session.state, session.exception_retries_count, session.llm_recalls_count) == ("success", 1, 0)
    assert session.cost.total_tokens == 14
    assert session.delivery is not None
    assert session.delivery.content == "Answer yes"
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    assert sent(provider.requests[1])[2] == ("assistant", "Hm.")
    assert HM in sent(provider.requests[1])[3][1]
    (kept,) = attempts(agent.current_dialog)
    assert (kept["why"], kept["message"]["contents"][0]["content"]) == ("refused", "Hm.")
    agent.respond("And now?")  # a repair lives in its turn's working copy
    said = [content for _, content in sent(provider.requests[2])]
    assert said == ["Answer.", "Well?", "Answer yes", "And now?"]


def test_repairs_are_filed_under_their_round() -> None:
    """R133, R143: answers, repairs and recalls belong to the round they happened in; a call belongs to the round of its answer."""
    prompt = STRICT.extend(path="t/r", function_list=[look])
    script = ["Hm.", calling("look", where="a"), "Hm again.", {"error": "down"}, "Answer yes"]
    agent, _ = scripted(script, prompt, max_llm_recall=1)
    agent.options = replace(agent.options, retry=None)
    session = agent.respond("Well?", return_session=True)
    assert {key: len(value) for key, value in session.exception_retries.items()} == {0: 1, 1: 1}
    assert {key: len(value) for key, value in session.llm_recalls.items() if value} == {1: 1}
    assert {key: [call.name for call in value] for key, value in session.interrupts.items()} == {0: ["look"]}


def test_a_parser_that_never_accepts() -> None:
    """R135: after the last repair the error has trace and cause, and every answer is in the log; the next call begins afresh."""
    agent, provider = scripted(["a", "b", "c", "Answer d"], STRICT, max_exception_retry=2)
    with pytest.raises(RepairFailed, match="does not begin") as caught:
        agent.respond("Well?")
    session = caught.value.trace
    assert isinstance(caught.value.__cause__, ParseError)
    assert (session.state, session.exception_retries_count) == ("failure", 3)
    assert len(session.invokes) == len(attempts(agent.current_dialog)) == 3
    assert kinds(agent.current_dialog)[-1] == "turn_ended"
    assert agent.respond().content == "Answer d"
    assert sent(provider.requests[3]) == [("system", "Answer."), ("user", "Well?")]


def test_a_failure_crosses_to_another_process() -> None:
    """An error of a turn is pickled with its trace; the dialog stays where it is."""
    agent, _ = scripted(["a"], STRICT, max_exception_retry=0)
    with pytest.raises(RepairFailed) as caught:
        agent.respond("Well?")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (again.trace.state, again.trace.dialog) == ("failure", None)
    assert again.trace.invokes[0].message.content == "a"
