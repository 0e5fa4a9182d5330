"""The runtime: what names mean, in isolation from every other runtime."""

from typing import Any

import pytest

from palaver.errors import Ambiguous, InvalidInput, NotFound
from palaver.prompts import Prompt, Runtime, get_default_runtime, set_default_runtime
from palaver.session import Dialog
from palaver.tools import Function, tool


def test_prompts_by_path_and_namespace() -> None:
    """R175, R179: a prompt is found by its path as the very object; a bare path falls back to the default namespace; overwriting can be forbidden."""
    runtime = Runtime(default_namespace="mine")
    mine, theirs = Prompt(path="research/agent", prompt="1"), Prompt(path="research/agent", prompt="2")
    assert runtime.register_prompt(mine, namespace="mine") == "mine:research/agent"
    runtime.register_prompt(theirs, namespace="theirs")
    assert runtime.get_prompt("research/agent") is mine
    assert runtime.get_prompt("theirs:research/agent") is theirs
    assert runtime.prompts() == ("mine:research/agent", "theirs:research/agent")
    with pytest.raises(NotFound) as caught:
        runtime.get_prompt("mine:research/agnet")
    assert isinstance(caught.value, KeyError)
    assert "mine:research/agent" in caught.value.close
    with pytest.raises(ValueError, match="already registered"):
        runtime.register_prompt(theirs, namespace="mine", overwrite=False)
    assert runtime.get_prompt("research/agent") is mine
    runtime.register_prompt(theirs, namespace="mine")
    assert runtime.get_prompt("research/agent") is theirs


def test_context_managers_by_class_name() -> None:
    """R164: a class is registered under its own `name`, also as a decorator; an unknown name is a typed error."""
    runtime = Runtime()

    @runtime.register_context_manager
    class Summary:
        name = "summary"

    assert runtime.get_context_manager("summary") is Summary
    assert runtime.context_managers() == ("summary",)
    with pytest.raises(NotFound, match="Close: summary"):
        runtime.get_context_manager("sumary")
    with pytest.raises(InvalidInput):
        runtime.register_context_manager(Summary, overwrite=False)


def test_default_runtime_is_the_one_that_was_set() -> None:
    """R177: the default runtime is the one that was set; a dialog without a runtime looks up its prompts there."""
    before = set_default_runtime(mine := Runtime())
    try:
        assert get_default_runtime() is mine
        mine.register_prompt(Prompt(path="only/here", prompt="Found."))
        assert Dialog(owner="coder").put_prompt("only/here").content == "Found."
    finally:
        set_default_runtime(before)


# --- tools -------------------------------------------------------------------------------------------------------------------


@tool
def search(query: str) -> str:
    """Find something."""
    return query


def fetch(url: str) -> str:
    """Get a page."""
    return url


class Tactical:
    """What a tactic looks like from here."""

    tactic_type = "research"

    @classmethod
    def as_function(cls, tool: str = "", *, runtime: Any = None) -> Function:  # noqa: ANN401, ARG003 - a runtime
        """Return the function for a method, or for the whole."""
        return Function(tool or "research", "Does research.", {"task": {"type": "string"}}, function=lambda task: task)


@pytest.fixture
def runtime() -> Runtime:
    """A runtime with functions of one name in two packages, one alone, and a tactic."""
    made = Runtime()
    made.register_tool(search, namespace="web.tools")
    made.register_tool(Function("search", "Another.", {"q": {"type": "string"}}), namespace="files.tools")
    made.register_tool(fetch)
    made.register_tool(fetch, name="get", namespace="web.tools")
    made.register_tactic(Tactical, namespace="lab.tactics")
    return made


def names(prompt: Prompt) -> list[str]:
    """Name the functions of a resolved prompt."""
    return [each.name for each in prompt.function_list]


def test_references_lead_to_functions(runtime: Runtime) -> None:
    """R127: `pkg.tools:name` and `pkg:name` mean the registered function; the original prompt stays as it was."""
    for ref in ("web.tools:search", "web:search"):
        prompt = Prompt(path="p", prompt="", function_list=[ref, "fetch"])
        resolved = prompt.resolve(runtime)
        assert resolved.function_list[0] is search
        assert names(resolved) == ["search", "fetch"]
        assert prompt.function_list == (ref, "fetch")
        assert resolved.path == prompt.path
        assert resolved.resolve(runtime) is resolved


