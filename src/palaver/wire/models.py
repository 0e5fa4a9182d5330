"""Which model a name means, and what each model accepts: rows of a table, each with its source.

A row is for some families of models from a version on; the rows are in the modules `models` of :mod:`palaver.providers`, the newest first. A name
is compared by its parts, so that the spellings of sellers, dates and regions need no rows of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from palaver.errors import warn
from palaver.messages.frozen import EMPTY
from palaver.tokens.names import UnknownModelWarning, read_name

Version: TypeAlias = tuple[int, int]
"""A major and a minor number."""

# --- names ---------------------------------------------------------------------------------------------------------------


class ModelId(NamedTuple):
    """A model, apart from how a seller, a region or a date spells it.

    Attributes:
        line: The line of models: `claude`, `gpt`, `gpt-4o`, `o` or `gemini`; for other makers the first word of the name.
        family: What tells models of one version apart, such as `opus` or `flash-lite`; the rest of the name where it has no version.
        version: The version; None where the name has none.
    """

    line: str
    family: str
    version: Version | None

    @property
    def maker(self) -> str:
        """Who makes it: `anthropic`, `openai`, `google`, or empty."""
        return _MAKERS.get(self.line, "")


_MAKERS: Mapping[str, str] = {
    "claude": "anthropic",
    "gpt": "openai",
    "gpt-4o": "openai",
    "o": "openai",
    "gemini": "google",
}
_WORDS = r"[a-z]+(?:-(?!preview|latest|exp)[a-z]+)*"
_LINES: Sequence[tuple[str, re.Pattern[str]]] = (
    # claude-opus-5-5, claude-sonnet-4.5, claude-3-5-haiku-latest, claude-instant-1.2
    (
        "claude",
        re.compile(
            r"claude-(?:(?P<family>[a-z]{2,})-)?v?(?P<major>\d{1,2})(?!\d)(?:[-.](?P<minor>\d{1,2})(?!\d))?(?:-(?P<after>[a-z]{3,}))?"
        ),
    ),
    ("gpt-4o", re.compile(rf"(?:chat)?gpt-(?P<major>4)o(?:-(?P<family>{_WORDS}))?")),
    ("gpt", re.compile(rf"gpt-(?P<major>\d{{1,2}})(?!\d)(?:\.(?P<minor>\d{{1,2}}))?(?:-(?P<family>{_WORDS}))?")),
    ("o", re.compile(rf"o(?P<major>\d)(?:-(?P<family>{_WORDS}))?(?![a-z\d])")),
    # gemini-4-argon, gemini-2.5-flash-lite-preview-06-17
    ("gemini", re.compile(rf"gemini-(?P<major>\d{{1,2}})(?!\d)(?:\.(?P<minor>\d{{1,2}}))?(?:-(?P<family>{_WORDS}))?")),
)
_OTHER = re.compile(r"(?!gpt|o\b)[a-z]+")
"""The line of another maker; of OpenAI's, names without a version are those of open or special models."""


@lru_cache(maxsize=256)
def read_model(name: str) -> ModelId:
    """Return the model that a name means. A history names few models in many messages, and reading a name costs 20 µs."""
    plain = read_name(name).readings[-1]
    for line, pattern in _LINES:
        if match := pattern.match(plain):
            parts = match.groupdict()
            family = parts["family"] or parts.get("after") or ""
            return ModelId(
                line, "" if family == "latest" else family, (int(parts["major"]), int(parts.get("minor") or 0))
            )
    match = _OTHER.match(plain)
    line = match[0] if match else ""
    return ModelId(line, plain[len(line) :].lstrip("-"), None)


# --- rows ----------------------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """Models whose thinking another model reads: these families, all where none is named, within two versions."""

    families: tuple[str, ...]
    first: Version
    last: Version

    def includes(self, model: ModelId) -> bool:
        """Return whether a model is among them."""
        version = model.version
        return (
            (not self.families or model.family in self.families)
            and version is not None
            and self.first <= version <= self.last
        )


EVERY = Reach((), (0, 0), (99, 99))
"""All models of the line."""

