"""Core memory in the instructions: a section behind all others, written anew only when a block says something else."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.agent.run import Run
from palaver.log import Entry, Handle, Instructions, Section, decode_entry
from palaver.view import View

__all__ = ["SECTION", "remembered"]

SECTION = "palaver.memory"
"""The name of the section."""


def remembered(run: Run, view: View) -> Iterator[Entry]:
    """Give the entry that puts the core memory in force as it stands, whoever changed it; nothing where it is in force already."""
    if run.settings.memory is None:
        return
    before = _in_force(run, view)
    text = run.settings.memory.rendered()
    known = next((section.text for section in before if section.name == SECTION), "")
    if text == known:
        return
    others = tuple(section for section in before if section.name != SECTION)
    own = (Section(name=SECTION, text=text, behind=True),) if text else ()
    yield Instructions(sections=(*others, *own))


def _in_force(run: Run, view: View) -> tuple[Section, ...]:
    """Give the sections in force: those of the entry that the view says its instructions are from."""
    for span in view.state:
        place = Handle(span.dialog, span.start)
        if run.dialog.store.header(*place[:2]).kind == "instructions":
            entry = decode_entry(run.dialog.store.body(*place[:2]))
            return entry.sections if isinstance(entry, Instructions) else ()
    return ()
