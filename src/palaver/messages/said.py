"""Alias of `palaver.messages.words_of` until its callers import it from there."""

from palaver.messages.blocks import words_of

__all__ = ["words_of"]
