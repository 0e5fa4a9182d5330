"""Graphs that LangGraph runs on stores of palaver: interrupted, taken up by another process, sent back in time."""

from typing import Any, TypedDict

import pytest

from palaver import Session
from palaver.store import Store

graphs = pytest.importorskip("langgraph.graph", reason="langgraph is not installed: ./run integrations")
types = pytest.importorskip("langgraph.types")
adapter = pytest.importorskip("palaver.integrations.langgraph")


def built(store: Store) -> Any:  # noqa: ANN401 - a compiled graph
    """Return a graph that answers, asks a person, and answers again; with a saver of its own."""

    def think(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [("ai", f"thought about {state['messages'][-1].content}")]}

    def ask(state: dict[str, Any]) -> dict[str, Any]:
        del state
        return {"messages": [("human", types.interrupt("which?"))]}

    graph = graphs.StateGraph(graphs.MessagesState)
    for name, node in (("think", think), ("ask", ask), ("again", think)):
        graph.add_node(name, node)
    for pair in ((graphs.START, "think"), ("think", "ask"), ("ask", "again"), ("again", graphs.END)):
        graph.add_edge(*pair)
    return graph.compile(checkpointer=adapter.PalaverCheckpointSaver(store))


def test_graph_resumes_and_goes_back_in_time(store: Store) -> None:
    """What was interrupted goes on in another process; what is sent back in time is a fork; every dialog can be read."""
    config: Any = {"configurable": {"thread_id": "talk"}}
    stopped = built(store).invoke({"messages": [("human", "tea")]}, config)
    assert [one.value for one in stopped["__interrupt__"]] == ["which?"]
    built(store).invoke(types.Command(resume="green"), config)
    words = ["tea", "thought about tea", "green", "thought about green"]
    session = Session.open(store, "talk")
    assert [one.text_content() for one in session.root.messages] == words

    history = list(built(store).get_state_history(config))
    waiting = next(one for one in history if one.next == ("ask",))
    graph = built(store)
    branch = graph.update_state(waiting.config, {"messages": [("human", "black")]}, as_node="ask")
    other = graph.invoke(None, branch)
    assert [one.content for one in other["messages"]] == ["tea", "thought about tea", "black", "thought about black"]
    found = [[one.text_content() for one in dialog.messages] for dialog in session.dialogs if len(dialog.messages)]
    assert found == [words, ["tea", "thought about tea", "black", "thought about black"]]
    assert [one.content for one in built(store).get_state(config).values["messages"]][-1] == "thought about black"


def test_approved_branch_acts_on_its_own_state(store: Store) -> None:
    """A branch that is approved after its step was run again keeps the values of its own parent."""
    drawn = iter((1, 2))
    acted: list[int] = []

    class State(TypedDict):
        number: int

    def review(state: State) -> None:
        types.interrupt(state["number"])

    graph = graphs.StateGraph(State)
    graph.add_node("draw", lambda _: {"number": next(drawn)})
    graph.add_node("review", review)
    graph.add_node("act", lambda state: acted.append(state["number"]))
    for pair in ((graphs.START, "draw"), ("draw", "review"), ("review", "act"), ("act", graphs.END)):
        graph.add_edge(*pair)
    config: Any = {"configurable": {"thread_id": "talk"}}
    compiled = graph.compile(checkpointer=adapter.PalaverCheckpointSaver(store))
    compiled.invoke({"number": 0}, config)
    first = compiled.get_state(config)
    compiled.invoke(None, first.parent_config)  # the step runs again: another branch
    again = compiled.get_state(config)
    compiled.invoke(types.Command(resume=True), first.config)
    assert (first.values, again.values, acted) == ({"number": 1}, {"number": 2}, [1])
