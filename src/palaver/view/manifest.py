"""Manifests: what one model call saw, small enough to be kept for every call.

A manifest says how a view differs from what the log alone gives: which of the fold's exchanges it shows, which blocks it shows in
another form, and what it holds that no entry holds. Together with the log that is the view, to the byte. From one call to the next
little of it changes, so it is kept as a difference to the manifest before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from palaver.log import BlockEdit, Handle, Omitted, Place
from palaver.messages import TextContent, ToolResultContent, canonical_json
from palaver.view.checkpoint import omitted
from palaver.view.edits import edited, handle_of, omission
from palaver.view.fold import RULES
from palaver.view.view import Block, Exchange, View

__all__ = ["Manifest", "changed", "manifest", "patched", "restored", "rules_of"]

Manifest: TypeAlias = dict[str, Any]
"""A manifest as JSON values, with these keys:

`at`
    The number of the dialog's last own entry that the view took into account.
`rules`
    The version of the fold's rules (`palaver.view.RULES`); where there is none, the first.
`sections`
    The sections of the instructions that no entry holds, spelt out; they stand behind the others.
`items`
    What is shown, in order: `[start, stop]` for exchanges of the fold at `at` (stop exclusive), or an exchange spelt out.
`edits`
    The blocks that are shown in another form, or left out (`text` is null), by place.
`omitted`
    What the view leaves out, as a compaction records it.
`stale`
    `[start, stop]` for exchanges of the view behind which something was edited.
`policies`
    The policies that shaped it.
"""

_LISTS = ("sections", "items", "edits", "omitted", "stale", "policies")


def manifest(view: View, folded: View) -> Manifest:
    """Write down how a view differs from the fold of its dialog at the same entry.

    Args:
        view: What the model saw.
        folded: `fold(reader, view.dialog_id, view.at)`.

    Returns:
        The manifest; `restored` makes the view of it again, but for the facts and sources of derived texts, which no model sees.
    """
    known: _Known | None = None
    items: list[Any] = []
    edits: list[Any] = []
    follows = 0  # nearly all of a view is the fold's own, in its order: nothing is looked up for that
    for exchange in view.exchanges:
        index: int | None = follows
        if follows >= len(folded.exchanges) or folded.exchanges[follows] is not exchange:
            known = known or _Known(folded)
            index = known.index(exchange)
        follows = follows if index is None else index + 1
        found = None if index is None else _edits(folded.exchanges[index], exchange)
        if index is None or found is None:
            items.append(_spelling().dump_python(_as_seen(exchange), mode="json"))
            continue
        edits += found
        if items and isinstance(items[-1], list) and items[-1][1] == index:
            items[-1][1] = index + 1
        else:
            items.append([index, index + 1])
    return {
        "at": view.at,
        "rules": RULES,
        "sections": [
            _sections().dump_python(_block_as_seen(block), mode="json") for block in view.system if block.origin is None
        ],
        "items": items,
        "edits": [*_block_edits(folded.system, view.system), *edits],
        "omitted": [omitted(gone).model_dump(mode="json") for gone in view.omissions],
        "stale": _runs([exchange.stale for exchange in view.exchanges]),
        "policies": list(view.policies),
    }


def restored(stored: Mapping[str, Any], folded: View) -> View:
    """Make the view again that a manifest was written of.

    Args:
        stored: The whole manifest.
        folded: The fold of the dialog at the manifest's entry, by the manifest's rules.
    """
    edits = {handle_of(Place.model_validate(edit["target"])): edit for edit in stored["edits"]}
    stale = {index for start, stop in stored["stale"] for index in range(start, stop)}
    shown = (_shown(exchange, edits) for exchange in _exchanges(stored["items"], folded))
    return replace(
        folded,
        system=_system(stored, folded, edits),
        exchanges=tuple(replace(exchange, stale=index in stale) for index, exchange in enumerate(shown)),
        omissions=tuple(omission(Omitted.model_validate(gone)) for gone in stored["omitted"]),
        policies=tuple(stored["policies"]),
    )


@cache
def _spelling() -> TypeAdapter[Exchange]:
    """Give what spells exchanges out; made when it is first needed."""
    return TypeAdapter(Exchange)


@cache
def _sections() -> TypeAdapter[Block]:
    """Give what spells sections out; made when it is first needed."""
    return TypeAdapter(Block)


# --- one manifest as a difference to another -----------------------------------------------------------------------------------------


def changed(stored: Mapping[str, Any], before: Mapping[str, Any]) -> Manifest:
    """Give a manifest as a difference to an earlier one: of each list, the runs `[start, stop]` that the earlier one has too, and what is new."""
    lists = {name: list(_difference(stored[name], before.get(name, ()))) for name in _LISTS}
    return {"at": stored["at"], "rules": stored["rules"], **lists}


def patched(difference: Mapping[str, Any], before: Mapping[str, Any]) -> Manifest:
    """Give the whole manifest that `changed` made a difference of."""
    lists = {name: list(_undone(difference.get(name, ()), before.get(name, ()))) for name in _LISTS}
    return {"at": difference["at"], "rules": rules_of(difference), **lists}


def rules_of(stored: Mapping[str, Any]) -> int:
    """Give the version of the fold's rules by which a manifest was written."""
    rules: int = stored.get("rules", 1)
    return rules


