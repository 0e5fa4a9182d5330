"""Presets of coding agents: Claude Code, OpenCode and its plugin DCP, pi, OpenHands, SWE-agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from palaver.context.cut import Phase
from palaver.context.layout import Form, Layout
from palaver.context.notes import cleared, head_only, lines_omitted
from palaver.context.operators import Shortened, apply_to_old, clear, cleared_form, drop, drop_with_note
from palaver.context.parameters import Parameters, count, share
from palaver.context.presets import Preset, newest_outputs, outputs_in
from palaver.context.tool_effects import effect
from palaver.errors import InvalidInput
from palaver.messages import ToolCallContent, canonical_json
from palaver.tokens import ModelInfo
from palaver.view import Exchange, Reason

# --- Claude Code --------------------------------------------------------------------------------------------------------

_ANSWER, _COMPACTION = 20_000, 13_000
_PERSISTED, _PREVIEW = 50_000, 2_048


class ClaudeCode(Preset):
    """Preview huge outputs at once; near the limit clear all but the newest results; else compact everything.

    Source: public descriptions, such as
    https://zhanghandong.github.io/harness-engineering-from-cc-to-ai-coding/en/part3/ch09.html. The limit is the window less min(longest answer, 20,000) less 13,000
    (167,000 of 200,000). Outputs over 50,000 characters: 2 KB and the handle, Read exempt. Clearing leaves the newest 5 results of its own tools. An agent reads
    the newest 5 files again after a compaction. Clearing after an hour without a call needs a clock: use the trigger `Idle(3600)`.

    Attributes:
        keep_results: How many results clearing leaves.
        keep_tail: Tokens at the end that a compaction leaves; the original leaves none, its variant with a memory file 10,000 to 40,000.
        restore_files: How many files an agent reads again after a compaction, each within `restore_tokens`.
    """

    name = "claude-code"
    acts_within_limit = True
    parameters: ClassVar[Parameters] = MappingProxyType(
        {"keep_results": count(), "keep_tail": count(), "restore_files": count()}
    )
    headings = (
        "Primary Request and Intent",
        "Key Technical Concepts",
        "Files and Code Sections",
        "Errors and Fixes",
        "Problem Solving",
        "All User Messages",
        "Pending Tasks",
        "Current Work",
        "Next Step",
    )
    keep_results: int = 5
    keep_tail: int = 0
    restore_files: int = 5
    restore_tokens: int = 5_000

    def own_words(self, model: ModelInfo) -> Mapping[str, object]:
        """Keep room for the answer and for the call that compacts."""
        return {"reserve": min(model.max_output or _ANSWER, _ANSWER), "safety_buffer": _COMPACTION}

    def always(self, layout: Layout) -> Layout:
        """Preview huge outputs."""
        return layout.with_rule(Shortened(_PERSISTED, _PREVIEW, head_only, characters=True, exempt=("read",)))

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Clear; then compact."""
        stop = newest_outputs(layout, self.keep_results)
        tail = Phase(drop, target=layout.fixed + self.keep_tail, stop=layout.newest(self.keep_tail))
        return (Phase(_clear_own, stop=stop), tail)


_OWN_TOOLS = frozenset({"read", "bash", "grep", "glob", "websearch", "webfetch", "edit", "write"})


def _clear_own(layout: Layout, cut: int) -> Layout:
    """Clear the outputs of the original's tools, and of other tools that declare what they read, write or run."""

    def form(state: Layout, index: int) -> Form | None:
        state.recorded(index)
        calls = [block.content for block in state.view.exchanges[index].blocks()]
        others = {call.name for call in calls if isinstance(call, ToolCallContent) and not _compactable(call)}
        return cleared_form(state, index, exclude=others, words=cleared)

    return apply_to_old(layout, 0, cut, form)


def _compactable(call: ToolCallContent) -> bool:
    done = effect(call.name, call.args)
    return call.name.casefold() in _OWN_TOOLS or bool(done.reads or done.writes or done.command)


# --- OpenCode, DCP ------------------------------------------------------------------------------------------------------

_PROTECT, _MINIMUM, _TURNS = 40_000, 20_000, 2
_TAIL_SHARE, _TAIL_LEAST, _TAIL_MOST = 4, 2_000, 15_000


