"""Cutting in steps.

A policy that looks at the newest request only moves its cut with every request, and every request then begins differently from the
one before: no provider finds it in its cache. Here the cut is a function of the history: the exchanges are gone through from the
first, and only where they outgrow the room is something done, down to a low mark. Between two such steps a request is the one before
and what is new (law 7), although nothing was stored.
"""

from __future__ import annotations

from dataclasses import replace

from palaver.context.ground import Ground, Layout
from palaver.context.operators.operator import Edit
from palaver.view import Drop, Plan

__all__ = ["laid_out", "plan_of"]


def laid_out(ground: Ground, edit: Edit) -> Layout:
    """Go through the exchanges from the first, and make the layout smaller wherever it outgrows the room."""
    layout = Layout()
    for index in range(len(ground.view.exchanges)):
        layout = replace(layout, tokens=layout.tokens + ground.whole(index))
        if layout.tokens > ground.high:
            layout = edit(ground, index, layout)
    return layout


def plan_of(ground: Ground, layout: Layout, policy: str) -> Plan:
    """Write a layout down as a plan."""
    protected = ground.view.protected()
    missing = [index for index in ground.missing(layout) if index not in protected]
    gone = frozenset(missing)
    return Plan(
        policy=policy,
        drops=tuple(Drop(index=index, reason=ground.stand_in.reason) for index in missing),
        rewrites=tuple(
            rewrite for index, form in sorted(layout.forms.items()) if index not in gone for rewrite in form.rewrites
        ),
        inserts=(ground.stand_in.insert(ground, layout),) if missing and layout.told else (),
    )