def test_bare_names_are_neighbours_first(runtime: Runtime) -> None:
    """R127: a bare name is looked for in the prompt's own package; from elsewhere, a name of two packages is ambiguous."""
    prompt = Prompt(path="ask", prompt="", function_list=["search"])
    runtime.register_prompt(prompt, namespace="files.prompts")
    assert prompt.resolve(runtime).function_list[0].description == "Another."
    runtime.register_prompt(other := prompt.extend(path="other"), namespace="web")
    assert other.resolve(runtime).function_list == (search,)
    with pytest.raises(Ambiguous) as caught:
        prompt.extend(path="third").resolve(runtime)
    assert caught.value.candidates == ("files.tools:search", "web.tools:search")
    assert names(prompt.extend(path="fourth", function_list=["get"]).resolve(runtime)) == ["fetch"]


def test_references_lead_to_tactics(runtime: Runtime) -> None:
    """R101: a tactic serves as a tool, by its name or its key; `#tool` chooses one of its methods; the class itself may stand there too."""
    refs = ["lab.tactics:research", "research#summarize"]
    assert names(Prompt(path="p", prompt="", function_list=refs).resolve(runtime)) == ["research", "summarize"]
    assert names(Prompt(path="p", prompt="", function_list=[Tactical]).resolve(runtime)) == ["research"]


def test_unknown_references_name_what_is_close(runtime: Runtime) -> None:
    """R127: NotFound is a KeyError that carries the references that could have been meant."""
    cases: list[Any] = [
        ("web.tools:serach", ("web.tools:search", "files.tools:search")),
        ("fetsch", ("fetch",)),
        ("nowhere:search", ("files.tools:search", "web.tools:search")),
        ("lab.tactics:reserch", ("lab.tactics:research",)),
    ]
    for ref, close in cases:
        with pytest.raises(NotFound) as caught:
            Prompt(path="p", prompt="", function_list=[ref]).resolve(runtime)
        assert set(close) <= set(caught.value.close)
        assert isinstance(caught.value, KeyError)


def test_two_functions_of_one_name_are_refused(runtime: Runtime) -> None:
    """R127: the model could not tell them apart."""
    with pytest.raises(InvalidInput, match="Two tools are called 'search'"):
        Prompt(path="p", prompt="", function_list=["web:search", "files:search"]).resolve(runtime)


def test_callables_become_functions(runtime: Runtime) -> None:
    """R112: a plain function in the list is a tool; a number is not, nor is a list written as a text."""
    assert names(Prompt(path="p", prompt="", function_list=[fetch]).resolve(runtime)) == ["fetch"]
    with pytest.raises(InvalidInput, match="is not a tool"):
        Prompt(path="p", prompt="", function_list=[3]).resolve(runtime)


def test_a_declaration_is_linked_by_its_name(runtime: Runtime) -> None:
    """R128: the declaration's own words stay, the implementation comes from the runtime; where they differ it is refused."""
    declared = Function("fetch", "My own words.", {"url": {"type": "string"}}, required=["url"])
    bound = Prompt(path="p", prompt="", function_list=[declared]).resolve(runtime).function_list[0]
    assert (bound.description, bound.linked) == ("My own words.", True)
    assert not declared.linked
    with pytest.raises(ValueError, match="has the arguments address"):
        Prompt(path="p", prompt="", function_list=[declared.extend(properties={"address": {}}, required=())]).resolve(
            runtime
        )
    unknown = Function("unheard_of")
    assert Prompt(path="p", prompt="", function_list=[unknown]).resolve(runtime).function_list == (unknown,)


# --- everything else that has a name -------------------------------------------------------------------------------------------


def test_taken_keys_are_refused() -> None:
    """R179: tools, tactics, configurations and invokers are never replaced unseen; with overwrite they are."""
    runtime = Runtime()
    runtime.register_tool(search)
    runtime.register_tactic(Tactical)
    runtime.register_config("lab", {"agent_configs": []})
    runtime.register_invoker("mine", dict)
    again: list[tuple[Any, Any]] = [
        (runtime.register_tool, (search,)),
        (runtime.register_tactic, (Tactical,)),
        (runtime.register_config, ("lab", {})),
        (runtime.register_invoker, ("mine", list)),
    ]
    for register, args in again:
        with pytest.raises(ValueError, match="already registered"):
            register(*args)
        register(*args, overwrite=True)
    assert runtime.invokers() == ("mine",)
    assert runtime.get_invoker("mine") is list


def test_two_runtimes_are_isolated_in_everything(runtime: Runtime) -> None:
    """R178: tools and tactics of one runtime are unknown in another, and in the default one."""
    for other in (Runtime(), get_default_runtime()):
        for get, name in ((other.get_tool, "fetch"), (other.get_tactic, "lab.tactics:research")):
            with pytest.raises(NotFound):
                get(name)
    assert runtime.get_tool("fetch").name == "fetch"
