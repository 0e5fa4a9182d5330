"""The languages of a map: the grammar of each, the endings of its files, and the query that finds names.

The queries are tree-sitter patterns in `queries/`, written for the grammars that the extra `repomap` installs. Captures: `@type`, `@function`
and `@constant` are definitions (of a constant only the first line is shown); `@scope` contains definitions and is not one itself, `@members` the
same for the members of a type; each has a `@name` and may have a `@body`. `@plain` is a use of a name that is not a member, `@reference` any other use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """A language that a map can show.

    Attributes:
        name: Its name.
        package: The module that contains the grammar.
        endings: The endings of its files.
        queries: The files in `queries/` whose patterns apply.
        grammar: The function of `package` that returns the grammar.
        family: Languages of one family share names, such as C and C++; its own name by default.
    """

    name: str
    package: str
    endings: tuple[str, ...]
    queries: tuple[str, ...]
    grammar: str = "language"
    family: str = ""

    def query(self) -> str:
        """Return the patterns."""
        folder = files("palaver.repomap") / "queries"
        return "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in self.queries)


_JAVASCRIPT = ("script", "javascript", "jsx")
_TYPESCRIPT = ("script", "typescript")

LANGUAGES: tuple[Language, ...] = (
    Language("python", "tree_sitter_python", (".py", ".pyi", ".pyw"), ("python",)),
    Language("javascript", "tree_sitter_javascript", (".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT, family="script"),
    Language(
        "typescript", "tree_sitter_typescript", (".ts", ".mts", ".cts"), _TYPESCRIPT, "language_typescript", "script"
    ),
    Language("tsx", "tree_sitter_typescript", (".tsx",), (*_TYPESCRIPT, "jsx"), "language_tsx", "script"),
    Language("go", "tree_sitter_go", (".go",), ("go",)),
    Language("rust", "tree_sitter_rust", (".rs",), ("rust",)),
    Language("java", "tree_sitter_java", (".java",), ("java",)),
    Language("c", "tree_sitter_c", (".c",), ("c",)),
    Language(  # most headers of C parse as C++
        "cpp",
        "tree_sitter_cpp",
        (".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++"),
        ("c", "cpp"),
        family="c",
    ),
)
"""All languages. The ending of a file alone decides which of them reads it."""

_BY_ENDING: Mapping[str, Language] = MappingProxyType({ending: each for each in LANGUAGES for ending in each.endings})


def language_of(path: str) -> Language | None:
    """Return the language of a file by the ending of its name, or None."""
    name = path.rsplit("/", 1)[-1]
    return _BY_ENDING.get(name[name.rfind(".") :].lower()) if "." in name else None
