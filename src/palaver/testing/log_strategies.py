"""Any log, any plan: hypothesis strategies for the laws of the view."""

from __future__ import annotations

from hypothesis import strategies as st

from palaver.log import Run
from palaver.messages import Message, Role, Trust
from palaver.testing.logs import assert_closed, model, result, system, user
from palaver.view import Drop, Insert, Plan, Reason, Rewrite, View

__all__ = ["assert_closed", "flat", "plans", "sayings"]

_IDS = st.sampled_from(["a", "b", "c"])
_WORDS = st.sampled_from(["", " ", "yes", "no", "more"])
_ENDS = st.sampled_from(["", "", "\0", "\ud83d"])
"""How texts of models end sometimes: with what can neither be stored nor sent."""


_MESSAGES = st.one_of(
    st.builds(user, _WORDS),
    st.builds(system, _WORDS),
    st.builds(result, _IDS, _WORDS),
    st.builds(
        lambda text, calls, response: model(text, *calls, response=response),
        _WORDS,
        st.lists(_IDS, max_size=3),
        st.sampled_from([None, "r1", "r2"]),
    ),
)


@st.composite
def sayings(draw: st.DrawFn) -> list[Message]:
    """Any sequence of messages, sensible or not; only the ids of responses are what providers promise: unlike each other."""
    said: list[Message] = []
    newest = ""
    for number, message in enumerate(draw(st.lists(_MESSAGES, max_size=10))):
        response = message.response_id
        if response and not newest.startswith(response):
            response = f"{response}-{number}"
        said.append(
            message.model_copy(update={"response_id": newest if response and newest.startswith(response) else response})
        )
        if message.role is Role.ASSISTANT:
            newest = said[-1].response_id or ""
    return said


@st.composite
def plans(draw: st.DrawFn, view: View) -> Plan:
    """Any legal plan for a view."""
    free = sorted(set(range(len(view.exchanges))) - view.protected())
    drops = draw(st.sets(st.sampled_from(free))) if free else set()
    targets = [
        block.origin
        for index, x in enumerate(view.exchanges)
        if index not in drops
        for block in x.blocks()
        if block.origin is not None and block.reason is None and block.content.type in {"text", "tool_result"}
    ]
    rewritten = draw(st.sets(st.sampled_from(targets))) if targets else set()
    told = [run for x in view.exchanges for run in x.runs]
    sources = st.lists(st.sampled_from(told), max_size=2, unique=True) if told else st.just([])
    trust = st.sampled_from([None, *Trust])
    inserts = draw(st.lists(st.integers(0, len(view.exchanges)), max_size=2))
    return Plan(
        policy="any",
        drops=tuple(Drop(index=index) for index in sorted(drops)),
        rewrites=tuple(
            Rewrite(
                target=target,
                text=f"see {target}{draw(_ENDS)}",
                reason=Reason.OFFLOADED,
                sources=(
                    made := tuple(Run(dialog=run.dialog, start=run.start, stop=run.stop) for run in draw(sources))
                ),
                trust=draw(trust) if made else None,
            )
            for target in sorted(rewritten)
        ),
        inserts=tuple(Insert(before=place, text=f"record {n}{draw(_ENDS)}") for n, place in enumerate(inserts)),
    )


def flat(view: View) -> list[object]:
    """Give what is sent, in order: role and content of each block."""
    return [(turn.role, block.content) for x in view.exchanges for turn in x.turns for block in turn.blocks]
