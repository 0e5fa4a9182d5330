"""The repo map: what a repository defines and which of it matters, as a text of so many tokens. Needs the extra `repomap`.

A folder is looked at (`look`), and then drawn (`draw`) as often as anybody likes: what a map shows is a function of what was seen, of what
somebody is at, and of a number of tokens.
"""

from palaver.repomap.drawing import Drawing, draw
from palaver.repomap.kept import load, save
from palaver.repomap.languages import LANGUAGES, Language, language_of
from palaver.repomap.repository import File, Repository, look, require
from palaver.repomap.tags import CUT, WIDTH, Definition, Line, Tags, Use, plain
from palaver.repomap.walking import Limits

__all__ = [
    "CUT",
    "LANGUAGES",
    "WIDTH",
    "Definition",
    "Drawing",
    "File",
    "Language",
    "Limits",
    "Line",
    "Repository",
    "Tags",
    "Use",
    "draw",
    "language_of",
    "load",
    "look",
    "plain",
    "require",
    "save",
]
