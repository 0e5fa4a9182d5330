"""The screen of the documentation is what a chat shows in tmux, and the keys of a person work there."""

from __future__ import annotations

import re
import shutil

import pytest

from tools import record_chat

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


def test_the_recorded_screen_is_what_a_chat_shows() -> None:
    """Recording anew gives the text that stands in the page, and the picture beside it; `tools/record_chat.py` writes both."""
    styled, plain = record_chat.record()
    (shown,) = record_chat.BLOCK.findall(record_chat.PAGE.read_text(encoding="utf-8"))
    assert record_chat.block(plain) == shown
    drawn = record_chat.picture(styled)
    assert drawn.strip() == record_chat.PICTURE.read_text(encoding="utf-8").strip()
    assert "font-face" not in drawn
    assert re.search(r'(?:href|src|url)="?\(?https?:', drawn) is None


def test_the_keys_of_a_person() -> None:
    """Ctrl-C at a question, at the prompt and twice; what was undecided is decided by /continue, and the arrow gives the last line back."""
    with record_chat.terminal() as here:
        here.wait("Ctrl-D ends.")
        here.type("What should I wear in Oslo today?")
        here.wait("23 written")
        here.type("Remove my packing list of 2019.")
        here.wait("its arguments:")
        here.keys("C-c")
        here.wait("/continue asks again.")
        here.keys("/", "c", "o", "n", "t", "Tab", "Enter")
        here.wait("? remove", times=2)
        here.type("n")
        here.wait("Why not?")
        here.type("keep it")
        here.wait("user said: keep it")
        here.wait("6 written")
        here.keys("Up", "Up", "C-c")
        here.wait("(Ctrl-C again, or Ctrl-D, ends the chat.)")
        here.type("/quit")
        here.gone()
