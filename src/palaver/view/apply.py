"""Applying a plan: a view in, a smaller view out, with an omission for everything that left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.messages import Role, Speaker, TextContent, Trust
from palaver.view.blocks import Block, Reason, Turn
from palaver.view.edits import Change, in_force
from palaver.view.exchange import Exchange
from palaver.view.omissions import left_out
from palaver.view.plan import Insert, Plan, Remove, Rewrite
from palaver.view.view import Omission, View


def apply(view: View, plan: Plan) -> View:
    """Return the view as a plan wants it: valid by construction, with an omission for everything left out.

    Reads no body: exchanges that change are read when they are shown.

    Raises:
        InvalidInput: The plan drops what every view must show, or names an exchange or block that is not in the view or cannot be changed so.
    """
    if not plan:
        return view
    dropped = _dropped(view, plan)
    exchanges = tuple(_exchanges(view, plan, dropped, _changes(view, plan, dropped)))
    removed = tuple(Omission(reason=change.reason, handle=change.target, by=plan.policy) for change in plan.removes)
    omissions = left_out(view, dropped, plan.policy) if dropped else view.omissions
    return replace(
        view,
        exchanges=exchanges,
        omissions=(*omissions, *removed),
        edited=len(exchanges),
        policies=view.policies if plan.policy in view.policies else (*view.policies, plan.policy),
    )


def _dropped(view: View, plan: Plan) -> Mapping[int, Reason]:
    dropped: dict[int, Reason] = {}
    for drop in plan.drops:
        indexes = drop.indexes
        if not 0 <= indexes.start <= indexes.stop <= len(view.exchanges):
            message = f"The plan of {plan.policy} drops exchanges {indexes.start} to {indexes.stop}; the view has {len(view.exchanges)}."
            raise InvalidInput(message)
        dropped.update(dict.fromkeys(indexes, drop.reason))
    forbidden = sorted(index for index in view.protected() if index in dropped)
    if forbidden:
        message = (
            f"The plan of {plan.policy} drops exchange {forbidden[0]}, which every view must hold: "
            "the newest user message, pinned exchanges and open calls stay."
        )
        raise InvalidInput(message)
    return dropped


def _changes(view: View, plan: Plan, dropped: Mapping[int, Reason]) -> Mapping[int, dict[Handle, Change]]:
    """Return the plan's changes by the exchange that shows the block."""
    changes: dict[int, dict[Handle, Change]] = {}
    wanted: tuple[Rewrite | Remove, ...] = (*plan.rewrites, *plan.removes)
    for change in wanted:
        index = view.find(change.target)
        if index is None or index in dropped:
            raise InvalidInput(
                f"The plan of {plan.policy} changes block {change.target}, which no exchange of the view shows."
            )
        changes.setdefault(index, {})[change.target] = _form(change)
    return changes


def _form(change: Rewrite | Remove) -> Change:
    if isinstance(change, Remove):
        return Change(change.reason)
    return Change(change.reason, change.text, change.reversible, change.sources, change.trust)


def _exchanges(
    view: View, plan: Plan, dropped: Mapping[int, Reason], changes: Mapping[int, dict[Handle, Change]]
) -> Iterator[Exchange]:
    inserts: dict[int, list[Insert]] = {}
    for insert in plan.inserts:
        inserts.setdefault(min(max(insert.before, 0), len(view.exchanges)), []).append(insert)
    for index, exchange in enumerate(view.exchanges):
        if index in inserts:
            yield from map(_inserted, inserts[index])
        if index in changes:
            yield _changed(exchange, changes[index], plan)
        elif index not in dropped:
            yield exchange
    yield from map(_inserted, inserts.get(len(view.exchanges), ()))


def _changed(exchange: Exchange, changes: Mapping[Handle, Change], plan: Plan) -> Exchange:
    """Return an exchange with more changes. A block that a provider refused stays set aside."""
    merged = dict(exchange.changes)
    for target, change in changes.items():
        before = in_force(merged, target) if merged else None
        if before is None or before.reason is not Reason.QUARANTINED:
            merged[target] = change.after(before)
    responds = exchange.role is Role.ASSISTANT
    for handle, letter in exchange.shape():
        wanted = changes.get(handle)
        if wanted is not None and (letter == "c" or (letter == "r" and responds and wanted.text is None)):
            message = (
                f"The plan of {plan.policy} changes block {handle}: a call stays whole, and its result stays with it."
            )
            raise InvalidInput(message)
    made = replace(exchange, changes=merged)
    removes = any(change.text is None for change in changes.values())
    if removes and all(letter == "r" and responds for _, letter in made.shown()):
        message = (
            f"The plan of {plan.policy} removes every block of a {exchange.role.value} turn: drop the exchange instead."
        )
        raise InvalidInput(message)
    return made


def _inserted(insert: Insert) -> Exchange:
    block = Block(
        content=TextContent(content=insert.text),
        derived=insert.label,
        sources=insert.sources,
        speaker=Speaker.SUMMARY,
        trust=min(insert.trust, Trust.MODEL),
    )
    return Exchange.of((Turn(role=Role.USER, blocks=(block,)),), derived=insert.label)