def _difference(new: Sequence[Any], old: Sequence[Any]) -> Iterator[dict[str, Any]]:
    standing = {canonical_json(item): index for index, item in reversed(list(enumerate(old)))}
    places = [standing.get(canonical_json(item), -1) for item in new]
    # what is next to each other in both is one run; all that is new keeps the same distance and is one run, too
    runs = groupby(enumerate(places), key=lambda one: None if one[1] < 0 else one[1] - one[0])
    for _, run in runs:
        indexes = [index for index, _ in run]
        start = places[indexes[0]]
        if start < 0:
            yield {"new": [new[index] for index in indexes]}
        else:
            yield {"kept": [start, start + len(indexes)]}


def _undone(difference: Sequence[Mapping[str, Any]], old: Sequence[Any]) -> Iterator[Any]:
    for run in difference:
        yield from run["new"] if "new" in run else old[slice(*run["kept"])]


# --- what is shown of the fold -------------------------------------------------------------------------------------------------------


class _Known:
    """The exchanges of a fold, to be found again in a view that was made of it: by their first entry, or by what they say."""

    def __init__(self, folded: View) -> None:
        self._by_first: dict[Handle, int] = {}
        self._derived: dict[int, Exchange] = {}
        for index, exchange in enumerate(folded.exchanges):
            first = exchange.first
            if first is None:
                self._derived[index] = exchange
            else:
                self._by_first.setdefault(first, index)

    def index(self, exchange: Exchange) -> int | None:
        """Find an exchange; of those that no entry holds and that say the same, each is found once."""
        first = exchange.first
        if first is not None:
            return self._by_first.get(first)
        found = next((index for index, one in self._derived.items() if one == exchange), None)
        if found is not None:
            del self._derived[found]
        return found


def _edits(folded: Exchange, shown: Exchange) -> list[Any] | None:
    """Give what makes `shown` of an exchange of the fold; None where edits of blocks do not."""
    if shown is folded or shown == folded:
        return []
    if len(folded.turns) != len(shown.turns):
        return None
    edits = [
        edit
        for one, other in zip(folded.turns, shown.turns, strict=True)
        for edit in _block_edits(one.blocks, other.blocks)
    ]
    targets = {handle_of(Place.model_validate(edit["target"])): edit for edit in edits}
    return edits if _shown(folded, targets) == shown else None


def _block_edits(folded: Sequence[Block], shown: Sequence[Block]) -> Iterator[dict[str, Any]]:
    if folded is shown or folded == shown:
        return
    standing = {block.origin: block for block in shown if block.origin is not None}
    for block in folded:
        if block.origin is None:
            continue
        other = standing.get(block.origin)
        if other is None:
            yield {"target": _place(block.origin), "text": None}
        elif other != block and other.reason is not None:
            yield {
                "target": _place(block.origin),
                "text": _said(other),
                "reason": other.reason.value,
                "reversible": other.reversible,
                **_made_from(other),
            }


def _made_from(block: Block) -> dict[str, Any]:
    """Give what a block in another form was made from besides itself, and so its trust; nothing where that is nothing."""
    if not block.sources:
        return {}
    return {"sources": [run.model_dump(mode="json") for run in block.sources], "trust": block.trust.name.lower()}


def _said(block: Block) -> str:
    content = block.content
    if isinstance(content, ToolResultContent):
        return content.text()
    return content.content if isinstance(content, TextContent) else ""


def _as_seen(exchange: Exchange) -> Exchange:
    """Give an exchange as the model sees it: what the next record is made from is not shown, and would be most of the manifest."""
    turns = tuple(
        replace(turn, blocks=tuple(_block_as_seen(block) for block in turn.blocks)) for turn in exchange.turns
    )
    return replace(exchange, turns=turns, stale=False)


def _block_as_seen(block: Block) -> Block:
    return replace(block, facts="", sources=())


def _shown(exchange: Exchange, edits: Mapping[Handle, Mapping[str, Any]]) -> Exchange:
    if not edits:
        return exchange
    turns = tuple(replace(turn, blocks=_blocks(turn.blocks, edits)) for turn in exchange.turns)
    return exchange if turns == exchange.turns else replace(exchange, turns=turns)


def _blocks(blocks: tuple[Block, ...], edits: Mapping[Handle, Mapping[str, Any]]) -> tuple[Block, ...]:
    if not any(block.origin in edits for block in blocks):
        return blocks
    shown = []
    for block in blocks:
        edit = None if block.origin is None else edits.get(block.origin)
        if edit is None:
            shown.append(block)
        elif edit["text"] is not None:
            shown.append(edited(block, BlockEdit.model_validate(edit)))
    return tuple(shown)


def _system(stored: Mapping[str, Any], folded: View, edits: Mapping[Handle, Mapping[str, Any]]) -> tuple[Block, ...]:
    """Give the instructions: those of the log, and behind them what the manifest spells out, with its sources where the fold says the same."""
    spelt = map(_sections().validate_python, stored.get("sections", ()))
    known = [(_block_as_seen(block), block) for block in folded.system if block.origin is None]
    own = tuple(block for block in folded.system if block.origin is not None)
    return (*_blocks(own, edits), *(next((one for seen, one in known if seen == block), block) for block in spelt))


def _exchanges(items: Sequence[Any], folded: View) -> Iterator[Exchange]:
    for item in items:
        if isinstance(item, Mapping):
            yield _spelling().validate_python(item)
        else:
            yield from folded.exchanges[item[0] : item[1]]


def _runs(flags: Sequence[bool]) -> list[list[int]]:
    """Give where the flags are set, as runs."""
    runs = []
    for flag, group in groupby(enumerate(flags), key=lambda one: one[1]):
        places = [index for index, _ in group]
        if flag:
            runs.append([places[0], places[-1] + 1])
    return runs


def _place(handle: Handle) -> dict[str, Any]:
    return Place(dialog=handle.dialog, seq=handle.seq, block=handle.block).model_dump(mode="json")
