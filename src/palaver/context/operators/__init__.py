"""Operators: small pure functions that make a layout smaller.

Each takes a layout and the cut, changes only exchanges before the cut that are not protected, and names the handle of whatever it hides.
"""

from palaver.context.operators.clear import clear
from palaver.context.operators.drop import drop, drop_with_note
from palaver.context.operators.media import hide_media
from palaver.context.operators.reasoning import drop_reasoning
from palaver.context.operators.shorten import shorten

__all__ = ["clear", "drop", "drop_reasoning", "drop_with_note", "hide_media", "shorten"]
