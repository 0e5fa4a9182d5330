"""Logs that grow in every way a log can: messages, other entries, compactions, forks and windows."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from palaver import log as entries
from palaver.testing.logs import Log, result
from palaver.testing.strategies import sayings
from palaver.view import View, apply, checkpoint, fold, held
from tests.view.plans import plans


def seen(log: Log, at: int | None = None, *, whole: bool = False) -> View:
    """Fold a log."""
    return fold(log.store, log.dialog, at, whole=whole)


def commit(log: Log, view: View) -> entries.Compaction:
    """Return the checkpoint of a view."""
    return checkpoint(view, held(log.store, log.dialog, view.at), policy="any", tokens_before=2, tokens_after=1)


def grow(data: st.DataObject, log: Log, *, compact: bool = True) -> Log:
    """Add something to a log, or fork all or a part of it."""
    what = data.draw(st.sampled_from(["say", "say", "entry", "entry", "entry", "fork", "window"]))
    if what == "say":
        log.put(*data.draw(sayings()))
    elif what == "entry":
        log.put(_entry(data, log, compact=compact))
    elif what == "fork":
        return log.fork()
    elif length := log.store.last(log.dialog).seq + 1:
        cut = data.draw(st.integers(0, length - 1))
        return Log(log, (*log.store.node(log.dialog).ranges, entries.Span(log.dialog, cut, length)))
    return log


def _entry(data: st.DataObject, log: Log, *, compact: bool) -> entries.Entry:
    number = str(data.draw(st.integers(0, 9)))
    makers: dict[str, Callable[[], entries.Entry]] = {
        "instructions": lambda: entries.Instructions(sections=(entries.Section(name="role", text=number),)),
        "toolset": lambda: entries.Toolset(tools=(entries.ToolSpec(name=f"tool_{number}"),)),
        "model": lambda: entries.ModelChange(model=f"model-{number}"),
        "summary": lambda: entries.BranchSummary(summary=f"on that branch, {number}"),
        "late": lambda: entries.LateResult(message=result("a", "late")),
        "custom": lambda: entries.Custom(custom_type="note"),
    }
    if compact:
        makers["compaction"] = lambda: _compaction(data, log)
    if places := _places(log):
        place = data.draw(st.sampled_from(places))
        entry = place.model_copy(update={"block": None})
        target = data.draw(st.sampled_from([place, entry]))
        flag = data.draw(st.booleans())
        makers |= {
            "pin": lambda: entries.Pin(target=entry, pinned=flag),
            "quarantine": lambda: entries.Quarantine(target=target, reason="refused", lifted=flag),
            "edit": lambda: _edit(data, log, place),
        }
    return makers[data.draw(st.sampled_from(sorted(makers)))]()


def _places(log: Log) -> list[entries.Place]:
    view = seen(log)
    blocks = [block for exchange in view.exchanges for block in exchange.blocks()] + list(view.system)
    return [
        entries.Place(dialog=block.origin.dialog, seq=block.origin.seq, block=block.origin.block)
        for block in blocks
        if block.origin is not None
    ]


def _compaction(data: st.DataObject, log: Log) -> entries.Compaction:
    """Return a checkpoint of the log as it is, or as it was a little before."""
    last = log.store.last(log.dialog).seq
    view = seen(log, data.draw(st.integers(max(-1, last - 2), last)))
    return commit(log, apply(view, data.draw(plans(view))))


def _edit(data: st.DataObject, log: Log, place: entries.Place) -> entries.ContextEdit:
    base = log.store.last(log.dialog).seq
    if place.block is not None and data.draw(st.booleans()):
        return entries.ContextEdit(
            base=base, omitted=(entries.Omitted(target=place, reason="over_budget"),), policy="edits"
        )
    edit = entries.BlockEdit(target=place, text="see there", reason="offloaded")
    return entries.ContextEdit(base=base, edits=(edit,), policy="edits")
