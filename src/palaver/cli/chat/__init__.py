"""palaver chat: talk to any model in the terminal, in a session that is kept."""

from __future__ import annotations

from palaver.cli.chat.loop import Chat, lines_for, signals_end_it
from palaver.cli.chat.screen import JsonScreen, Screen
from palaver.cli.chat.setup import prepared
from palaver.cli.chat.wanted import Wanted
from palaver.cli.options import JsonOption, StoreOption, worded
from palaver.cli.surroundings import store_url
from palaver.store import open_store
from palaver.store.redacting import redacted_store

__all__ = ["run"]

_MEMORY = frozenset({"memory:", ":memory:"})


@worded(Wanted)
def run(wanted: Wanted, *, store: StoreOption = None, json: JsonOption = False) -> int:
    """Talk to a model. Everything is kept, from the first message on; --session takes it up again, also in the middle of a turn.

    In a pipe each line is a message, and answers go to standard output; the exit code is that of the last message. Keys of providers are read
    by their own clients, from where they always do (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …). /help lists the commands.
    """
    name = store_url(store)
    source = redacted_store(open_store(name), wanted.redact)
    screen = JsonScreen() if json else Screen()
    lines = lines_for(screen, remember=name not in _MEMORY)
    try:
        with signals_end_it(), prepared(wanted, source, screen.note) as talk:
            return Chat(talk, screen, lines, agree=wanted.yes).run()
    finally:
        screen.close()
        lines.close()
        source.close()