Sampling: TypeAlias = Literal["yes", "no", "old", "idle"]
"""Whether temperature, top_p and top_k are accepted: `old` for requests that name a version of the API before its newest, `idle` for those without
an effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """What the models of one row accept. A column that says nothing of an API has its default there.

    Attributes:
        line: The line of the models.
        families: The families; all where none is named.
        floor: The version from which the row holds.
        names: The models by name instead, with their dates.
        source: Where this was read: a page or a package.
        thinking: The values of `thinking.type`; empty where they are not checked.
        thinks: Whether it thinks: `always`, `on` or `off` where a request does not say; empty where this is not known.
        efforts: The values of the effort (Gemini: of `thinkingLevel`); empty where they are not checked.
        quiet_effort: The highest effort at which thinking can be turned off; empty for any.
        sampling: Whether sampling parameters are accepted.
        version: The version of the API that requests name; empty for its newest.
        server: The server of chat completions whose rules hold; empty where the model decides.
        forced: Whether a tool can be forced.
        prefill: Whether a request may end on the assistant's words.
        system_inside: Whether instructions may come among the turns.
        system_first: Whether instructions are the first item of the conversation rather than a field.
        tools_inside: Whether tools may be added among the turns.
        schema: Whether a schema of the answer may be sent.
        bound: Whether thinking is refused or withheld after anything before it changed.
        reads: Whose thinking it reads besides its own.
        functions: Whether functions are accepted while it thinks.
        signed_calls: Whether the first call of each step must have its signature.
        mixed: Whether the provider's own tools, and answers with a schema, go together with functions.
        result_media: Whether results of tools may have media.
        served: Whether it has tools of the provider's own.
        tooling: What it does with tools besides calling them: `search` for deferred ones, and write `code` that calls them.
        compacts: Whether the provider compacts its conversations when a request asks it to.
    """

    line: str = ""
    families: tuple[str, ...] = ()
    floor: Version = (0, 0)
    names: tuple[str, ...] = ()
    source: str
    thinking: tuple[str, ...] = ()
    thinks: Literal["always", "on", "off", ""] = ""
    efforts: tuple[str, ...] = ()
    quiet_effort: str = ""
    sampling: Sampling = "no"
    version: str = ""
    server: str = ""
    forced: bool = True
    prefill: bool = False
    system_inside: bool = False
    system_first: bool = False
    tools_inside: bool = False
    schema: bool = True
    bound: bool = False
    reads: tuple[Reach, ...] = ()
    functions: bool = True
    signed_calls: bool = False
    mixed: bool = True
    result_media: bool = True
    served: bool = True
    tooling: tuple[str, ...] = ("search", "code")
    compacts: bool = True

    @property
    def samples(self) -> bool:
        """Whether a request of the version that it is asked in may have sampling parameters."""
        return self.sampling in {"yes", "idle"} or (self.sampling == "old" and bool(self.version))

    def of_family(self, model: ModelId) -> bool:
        """Return whether it is about the family of a model, in some version."""
        return not self.names and self.line == model.line and (not self.families or model.family in self.families)


_COLUMNS = frozenset(ModelRow.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The models of an API.

    Attributes:
        api: The name of the API.
        rows: The rows, from the newest to the oldest.
        strictest: What holds where no model is named.
        other: What applies to models of other makers.
    """

    api: str
    rows: Sequence[ModelRow]
    strictest: ModelRow
    other: ModelRow

    def row(self, name: str, columns: Mapping[str, Any] = EMPTY) -> ModelRow:
        """Return what a model accepts.

        A model of a known maker that no row knows gets the newest row of its family, or of the table, and a warning, once.

        Args:
            name: The model, in any spelling; empty for none.
            columns: What is known better than in the table, by the name of the column.
        """
        found, known = self._found(name)
        if not known and not columns:
            _warn_once(self.api, name)
        changed: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in columns.items()
            if name in _COLUMNS
        }
        return replace(found, **changed) if changed else found

    def _found(self, name: str) -> tuple[ModelRow, bool]:
        """Return the row of a model, and whether the table knows the model."""
        if not name:
            return self.strictest, True
        model = read_model(name)
        readings = {*read_name(name).readings}
        named = next((row for row in self.rows if readings.intersection(row.names)), None)
        of_line = [row for row in self.rows if row.line == model.line and not row.names]
        if named is not None or not of_line:
            return named or self.other, True
        if not model.maker:
            return of_line[0], True
        of_family = [row for row in of_line if row.of_family(model)] or of_line
        newest, version = of_family[0], model.version
        if version is not None and of_family is not of_line and version <= newest.floor:
            return next((row for row in of_family if row.floor <= version), of_family[-1]), True
        return replace(newest, reads=(EVERY,) if newest.reads else ()), version is None and name.endswith("latest")


@cache
def _warn_once(api: str, name: str) -> None:
    warn(
        f"The table of models for {api} does not have {name!r}; what its newest models accept is assumed.",
        UnknownModelWarning,
    )
