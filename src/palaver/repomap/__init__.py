"""A map of a repository: its most used definitions, as a text with a maximum number of tokens. Needs the extra `repomap`.

`look` reads a folder; `draw` makes a map from the result.
"""

from palaver.repomap.drawing import MAP_TOKENS, Drawing, draw
from palaver.repomap.parsing import Tags
from palaver.repomap.repository import look, require

__all__ = ["MAP_TOKENS", "Drawing", "Tags", "draw", "look", "require"]
