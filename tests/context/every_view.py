"""Every view of a dialog under every policy, held to the promise: what the cases of one dialog share is done once.

A case is a dialog, a policy, and a budget in percent of what the whole dialog has, counted in the tokens of the models of all four profiles.
There are too many to run all of them at every change, so they come in parts that are alike: of each dialog and policy, each part has four of the
twenty budgets from 5 to 100 percent, a quarter of the whole apart. Where it begins is drawn from the names of both, so that each part has every
policy over every dialog and every budget over some, and all parts together have all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import cast
from zlib import crc32

from palaver import wire
from palaver.context import POLICIES, Composed, ContextManager, Ledger, Meter, compose, planner, policy
from palaver.context.units import Pieces
from palaver.errors import InfeasibleBudget
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Entry, Handle, Header
from palaver.messages import Content, Role
from palaver.session.reading.recalling import recall
from palaver.store.memory import MemoryStore
from palaver.testing.holding import MODELS, hold_composed, hold_infeasible, stable
from palaver.testing.logs import assert_closed
from palaver.tokens import FAMILIES, Budget, Family, ModelCounter, counter, rates
from palaver.transcripts import Imported, Importer
from palaver.view import View, fold
from palaver.view.fold import Folding
from tests.recorded import Recording

PARTS = 5
PERCENTS = range(5, 105, 5)
THEN = (None, "Go on.")
MOST_CALLS = 120
"""Calls of a dialog over which prefixes are compared; all that most dialogs have."""

PRICES = rates(MODELS["anthropic"])
"""What tokens cost where anything but the first model counts: then policies that have a schedule act by it, too."""

WITHIN = "views within their budget"
INFEASIBLE = "infeasible with a true breakdown"
VALID = "requests valid"
COMPILED = "of them compiled, the others being the same"
RESOLVED = "handles resolved"
GROWN = "requests of a growing log"
EDITS = "edits between them"

Found = Counter[str]
"""How many of what was found."""


class Remembered:
    """A model's counter that counts no text twice, however many measures begin anew."""

    def __init__(self, counter: ModelCounter) -> None:
        """Remember nothing yet."""
        self._counter = counter
        self._texts: dict[str, int] = {}

    @property
    def family(self) -> Family:
        """The family of the model."""
        return self._counter.family

    def text(self, text: str, /) -> int:
        """Count a text."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = self._counter.text(text)
        return found


@lru_cache(maxsize=1)
def _imported(path: Path) -> tuple[MemoryStore, tuple[Imported, ...]]:
    store = MemoryStore()
    return store, tuple(Importer(store, keep_source=False).import_path(path))


def dialogs(
    recording: Recording, sessions: slice = slice(None)
) -> Iterator[tuple[str, MemoryStore, SessionId, DialogId]]:
    """Give the dialogs of a recording that show anything, each with a name that is the same in every run."""
    store, imported = _imported(recording.path)
    for number, one in list(enumerate(imported))[sessions]:
        for place, node in enumerate(store.nodes(one.session_id)):
            yield f"{recording.name}:{number}:{place}", store, one.session_id, node.dialog_id


def budgets(name: str, part: int) -> tuple[int, ...]:
    """Give the budgets that a part has of a case, in percent; four of them."""
    return tuple(percent for place, percent in enumerate(PERCENTS) if (place + crc32(name.encode())) % PARTS == part)


def grows(name: str, part: int) -> int | None:
    """Give the budget at which a part compares the prefixes of a case, in percent; None where another part does."""
    drawn = crc32(f"{name} grows".encode())
    return budgets(name, part)[drawn // PARTS % len(budgets(name, part))] if drawn % PARTS == part else None


class Held:
    """A dialog whose views are held to the promise."""

    def __init__(self, store: MemoryStore, session_id: SessionId, dialog_id: DialogId) -> None:
        """Take a dialog as it is."""
        self.view = fold(store, dialog_id)
        self._store = store
        self._session = session_id
        self._counters = {model: Remembered(counter(model)) for model in MODELS.values()}
        self._books: dict[str, Ledger] = {}
        self._targets = self._alike()
        self._resolved: dict[Handle, object] = {}
        self._refused: set[tuple[str, str, int]] = set()
        self._judged: dict[tuple[object, ...], list[tuple[View, set[tuple[str, str | None]]]]] = {}

    def _alike(self) -> Mapping[str, Sequence[str]]:
        """Give the models that count this dialog differently, each with the profiles whose models count as it does."""
        media = Pieces().view(self.view).total > 0
        found: dict[Family, str] = {}
        targets: dict[str, list[str]] = {}
        for target, model in MODELS.items():
            family = counter(model).family
            key = family if media else replace(family, name="", bound=0.0, image=FAMILIES["other"].image)
            targets.setdefault(found.setdefault(key, model), []).append(target)
        self._books = {model: Ledger(meter=Meter(self._counters[model])) for model in targets}
        return targets

    # --- one case -----------------------------------------------------------------------------------------------------------

    def case(self, name: str, percent: int) -> Found:
        """Hold a policy at a budget to every law, in the tokens of every model; what the first of them makes of it in every profile."""
        found: Found = Counter()
        for number, (model, targets) in enumerate(self._targets.items()):
            books, count = self._books[model], self._counters[model]
            budget = Budget.of_input(max(books.meter.view(self.view).total * percent // 100, 1))
            prices = PRICES if number else None
            try:
                done = compose(self.view, planner(_made(name, model)), budget, count, prices=prices, ledger=books)
            except InfeasibleBudget as error:
                self._infeasible(error, name, model, budget)
                found[INFEASIBLE] += 1
                continue
            hold_composed(done, self.view, budget, count)
            assert_closed(done.view)
            found[RESOLVED] += self._in_reach(done.view)
            if not number:
                self._again(done, name, model, budget)
                found[VALID] += len(MODELS) - len(targets)
                found[COMPILED] += self._valid(done.view, MODELS, None)
            for then in THEN:
                found[VALID] += len(targets)
                found[COMPILED] += self._valid(done.view, targets, then)
            found[WITHIN] += 1
        return found

    def _infeasible(self, error: InfeasibleBudget, name: str, model: str, budget: Budget) -> None:
        """Hold a refusal to be true; to compose again in just the room that it asks for is the same for every budget that is too small."""
        assert sum(error.breakdown.values()) == error.needed > error.budget == budget.for_input
        if (name, model, error.needed) not in self._refused:
            hold_infeasible(error, self.view, _made(name, model), budget, self._counters[model])
            self._refused.add((name, model, error.needed))

    def _again(self, done: Composed, name: str, model: str, budget: Budget) -> None:
        """Hold composing to be the same with new books and a new policy, and to be done once."""
        count = self._counters[model]
        again = compose(self.view, planner(_new(name, model)), budget, count)
        assert again.view == done.view, "the same view, policy and budget gave two different views"
        once_more = compose(done.view, planner(_made(name, model)), budget, count, ledger=self._books[model])
        assert once_more.view is done.view, "composing twice is not composing once"

    # --- what is left out -----------------------------------------------------------------------------------------------------

    def _in_reach(self, view: View) -> int:
        """Recall everything that a view leaves out or shows in another form, by its handle as it is printed; give how many there were."""
        handles = [handle for omission in view.omissions for handle in omission.handles()]
        handles += [
            block.origin for x in view.exchanges for block in x.blocks() if block.reason is not None and block.origin
        ]
        for handle in handles:
            if handle not in self._resolved:
                self._resolved[handle] = self._recalled(handle)
        return len(handles)

    def _recalled(self, handle: Handle) -> object:
        found = recall(self._store, self._session, str(handle))
        shown = self._shown.get(handle)
        assert shown is None or found == shown, f"{handle} gives something else than was shown"
        return found

    @cached_property
    def _shown(self) -> Mapping[Handle, Content]:
        """What the whole view shows as it was recorded, by its handle."""
        blocks = (block for exchange in self.view.exchanges for block in exchange.blocks())
        return {block.origin: block.content for block in blocks if block.origin is not None and block.reason is None}

    # --- requests ---------------------------------------------------------------------------------------------------------------

    def _valid(self, view: View, targets: Iterable[str], then: str | None) -> int:
        """Compile a view and hold the requests to the strict validators; give how many there were that had not been there before."""
        done, new = self._done(view), 0
        for target in targets:
            if (target, then) in done:
                continue
            model = MODELS[target]
            request = wire.compile(view, wire.profile(target, model), wire.Call(model=model, then=then), self.media)
            faults = wire.validate(request.body, request.profile, as_history=request.history)
            assert not faults, f"{target}: {faults[0]}"
            done.add((target, then))
            new += 1
        return new

    def _done(self, view: View) -> set[tuple[str, str | None]]:
        """Give what a view was compiled for; a view that is the same to the last detail need not be compiled again."""
        key = (view.policies, len(view.exchanges), len(view.omissions), tuple(each.stale for each in view.exchanges))
        same = self._judged.setdefault(key, [])
        for other, done in same:
            if other == view:
                return done
        same.append((view, set()))
        return same[-1][1]

    def media(self, digest: str) -> bytes:
        """Give a payload."""
        return self._store.blob(BlobId(digest))

    # --- as it grew ---------------------------------------------------------------------------------------------------------------

    def growing(self, name: str, percent: int, target: str) -> Found:
        """Hold a policy to prefix stability over the calls of the dialog, in the requests of one provider.

        The budget is in percent of the whole dialog, counted as for the first profile.
        """
        model, *_ = self._books
        budget = Budget.of_input(max(self._books[model].meter.view(self.view).total * percent // 100, 1))
        calls, count = iter(self._calls), self._counters[model]
        requests, edits = stable(
            calls, _made(name, model), budget, count, targets=(target,), media=self.media, sources=self._source
        )
        return Counter({GROWN: requests, EDITS: edits})

    def _source(self, handle: Handle) -> Content | None:
        found = self._recalled(handle)
        return None if isinstance(found, Entry) else cast("Content", found)

    @cached_property
    def _calls(self) -> Sequence[View]:
        return asked(self._store, self.view.dialog_id, MOST_CALLS)


def _new(name: str, model: str) -> ContextManager:
    made = policy(name, model)
    assert made is not None
    return made


_made = cache(_new)
"""Give a policy that was made before: to look up a model takes longer than to plan for a short conversation."""


def asked(store: MemoryStore, dialog_id: DialogId, most: int) -> Sequence[View]:
    """Give a dialog as it was whenever its model was called: it ended on the user's words, or on the results of calls.

    Args:
        store: The store.
        dialog_id: The dialog.
        most: How many calls to give: where there are more, the first, those in the middle and the last of them.
    """
    ends = list(_ends(store.headers(dialog_id)))
    if len(ends) > most:
        third, middle = most // 3, (len(ends) - most // 3) // 2
        ends = [*ends[:third], *ends[middle : middle + third], *ends[-third:]]
    folding = Folding(store, store.node(dialog_id))
    return [view for view in map(folding.view, ends) if _to_be_answered(view)]


def _ends(headers: Iterable[Header]) -> Iterator[Header]:
    """Give the entries before which something was said to the model, and behind which a new response begins or the log ends.

    A response is recorded in fragments, and the results of its first calls may stand between them: there it was not asked.
    """
    last: Header | None = None
    said = ""
    for header in headers:
        begins = header.role == Role.ASSISTANT and (
            not header.response or last is None or header.response != last.response
        )
        if last is not None and begins and said not in {"", Role.ASSISTANT}:
            yield last
        last, said = header, header.role or said
    if last is not None:
        yield last


def _to_be_answered(view: View) -> bool:
    """Tell whether a view ends on the user's words, or on the results of calls."""
    newest = view.exchanges[-1] if view.exchanges else None
    return newest is not None and not newest.open and (newest.role is Role.USER or len(newest.turns) > 1)


