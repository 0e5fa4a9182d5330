"""The registry of prompts and context managers."""

from collections.abc import Iterator

import pytest

from palaver.errors import InvalidInput, UnknownPolicy, UnknownPrompt
from palaver.prompts import Prompt, Runtime, get_default_runtime, set_default_runtime


def test_r175_prompts_by_path() -> None:
    """A registered prompt is found by its path as the very object; an unknown path names what is close."""
    runtime = Runtime()
    prompt = Prompt(path="research/agent", prompt="hi")
    assert runtime.register_prompt(prompt) == "research/agent"
    assert runtime.get_prompt("research/agent") is prompt
    with pytest.raises(UnknownPrompt) as caught:
        runtime.get_prompt("research/agnet")
    assert isinstance(caught.value, KeyError)
    assert caught.value.close == ("research/agent",)
    with pytest.raises(UnknownPrompt) as caught:
        runtime.get_prompt("x:agent")
    assert "research/agent" in caught.value.close


def test_r175_namespaces() -> None:
    """The same path may stand in several namespaces; a bare path falls back to the default one."""
    runtime = Runtime(default_namespace="mine")
    mine, theirs = Prompt(path="p", prompt="1"), Prompt(path="p", prompt="2")
    assert runtime.register_prompt(mine, namespace="mine") == "mine:p"
    runtime.register_prompt(theirs, namespace="theirs")
    assert runtime.get_prompt("p") is mine
    assert runtime.get_prompt("theirs:p") is theirs
    assert runtime.prompts() == ("mine:p", "theirs:p")


def test_r179_overwriting() -> None:
    """A taken key is replaced unless that is forbidden; then the first stays."""
    runtime = Runtime()
    first, second = Prompt(path="p", prompt="1"), Prompt(path="p", prompt="2")
    runtime.register_prompt(first)
    with pytest.raises(ValueError, match="registered already"):
        runtime.register_prompt(second, overwrite=False)
    assert runtime.get_prompt("p") is first
    runtime.register_prompt(second)
    assert runtime.get_prompt("p") is second


def test_r164_context_managers_by_class_name() -> None:
    """A class is registered under its own `name`, also as a decorator; an unknown name is a typed error."""
    runtime = Runtime()

    @runtime.register_context_manager
    class Summary:
        name = "summary"

    assert runtime.get_context_manager("summary") is Summary
    assert runtime.context_managers() == ("summary",)
    with pytest.raises(UnknownPolicy) as caught:
        runtime.get_context_manager("sumary")
    assert caught.value.close == ("summary",)
    with pytest.raises(InvalidInput):
        runtime.register_context_manager(Summary, overwrite=False)


def test_r165_a_class_without_name_is_refused() -> None:
    """No name, an empty one or one that is no text is a ValueError."""

    class Nameless: ...

    class Empty:
        name = ""

    class Number:
        name = 3

    for manager in (Nameless, Empty, Number):
        with pytest.raises(ValueError, match="name"):
            Runtime().register_context_manager(manager)


def test_r178_two_runtimes_are_isolated() -> None:
    """What one runtime knows, the other does not."""
    one, two = Runtime(), Runtime()
    one.register_prompt(Prompt(path="p", prompt=""))
    with pytest.raises(UnknownPrompt):
        two.get_prompt("p")


@pytest.fixture
def other_default() -> Iterator[Runtime]:
    """Put a runtime in the default's place for one test."""
    runtime = Runtime()
    before = set_default_runtime(runtime)
    yield runtime
    set_default_runtime(before)


def test_r177_the_default_runtime(other_default: Runtime) -> None:
    """The default runtime is the one that was set."""
    assert get_default_runtime() is other_default
