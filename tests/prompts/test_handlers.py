"""Handlers: the prompts that follow a failed answer, the results of tools, and the end of tools."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidPrompt
from palaver.prompts import DefaultHandler, JinjaRenderer, Prompt


def lookup(word: str) -> str:
    """Look a word up."""
    return word


TASK = Prompt(
    path="task",
    prompt="Do {what}.",
    parser=len,
    function_list=[lookup],
    mcp_servers_list=[{"server_label": "docs"}],
    addon_args={"web_search": True},
)


def test_r115_the_default_handler_goes_on_as_the_prompt_says() -> None:
    """A repair and results are parsed as the answer would have been, with the same tools; at the end there are no tools."""
    repair, results, final = TASK.on_exception(None), TASK.on_interrupt(None), TASK.on_interrupt_final(None)
    assert repair(error_message="Not a number.") == "Error: Not a number. Please fix."
    assert results(call_results="42") == "42"
    assert "final response" in final()
    for prompt in (repair, results):
        assert prompt.parser is len
        assert prompt.function_list == (lookup,)
        assert prompt.mcp_servers_list == TASK.mcp_servers_list
        assert prompt.addon_args == {"web_search": True}
    assert final.parser is len
    assert (final.function_list, final.mcp_servers_list, final.addon_args) == ((), (), {})
    assert isinstance(TASK.handler, DefaultHandler)


def test_paths_do_not_grow() -> None:
    """However often a prompt of a handler is handled itself, its path is that of the task with one mark."""
    prompt = TASK
    for _ in range(100):
        prompt = prompt.on_interrupt(None).on_exception(None)
    assert prompt.path == "task#exception"
    assert Prompt(path="a#b", prompt="").on_interrupt(None).path == "a#b#interrupt"


@given(st.text())
def test_law_12_what_went_wrong_is_no_template(message: str) -> None:
    """An error's words, and a tool's, go into the prompt as they are, whatever braces they hold."""
    assert message in TASK.on_exception(None)(error_message=message)
    assert TASK.on_interrupt(None)(call_results=message) == message


def test_templates_and_prompts_of_ones_own() -> None:
    """Each of the three may be another template, or a prompt that is taken as it is."""
    final = Prompt(path="stop", prompt="Stop.")
    task = TASK.extend(path="t", handler=DefaultHandler(exception="{error_message}!", interrupt_final=final))
    assert task.on_exception(None)(error_message="no") == "no!"
    assert task.on_interrupt_final(None) is final


def test_a_prompt_with_another_renderer_has_a_handler_all_the_same() -> None:
    """The handler's templates are its own: a Jinja prompt is repaired with the handler's renderer."""
    task = Prompt(path="t", prompt="{% if x %}{{ x }}{% endif %}", renderer=JinjaRenderer())
    assert task.on_exception(None)(error_message="{{ x }}") == "Error: {{ x }} Please fix."
    jinja = task.extend(path="u", handler=DefaultHandler(exception="{{ error_message }}", renderer=JinjaRenderer()))
    assert jinja.on_exception(None)(error_message="a") == "a"


class Recording:
    """A handler that knows the prompt it works for."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seen: list[tuple[str, object]] = []

    def on_exception(self, prompt: Prompt, session: object) -> Prompt:
        """Take both."""
        self.seen.append((prompt.path, session))
        return prompt.extend(path="again", prompt="{error_message}")

    def on_interrupt(self, session: object) -> Prompt:
        """Take the session alone."""
        self.seen.append(("", session))
        return Prompt(path="results", prompt="{call_results}")

    def on_interrupt_final(self, session: object) -> Any:  # noqa: ANN401, ARG002 - what it must not give
        """Give no prompt."""
        return "stop"


def test_a_handler_takes_the_prompt_and_the_session_or_the_session_alone() -> None:
    """Both forms are called with what they take; what is no prompt is refused."""
    handler = Recording()
    task = Prompt(path="t", prompt="", handler=handler)
    session = object()
    assert task.on_exception(session).path == "again"
    assert task.on_interrupt(session).path == "results"
    assert handler.seen == [("t", session), ("", session)]
    with pytest.raises(InvalidPrompt, match="gave a str"):
        task.on_interrupt_final(session)


def test_a_handler_may_be_a_class() -> None:
    """A class is made into an object once, with the prompt."""
    task = Prompt(path="t", prompt="", handler=Recording)
    assert isinstance(task.handler, Recording)
    assert task.on_exception(None).path == "again"
    assert task.handler.seen == [("t", None)]


def test_a_handler_that_lacks_a_method_is_named() -> None:
    """Something that is no handler is told by name when it is needed."""
    task = Prompt(path="t", prompt="", handler=object())  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidPrompt, match="no method on_interrupt"):
        task.on_interrupt(None)
