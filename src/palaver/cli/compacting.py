"""palaver compact and constraints: what a model sees made smaller by hand, and what must stay said whatever leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from palaver.agent import ModelSummarizer
from palaver.cli.bill import bill_of
from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.context import POLICIES
from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.models import connect_model
from palaver.plurals import counted
from palaver.session import CompactionPreview, Dialog, Session
from palaver.session.compaction.preview import place_of
from palaver.store import Store

__all__ = ["HOLDS", "compact", "constraints", "cost_of", "lines_of", "sentence", "stated", "summarizer_of"]

HOLDS = "It stays so until it has grown by a tenth, or is too long for the model or the budget, or somebody compacts by hand."
"""How long an undo holds."""

_SHOWN = 12
"""Lines of a preview that say what would go."""


def compact(  # noqa: PLR0917 - the words of a command
    session: SessionArgument,
    by: Annotated[
        str, typer.Option("--policy", metavar="P", help=f"Who decides what goes. One of: {', '.join(POLICIES)}.")
    ] = "palaver",
    focus: Annotated[
        str,
        typer.Option(
            "--focus",
            metavar="WORDS",
            help="What holds one of these words stays, if there is room; a summariser dwells on it.",
        ),
    ] = "",
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            min=1,
            help="Tokens a request may occupy then. Default: what P leaves by its own limit; for palaver, half of what it does now.",
        ),
    ] = None,
    summarizer: Annotated[
        str | None,
        typer.Option(
            "--summarizer",
            metavar="SPEC",
            help="A model that summarises beside the record, such as openai/gpt-4o-mini.",
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            help="A summary that is there already, from --keep-summary or your own, in the place of a model's; - for standard input.",
        ),
    ] = None,
    keep_summary: Annotated[
        Path | None,
        typer.Option(
            "--keep-summary", metavar="FILE", help="Write the model's summary there, so that --summary FILE commits it."
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what would be done; the default where nobody can be asked.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Do it without asking; with --summarizer by a new summary, whatever a preview showed."
        ),
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the newest compaction back.")] = False,
    dialog: DialogOption = None,
    model: Annotated[
        str, typer.Option("--model", metavar="M", help="The model whose tokens count; default: the session's own.")
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Make what the model sees smaller: shows what would go and what would stand for it, and asks.

    A preview's summary is gone with it, and was paid for: --keep-summary writes it down, --summary takes it back as it stands.
    The log loses nothing, `palaver recall` brings back whatever left, and --undo takes the whole compaction back. Ends with 6, and the
    breakdown, when the budget cannot hold what must be sent.
    """
    _require_one(preview=preview, yes=yes, undo=undo)
    _require_summaries(summary, summarizer, keep_summary)
    told = None if summary is None else _read(summary)
    with opened(store, writes=yes or undo) as source:
        found = Session.open(session, source)
        chosen = found.dialog(dialog_of(found, dialog))
        if undo:
            return _undo(chosen, json=json)
        summarises = None if summarizer is None else summarizer_of(summarizer, source)
        made = chosen.compact(focus=focus, policy=by, budget=budget, summarizer=summarises, model=model, summary=told)
        if keep_summary is not None and made.summary:
            _written(keep_summary, made.summary)
        lines = [] if json else lines_of(made)
        for line in lines:
            output().print(line, soft_wrap=True, markup=False, highlight=False)
        agreed = yes or (not preview and not json and _agreed())
        entry = str(_approved(made)) if agreed else ""
        if json:
            print_json({**made.to_dict(), "entry": entry or None})
            return Exit.OK
    for line in [_done(entry)] if agreed else _way_back(made, summarizer, keep_summary):
        output().print(line, soft_wrap=True, markup=False, highlight=False)
    return Exit.OK


def _require_one(**said: bool) -> None:
    if sum(said.values()) > 1:
        raise typer.BadParameter("--preview, --yes and --undo exclude each other.")


def _done(entry: str) -> str:
    return f"Compacted by entry {entry}. `palaver compact --undo` takes it back."


def _way_back(made: CompactionPreview, summarizer: str | None, kept: Path | None) -> list[str]:
    """Say how the summary that was shown can be committed: asked again, a model gives another one."""
    if summarizer is None or not made.summary:
        return ["Nothing was written."]
    if kept is not None:
        return [f"The summary is in {kept}; `--summary {kept} --yes` commits it as it stands. The log is as it was."]
    return [
        "This summary is kept nowhere: --yes asks for another one. --keep-summary FILE writes it down, --summary FILE --yes commits it.",
        "Nothing was written.",
    ]


def _read(file: Path) -> str:
    with _told("The summary cannot be read", "Name a text file, or - for standard input."):
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")


def _written(file: Path, text: str) -> None:
    with _told("The summary cannot be written down", "Name a file in a folder that is there."):
        file.write_text(f"{text}\n", encoding="utf-8")


