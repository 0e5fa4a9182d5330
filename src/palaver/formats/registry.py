"""The readable formats, and the detection of a source's format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol

from palaver.errors import UnsupportedTranscript
from palaver.formats.aider import AiderHistory
from palaver.formats.atif import Atif
from palaver.formats.chatgpt import ChatGptExport
from palaver.formats.claude_ai import ClaudeAiExport
from palaver.formats.claude_code import ClaudeCodeFormat
from palaver.formats.cline import ClineSession
from palaver.formats.codex import Codex
from palaver.formats.copilot_cli import CopilotCli
from palaver.formats.entire import EntireCompact
from palaver.formats.events import Event, Loss
from palaver.formats.gemini_cli import GeminiCli
from palaver.formats.google_adk import GoogleAdk
from palaver.formats.inspect_ai import InspectLog
from palaver.formats.llm_log import LlmLog
from palaver.formats.longmemeval import LongMemEval
from palaver.formats.mini_swe_agent import MiniSweAgent
from palaver.formats.moatless import Moatless
from palaver.formats.oasst import OpenAssistant
from palaver.formats.openclaw_bench import OpenClawBench
from palaver.formats.opencode import OpenCodeFormat
from palaver.formats.openhands import OpenHandsCalls
from palaver.formats.openhands_events import OpenHandsEvents
from palaver.formats.opentelemetry import OpenTelemetry
from palaver.formats.pi import PiFormat
from palaver.formats.plain import PLAIN
from palaver.formats.smolagents import Smolagents
from palaver.formats.sources import SourceFile
from palaver.formats.specstory import SpecStory
from palaver.formats.swe_agent import SweAgent
from palaver.formats.tau2_bench import Tau2Bench
from palaver.formats.tau_bench import TauBench

ENTRY_POINTS = "palaver.formats"
SURE = 0.5
"""The minimum confidence for reading a source in a format."""


class TranscriptFormat(Protocol):
    """A foreign format. Its reader is stateless: reading the same source again returns the same events."""

    @property
    def name(self) -> str:
        """Its name in entries and on the command line, such as `claude-code`."""
        ...

    @property
    def title(self) -> str:
        """Its display name."""
        ...

    @property
    def signs(self) -> str:
        """How it is recognised, in a few words for errors."""
        ...

    @property
    def series(self) -> bool:
        """Whether an archive of several files is one run. Else each of its files is a source of its own, with one member."""
        ...

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that a source is in this format: 0.0 (no) to 1.0 (certain).

        This is cheap: it uses `source.members` and their `opening`, and reads no further.
        """
        ...

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read a source lazily. Unreadable content becomes a `Loss`; only a file that vanishes raises (`OSError`)."""
        ...


FORMATS: tuple[TranscriptFormat, ...] = (
    ClaudeCodeFormat(),
    Codex(),
    PiFormat(),
    GeminiCli(),
    OpenCodeFormat(),
    TauBench(),
    Tau2Bench(),
    MiniSweAgent(),
    SweAgent(),
    OpenHandsCalls(),
    InspectLog(),
    Atif(),
    OpenTelemetry(),
    GoogleAdk(),
    CopilotCli(),
    ClineSession(),
    OpenClawBench(),
    AiderHistory(),
    OpenHandsEvents(),
    ChatGptExport(),
    ClaudeAiExport(),
    Moatless(),
    OpenAssistant(),
    EntireCompact(),
    LlmLog(),
    SpecStory(),
    Smolagents(),
    LongMemEval(),
    *PLAIN,
)
"""Every format that can be read, in the order in which errors list them."""


def added() -> tuple[TranscriptFormat, ...]:
    """Return the formats that packages add under the entry point `palaver.formats`. They are asked where no other format is sure."""
    return tuple(entry.load() for entry in entry_points(group=ENTRY_POINTS))


class Match(NamedTuple):
    """A source, or a part of one, and its format."""

    source: SourceFile
    format: TranscriptFormat


def detect(source: SourceFile, formats: Sequence[TranscriptFormat] = FORMATS) -> TranscriptFormat:
    """Find the format of a source from its content.

    Raises:
        UnsupportedTranscript: No format matches. The error describes the content and lists the formats.
    """
    looks = source.opening.describe()
    if best := _best(source, formats):
        return best
    known = (*formats, *added())
    hint = f"Known formats:\n  {', '.join(each.title for each in known)}"
    tried = tuple(f"{each.title} ({each.signs})" for each in known)
    raise UnsupportedTranscript(source.members[0].label, f"it is {looks}", tried=tried, hint=hint)


def matches(source: SourceFile, formats: Sequence[TranscriptFormat] = FORMATS) -> Iterator[Match | Loss]:
    """Find the format of a source: one for the whole, or, for an archive of several runs, one for each member.

    A member of an archive in no known format is reported and skipped.

    Raises:
        UnsupportedTranscript: Nothing in it is in a known format.
    """
    yield from source.losses
    whole = _best(source, formats, series=True) if len(source.members) > 1 else None
    if whole is not None or len(source.members) == 1:
        yield Match(source, whole or detect(source, formats))
        return
    refused: list[UnsupportedTranscript] = []
    for member in source.members:
        part = source.alone(member)
        try:
            yield Match(part, detect(part, formats))
        except UnsupportedTranscript as error:
            refused.append(error)
            yield Loss(place=member.name, reason=f"Not read: {error.why}.", code="skipped", severity="note")
    if len(refused) == len(source.members):
        why = f"none of its {len(refused)} files is one; the first: {refused[0].why}"
        raise UnsupportedTranscript(source.path, why, tried=refused[0].tried, hint=refused[0].hint)


def _best(source: SourceFile, formats: Sequence[TranscriptFormat], *, series: bool = False) -> TranscriptFormat | None:
    """Return the format that is surest of a source: one of those given, or else one that a package adds. `series`: only of several files."""
    for group in (formats, None):  # installed packages are searched only where they are needed
        score, best = 0.0, None
        for known in group or added():
            if score < 1.0 and (known.series or not series) and (found := known.sniff(source)) > score:
                score, best = found, known
        if score >= SURE:
            return best
    return None
