"""palaver compact: what a model sees made smaller, by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

from typer import BadParameter, Option, confirm

import palaver
from palaver.cli.location import located
from palaver.cli.options import JsonOption, ModelOption, SessionArgument, StoreOption, YesOption, tokens
from palaver.cli.terminal import emit, listed, money, say
from palaver.context import DEFAULT_POLICY, POLICIES
from palaver.errors import InvalidInput
from palaver.ids import now
from palaver.messages import Usage
from palaver.plurals import counted
from palaver.session.compaction import CompactionPreview
from palaver.tokens.pricing import cost_of
from palaver.view.blocks import REASONS

_SHOWN = 12
"""Lines of a preview that list what would leave."""

_POLICY = f"Who decides what leaves. One of: {', '.join(POLICIES)}."
_GAINLESS = "What is newest, pinned or open stays in every view. Choose a smaller --budget, or another --policy."


def run(
    session: SessionArgument,
    *,
    by: Annotated[str, Option("--policy", "-p", metavar="P", help=_POLICY)] = DEFAULT_POLICY,
    budget: Annotated[
        int | None,
        Option(
            "--budget",
            metavar="TOKENS",
            parser=tokens,
            help="Tokens that a request may occupy. A view that fits is cut, too.",
        ),
    ] = None,
    summarizer: Annotated[
        str | None, Option("--summarizer", metavar="SPEC", help="A model that writes a summary, too.")
    ] = None,
    focus: Annotated[str, Option("--focus", metavar="WORDS", help="What the summary should emphasise.")] = "",
    undo: Annotated[bool, Option("--undo", help="Undo the newest compaction.")] = False,
    redo: Annotated[bool, Option("--redo", help="Redo what --undo took back.")] = False,
    yes: YesOption = False,
    model: ModelOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make what the model sees smaller, by default to half: preview what would leave and what would replace it, then ask.

    Where nobody can be asked it is only previewed, unless there is --yes. The log keeps everything, `palaver show` prints what left, and
    --undo undoes the whole compaction. Exit code 6, with a breakdown, means that what must be sent exceeds the budget.
    """
    if undo and redo:
        raise BadParameter("choose one of --undo and --redo.")
    if focus and not summarizer:
        raise BadParameter("only a summary has a focus: name a model with --summarizer.", param_hint="--focus")
    asks = not json and sys.stdin.isatty()
    with located(session, store, writes=yes or undo or redo or asks) as (_, dialog, _, _):
        compaction = dialog.compaction
        if undo or redo:
            entry = compaction.redo() if redo else compaction.undo()
            emit(json, {"entry": str(entry)}, f"{'Redone' if redo else 'Undone'} by entry {entry}.")
            return
        if summarizer is None:
            made = compaction.preview(by, budget, model=model)
        else:
            import asyncio  # noqa: PLC0415 - most compactions ask no model

            made = asyncio.run(compaction.apreview(summarizer_of(summarizer), by, budget, model=model, focus=focus))
        for line in () if json else lines_of(made):
            say(line)
        if yes and not made.worthwhile:
            raise InvalidInput("The view would not become smaller.", hint=_GAINLESS)
        agreed = made.worthwhile and (yes or (asks and confirm("Compact?")))
        written = str(made.approve()) if agreed else None
        said = (
            f"Compacted by entry {written}; --undo takes it back." if written else "Nothing was written: --yes does it."
        )
        emit(json, {**made.to_dict(), "entry": written}, said)


def summarizer_of(spec: str) -> palaver.ModelSummarizer:
    """Return what asks a model for summaries.

    Raises:
        InvalidInput: The text names no model.
        MissingExtra: The package of its provider is not installed.
    """
    return palaver.ModelSummarizer(*palaver.connect_model(spec))


def lines_of(made: CompactionPreview) -> Iterator[str]:
    """Yield a preview for people."""
    gone = counted(sum(omission.messages for omission in made.omitted), "message leaves", "messages leave")
    about = "" if made.composed.before.exact else "about "
    size = f"{about}{made.tokens_before:,} tokens -> {made.tokens_after:,}"
    yield f"{size} (policy {made.composed.by}); {gone} the view, none leaves the log."
    why = [f"{counted(omission.messages, 'message')}, {REASONS[omission.reason]}" for omission in made.omitted]
    places = [f"  - {omission.place}: {words}" for omission, words in zip(made.omitted, why, strict=True)]
    yield from listed(places, _SHOWN)
    if failed := made.summary_failed:
        yield f"  no summary: {failed}"
    summary = made.attempt.get("summary") or {}
    if used := [Usage(usage) for usage in summary.get("usages", ())]:
        read, wrote = sum(usage.input_tokens for usage in used), sum(usage.output_tokens for usage in used)
        dollars = sum(cost_of(usage, summary.get("model", ""), now()).cost for usage in used)
        price = f", {money(dollars)}" if dollars else ""
        yield f"  asked {summary.get('model') or 'a model'} for a summary: {read:,} tokens read, {wrote:,} written{price}"
    for text in made.inserted:
        yield "  In their place:"
        yield from (f"  | {line}" for line in text.splitlines())