# --- many cases -----------------------------------------------------------------------------------------------------------------


def hold_part(
    recording: Recording, sessions: slice, part: int, policies: Iterable[str] = POLICIES
) -> tuple[Mapping[str, Found], Sequence[str]]:
    """Hold the views of some sessions of a recording to the promise, those that are a part's.

    Returns:
        What was found, by policy; and what was wrong, a line for each case: one that is wrong does not hide the others.
    """
    found: dict[str, Found] = {name: Counter() for name in policies}
    wrong: list[str] = []
    for dialog, store, session_id, dialog_id in dialogs(recording, sessions):
        held, bodies = Held(store, session_id, dialog_id), list(store.bodies(dialog_id))
        for name in policies if held.view.exchanges else ():
            case = f"{dialog}:{name}"
            runs = [(f"{percent} %", partial(held.case, name, percent)) for percent in budgets(case, part)]
            if (percent := grows(case, part)) is not None:
                target = list(MODELS)[crc32(case.encode()) % len(MODELS)]
                runs.append((f"{percent} % as it grew ({target})", partial(held.growing, name, percent, target)))
            for what, run in runs:
                try:
                    found[name] += run()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong, and the other cases are still to be seen
                    wrong.append(f"{case} at {what}: {type(error).__name__}: {error} ({_where(error)})")
        if list(store.bodies(dialog_id)) != bodies:
            wrong.append(f"{dialog}: the log was changed")
    return found, wrong


def _where(error: BaseException) -> str:
    """Give where an error was raised."""
    frame = extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"