class OpenCode(Preset):
    """Prune old tool results; else compact all but a tail.

    Source: anomalyco/opencode, packages/opencode/src/session/compaction.ts: a buffer of 20,000 tokens beside the longest answer; PRUNE_PROTECT 40,000 tokens of the
    newest results and the newest 2 turns, PRUNE_MINIMUM 20,000, never the tool `skill`; a tail within clamp(a quarter of the limit, 2,000, 15,000).
    Headings: packages/core/src/session/compaction.ts.
    """

    name = "opencode"
    words: ClassVar = {"buffer": 20_000}
    headings = (
        "Objective",
        "Requirements",
        "Decisions",
        "Work State",
        "Next Move",
        "Relevant Files",
        "Additional Context",
    )

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Prune; then compact."""
        tail = min(max(layout.limit // _TAIL_SHARE, _TAIL_LEAST), _TAIL_MOST)
        protected = min(_newest_output_tokens(layout, _PROTECT), layout.newest_turns(_TURNS))
        prune = Phase(self._prune, stop=protected, frees=_MINIMUM)
        return (prune, Phase(drop, target=layout.fixed + tail, stop=layout.newest(tail)))

    def _prune(self, layout: Layout, cut: int) -> Layout:
        return clear(layout, cut, exclude=("skill",), words=cleared)


def _newest_output_tokens(layout: Layout, tokens: int) -> int:
    """Return the first index of the newest exchanges whose outputs have at most `tokens` together, by recorded bytes."""
    left, index = tokens * layout.meter.recorded_per_unit, layout.end
    while index > 0:
        left -= sum(result.size for result in layout.view.exchanges[index - 1].results)
        if left < 0:
            break
        index -= 1
    return index


class OpenCodeDCP(OpenCode):
    """Clean up what later work made pointless, then do what OpenCode does.

    Source: Opencode-DCP/opencode-dynamic-context-pruning, lib/strategies: of calls with the same tool and arguments the last output stays
    (deduplication.ts); the earlier write of a file that is written again leaves (supersede-writes.ts); failed calls that were made again without failure
    leave
    (purge-errors.ts purges their inputs after 4 turns).
    """

    name = "opencode-dcp"

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Clean up; then prune; then compact."""
        return (Phase(_clean, stop=layout.end), *super().phases(layout))

    def _prune(self, layout: Layout, cut: int) -> Layout:
        return super()._prune(_clean(layout, cut), cut)


def _clean(layout: Layout, cut: int) -> Layout:
    """Clear outputs that an old call gave again, and drop old writes of files that were written again."""
    seen: set[object] = set()
    forms, gone, total = {}, [], layout.fixed + layout.added
    for index in layout.shown():  # newest first, as far as the limit reaches
        if total > layout.limit:
            break
        exchange = layout.view.exchanges[index]
        size = layout.size(index)
        if index < cut and index not in layout.protected and not exchange.derived and exchange.results:
            keys = set(_keys(exchange))
            if keys and keys <= seen and all(key[0] == "write" for key in keys):
                gone.append(index)
                size = 0
            elif keys and keys <= seen:
                form = cleared_form(layout, index, least=0, words=cleared)
                if form is not None:
                    forms[index], size = form, form.size
            seen |= keys
        total += size
    layout = layout.with_forms(forms) if forms else layout
    for index in gone:
        layout = layout.without(index, index + 1, Reason.SUPERSEDED)
    return layout


