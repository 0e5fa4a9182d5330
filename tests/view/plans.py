"""Any legal plan for a view, as a hypothesis strategy."""

from __future__ import annotations

from hypothesis import strategies as st

from palaver.log import Run
from palaver.messages import Trust
from palaver.view import Drop, Insert, Plan, Reason, Remove, Rewrite, View

__all__ = ["flat", "plans"]

_ENDS = st.sampled_from(["", "", "\0", "\ud83d"])
"""How texts of models end sometimes: with what can neither be stored nor sent."""


@st.composite
def plans(draw: st.DrawFn, view: View) -> Plan:
    """Any legal plan for a view."""
    free = sorted(set(range(len(view.exchanges))) - view.protected())
    drops = draw(st.sets(st.sampled_from(free))) if free else set()
    kept = [exchange for index, exchange in enumerate(view.exchanges) if index not in drops]
    targets = [handle for each in kept for handle, letter in each.shown() if letter in "tr"]
    rewritten = draw(st.sets(st.sampled_from(targets))) if targets else set()
    several = [blocks[-1] for each in kept for turn in each.turns if len(blocks := turn.blocks) > 1]
    removable = [block.origin for block in several if block.origin and block.content.type == "text"]
    removed = draw(st.sets(st.sampled_from(removable))) if removable else set()
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
            for target in sorted(rewritten - removed)
        ),
        removes=tuple(Remove(target=target, reason=Reason.OVER_BUDGET) for target in sorted(removed)),
        inserts=tuple(Insert(before=place, text=f"record {n}{draw(_ENDS)}") for n, place in enumerate(inserts)),
    )


def flat(view: View) -> list[object]:
    """Return what is sent, in order: role and content of each block."""
    return [(turn.role, block.content) for x in view.exchanges for turn in x.turns for block in turn.blocks]
