"""A map of a repository: its most used definitions, as a text with a maximum number of tokens. Needs the extra `repomap`.

`look` reads a folder; `draw` makes a map from the result.
"""

from palaver.repomap.drawing import MAP_TOKENS, Drawing, draw
from palaver.repomap.files import ScanLimits
from palaver.repomap.languages import LANGUAGES, Language, language_of
from palaver.repomap.parsing import Definition, SourceLine, Tags, Use, visible
from palaver.repomap.repository import RepoFile, Repository, look, require

__all__ = [
    "LANGUAGES",
    "MAP_TOKENS",
    "Definition",
    "Drawing",
    "Language",
    "RepoFile",
    "Repository",
    "ScanLimits",
    "SourceLine",
    "Tags",
    "Use",
    "draw",
    "language_of",
    "look",
    "require",
    "visible",
]