def _keys(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Yield what a later call can make pointless: a file that is written, or a tool with its arguments."""
    for block in exchange.blocks():
        if isinstance(block.content, ToolCallContent):
            done = effect(block.content.name, block.content.args)
            whole = done.writes and "content" in block.content.args  # an edit in part needs the write before it
            if whole:
                yield from (("write", path) for path in done.writes)
            else:
                yield block.content.name, canonical_json(block.content.args).decode()


# --- pi -----------------------------------------------------------------------------------------------------------------


class Pi(Preset):
    """Beyond the window less a reserve, summarise everything but the newest tokens.

    Source: badlogic/pi-mono, packages/coding-agent/src/core/compaction/compaction.ts: reserveTokens 16,384, keepRecentTokens 20,000; the cut never falls between a call
    and its result.

    Attributes:
        keep_recent_tokens: Tokens at the end that a compaction leaves.
    """

    name = "pi"
    words: ClassVar = {"reserve_tokens": 16_384}
    parameters: ClassVar[Parameters] = MappingProxyType({"keep_recent_tokens": count()})
    headings = ("Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps", "Critical Context")
    keep_recent_tokens: int = 20_000

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Fold all but the newest tokens."""
        keep = min(self.keep_recent_tokens, (layout.limit - layout.fixed) // 2)
        return (Phase(drop, target=layout.fixed + keep, stop=layout.newest(keep)),)


# --- OpenHands ----------------------------------------------------------------------------------------------------------


class OpenHands(Preset):
    """Condense the middle when there are too many messages, or too many tokens.

    Source: OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/context/condenser/llm_summarizing_condenser.py: max_size 240, keep_first 2, minimum_progress 0.1
    (earlier: 120 and 4); what is left is max_size // 2 messages with the summary, or half of the tokens. An event is a message here.

    Attributes:
        max_size: Messages beyond which the middle is condensed.
        keep_first: Messages at the beginning that stay.
        keep_last: Messages at the end that stay; None for what is left of half of `max_size`.
        minimum_progress: A condensation for the number of messages must leave out at least this share.
    """

    name = "openhands"
    acts_within_limit = True
    parameters: ClassVar[Parameters] = MappingProxyType(
        {"max_size": count(1), "keep_first": count(), "keep_last": count(1, none=True), "minimum_progress": share()}
    )
    headings = (
        "USER_CONTEXT",
        "TASK_TRACKING",
        "COMPLETED",
        "PENDING",
        "CURRENT_STATE",
        "CODE_STATE",
        "TESTS",
        "CHANGES",
        "DEPS",
        "VERSION_CONTROL_STATUS",
    )
    max_size: int = 240
    keep_first: int = 2
    keep_last: int | None = None
    minimum_progress: float = 0.1

    def __init__(self, model_name: str = "", max_tokens: int | None = None, **words: Any) -> None:  # noqa: ANN401 - of a table
        """Make the policy for a model.

        Raises:
            InvalidInput: A word is unknown, its value is out of bounds, or what stays is not less than the whole.
        """
        super().__init__(model_name, max_tokens, **words)
        last = self.max_size // 2 - self.keep_first - 1 if self.keep_last is None else self.keep_last
        if last <= 0 or self.keep_first + last + 1 > self.max_size:
            raise InvalidInput(
                f"keep_first={self.keep_first} and keep_last={self.keep_last} leave nothing to condense of max_size={self.max_size}.",
                hint="Raise max_size, or keep fewer; the summary counts as one.",
            )
        self.keep_last = last

    def always(self, layout: Layout) -> Layout:
        """Condense by number of messages."""
        last = self.keep_last or 0
        total = sum(map(_messages, layout.view.exchanges))
        left = self.keep_first + 1 + last
        over, step = total - self.max_size - 1, self.max_size + 1 - left
        if over < 0:
            return layout
        cut = _reaching(layout, self.max_size + 1 - last + (over if layout.committed else over // step * step))
        first = min(_reaching(layout, self.keep_first), layout.beginning)
        forgotten = sum(_messages(layout.view.exchanges[index]) for index in range(first, cut))
        if forgotten <= self.minimum_progress * total:
            return layout
        half = range(
            cut, _reaching(layout, last // 2, cut)
        )  # the older half of what stays: later messages do not change it
        return drop(layout, cut, first=first, room=min(2 * sum(map(layout.size, half)), layout.target))

    def phases(self, layout: Layout) -> Sequence[Phase]:
        """Condense by tokens."""
        first = min(_reaching(layout, self.keep_first), layout.beginning)
        return (Phase(partial(drop, first=first)),)


def _messages(exchange: Exchange) -> int:
    return exchange.messages or 1


def _reaching(layout: Layout, messages: int, start: int = 0) -> int:
    """Return the first boundary that comes this many messages after `start`."""
    index = start
    while index < layout.end - 1 and messages > 0:
        messages -= _messages(layout.view.exchanges[index])
        index += 1
    return index


# --- SWE-agent ----------------------------------------------------------------------------------------------------------

_WINDOW = 105 * 80


class SWEAgent(Preset):
    """Show the observations of the last steps, and a line in place of each older one, at every step.

    Source: SWE-agent/SWE-agent, sweagent/agent/history_processors.py, LastNObservations: n 5, polling 1; with t outputs, t - max(0, (t + 1) // polling * polling - n - 1)
    stay. Oversized output goes to a file (releases before 1.0: window_length 105 lines); here the handle is the file.

    Attributes:
        n: How many observations stay.
        polling: How many steps pass before more are cleared.
        largest: Characters beyond which an output is shown in part.
    """

    name = "swe-agent"
    acts_within_limit = True
    parameters: ClassVar[Parameters] = MappingProxyType({"n": count(1), "polling": count(1), "largest": count(1)})
    n: int = 5
    polling: int = 1
    largest: int = 100_000

    def always(self, layout: Layout) -> Layout:
        """Preview oversized outputs, and clear old ones."""
        layout = layout.with_rule(Shortened(self.largest, _WINDOW, head_only, characters=True))
        made = sum(map(outputs_in, layout.view.exchanges))
        gone = max((made + 1) // self.polling * self.polling - self.n - 1, 0)
        return clear(layout, newest_outputs(layout, made - gone), least=0, words=lines_omitted) if gone else layout

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Drop the oldest where even that is too large."""
        return (Phase(drop_with_note),)