@contextmanager
def _told(what: str, hint: str) -> Iterator[None]:
    """Say what is wrong with a file.

    Raises:
        InvalidInput: It cannot be used.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{what}: {error}.", hint=hint) from error


def summarizer_of(spec: str, store: Store) -> ModelSummarizer:
    """Give what asks a model for summaries; images of the conversation come from the store.

    Raises:
        InvalidInput: The text names no model.
        MissingExtra: The package of its provider is not installed.
    """
    provider, name = connect_model(spec)
    return ModelSummarizer(provider, name, media=lambda digest: store.blob(BlobId(digest)))


def _approved(made: CompactionPreview) -> object:
    if not made.worthwhile:
        if made.paid:
            made.reject("it would not be smaller")
        raise InvalidInput(
            f"There is nothing to gain: {made.tokens_after:,} tokens instead of {made.tokens_before:,}.",
            hint="What is newest, pinned or open stays in every view. Give a smaller --budget, or another --policy.",
        )
    return made.approve()


def _agreed() -> bool:
    """Ask whoever sits at the terminal; where nobody does, the answer is no."""
    return sys.stdin.isatty() and typer.confirm("Compact?")


def _undo(dialog: Dialog, *, json: bool) -> int:
    before = dialog.figures().tokens
    entry = dialog.undo()
    after = dialog.figures().tokens
    if json:
        print_json({"entry": str(entry), "tokens_before": before, "tokens_after": after})
    else:
        output().print(f"Taken back by entry {entry}: {before:,} tokens -> {after:,}. {HOLDS}", soft_wrap=True)
    return Exit.OK


def lines_of(made: CompactionPreview) -> list[str]:
    """Give a preview for people."""
    gone = sum(one.messages for one in made.omitted)
    by = f"{made.composed.plan.policy}, then the last resort" if made.composed.fallback else made.policy
    lines = [
        f"{made.tokens_before:,} tokens -> {made.tokens_after:,} (policy {by}); {counted(gone, 'message leaves', 'messages leave')} the view, none the log."
    ]
    lines += [f"  {said}" for said in _dwelt_on(made)]
    places = [
        f"  - {place_of(one)}: {one.reason.value.replace('_', ' ')}, {counted(one.messages, 'message')}"
        for one in made.omitted
    ]
    places += [f"  - {place}: shown in part" for place in made.shortened]
    lines += places if len(places) <= _SHOWN else [*places[:_SHOWN], f"  … {len(places) - _SHOWN} more"]
    lines += [f"  no summary: {made.refused}"] if made.refused else []
    lines += (
        [f"  no digest of some large outputs: {', '.join(made.undigested)}"]
        if made.undigested and not made.refused
        else []
    )
    lines += [f"  {cost}"] if (cost := cost_of(made)) else []
    for text in made.inserted:
        lines += ["  What stands in their place:", *(f"  | {line}" for line in text.splitlines())]
    return lines


def _dwelt_on(made: CompactionPreview) -> Iterator[str]:
    """Say what stays because of the focus, what does not although it is named, and which words name nothing."""
    if made.kept:
        more = f", of {made.found}; there is no room for more" if made.kept < made.found else ""
        named = f"with {made.focus!r}"
        yield f"{counted(made.kept, f'exchange {named} stays as it is', f'exchanges {named} stay as they are')}{more}."
    elif made.found:
        room = f"a word of {made.focus!r}; there is no room for"
        yield f"{counted(made.found, f'exchange holds {room} it', f'exchanges hold {room} any of them')}."
    elif made.focus:
        yield f"Nothing that the model sees now holds a word of {made.focus!r}."
    if made.missing and made.found:
        yield f"Nothing holds {', '.join(map(repr, made.missing))}."


def cost_of(made: CompactionPreview) -> str:
    """Say what the model that was asked for a summary read and wrote, and what that cost; an empty text where none was."""
    if made.summarized is None or not made.summarized.usages:
        return ""
    return f"asked {made.summarized.model or 'a model'} for a summary: {bill_of(made.summarized.usages, made.summarized.model)}"


def constraints(
    session: SessionArgument,
    add: Annotated[list[str] | None, typer.Option("--add", metavar="TEXT", help="Put a sentence on the list.")] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", metavar="TEXT", help="Take a sentence off it, word for word, or by its number."),
    ] = None,
    dialog: DialogOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """List what the user said must or must not be, as code found it in his words, and change the list.

    What is put on or taken off counts from the next request on: sentences put on by hand stand behind the instructions, whatever leaves the view.
    What the user said himself is told by every record that stands for where he said it. Both hold in forks made later and in later processes, too.
    """
    with opened(store, writes=bool(add or remove)) as source:
        found = Session.open(session, source)
        chosen = found.dialog(dialog_of(found, dialog))
        texts = chosen.constraints.texts  # numbers are those of the list as it was shown
        for text in remove or ():
            chosen.constraints.remove(sentence(text, texts))
        for text in add or ():
            chosen.constraints.add(text)
        for number, said in enumerate(chosen.constraints if json else (), 1):
            print_json({"number": number, "text": said.text, "said_at": said.at or None})
        for line in () if json else stated(chosen):
            output().print(line, soft_wrap=True, markup=False, highlight=False)
    return Exit.OK


def stated(dialog: Dialog) -> Iterator[str]:
    """Give the constraints of a dialog for people, numbered, each with the place where it was said."""
    for number, said in enumerate(dialog.constraints, 1):
        yield f"{number}. {said.text}{said.at and f'  [{said.at[:12]}{said.at[32:]}]'}"


def sentence(text: str, texts: tuple[str, ...]) -> str:
    """Give the sentence that is meant: by its number in the list, or as it stands."""
    return texts[int(text) - 1] if text.isdecimal() and 0 < int(text) <= len(texts) else text


def _require_summaries(summary: Path | None, summarizer: str | None, keep_summary: Path | None) -> None:
    """Refuse words about a summary that do not go together, before a model is paid."""
    if summary is not None and (summarizer or keep_summary):
        raise typer.BadParameter("--summary is in the place of --summarizer and --keep-summary.")
    if keep_summary is not None and not summarizer:
        raise typer.BadParameter("--keep-summary writes down what a model says: name one with --summarizer.")
    if keep_summary is not None and not keep_summary.parent.is_dir():
        raise InvalidInput(
            f"There is no folder {keep_summary.parent} for the summary.", hint="Name a file in one that is there."
        )
