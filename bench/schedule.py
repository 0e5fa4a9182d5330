"""What schedules cost on generated workloads, through what a planner pays that knows the future: mean / 95th of 100 / worst.

Beside each figure stands that of an earlier simulation of the same rules, written apart from this code, with the same kind of workload but other
draws (docs/scheduling.md says where they differ, and why).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import mean

from bench.measure import Row
from palaver.context.schedule import PriceSheet
from palaver.context.schedule.folding import Rule, at_size, break_even, forced, optimum, played, rent_or_buy
from palaver.context.schedule.masking import (
    AtLeast,
    EveryStep,
    Masking,
    Never,
    Polling,
    Suffix,
    best_batches,
    best_suffixes,
    masked,
)
from palaver.context.schedule.workloads import Observations, growing, observing

FOLDS = 200
"""Workloads for each row of the first table."""
MASKS = 100
"""Workloads for each row of the second."""
PRICES = PriceSheet(loss=0.0, missed=0.0)
LOSS = PriceSheet(loss=60_000.0, missed=0.0)

_COLUMNS = ((200_000, 0.0), (200_000, 0.05), (1_000_000, 0.0), (1_000_000, 0.05))

_EARLIER_FOLDS: Mapping[str, tuple[str, str, str, str]] = {
    "forced only": ("1.28/1.82/2.69", "1.41/2.32/3.25", "1.85/3.76/4.75", "2.27/5.42/6.89"),
    "80 % of the window": ("1.26/1.72/2.62", "1.39/2.30/3.15", "1.81/3.69/4.68", "2.22/5.34/6.75"),
    "50 % of the window": ("1.12/1.45/1.78", "1.21/1.71/2.15", "1.65/3.12/4.68", "2.06/3.97/6.75"),
    "fixed 100,000": ("1.12/1.45/1.78", "1.21/1.71/2.15", "1.12/1.55/1.80", "1.25/1.82/2.17"),
    "fixed 64,000": ("1.07/1.21/1.37", "1.11/1.37/1.54", "1.07/1.21/1.39", "1.12/1.41/1.53"),
    "break-even, 20 calls assumed": ("1.12/1.29/1.38", "1.10/1.23/1.34", "1.12/1.30/1.44", "1.10/1.27/1.42"),
    "rent or buy": ("1.03/1.09/1.22", "1.06/1.12/1.20", "1.03/1.12/1.18", "1.06/1.15/1.22"),
    "rent or buy, drawn at random": ("", "", "", ""),
}

_EARLIER_MASKS: Mapping[str, tuple[str, str, str, str]] = {
    "every step": ("2.70", "2.37", "1.69", "1.01"),
    "polling 5": ("1.20", "1.00", "0.73", "0.47"),
    "polling 10": ("1.03", "0.86", "0.63", "0.42"),
    "at least 20,000": ("1.04", "0.85", "0.61", "0.41"),
    "at least 50,000": ("1.00", "0.87", "0.63", "0.43"),
    "the ledger": ("1.03", "0.83", "0.60", "0.405"),
}
_LENGTHS = (30, 60, 120, 250)


def run(_: Path, *, quick: bool) -> list[Row]:
    """Make the tables; nothing is timed."""
    part = 10 if quick else 1
    return [
        *_folding(FOLDS // part, PRICES, _EARLIER_FOLDS),
        *_folding(FOLDS // part, LOSS, {}),
        *_masking(MASKS // part),
        *_exact(MASKS // part),
    ]


def _spread(ratios: list[float]) -> str:
    ordered = sorted(ratios)
    return f"{mean(ordered):.2f}/{ordered[int(0.95 * (len(ordered) - 1))]:.2f}/{ordered[-1]:.2f}"


def _rules(window: int, prices: PriceSheet, seed: str) -> dict[str, Rule]:
    return {
        "forced only": forced,
        "80 % of the window": at_size(0.8 * window),
        "50 % of the window": at_size(0.5 * window),
        "fixed 100,000": at_size(100_000),
        "fixed 64,000": at_size(64_000),
        "break-even, 20 calls assumed": break_even(20, prices),
        "rent or buy": rent_or_buy(),
        "rent or buy, drawn at random": rent_or_buy(seed),
    }


def _folding(count: int, prices: PriceSheet, earlier: Mapping[str, tuple[str, ...]]) -> Iterator[Row]:
    """Give the bills of rules that fold, through the optimum's."""
    for column, (window, cold) in enumerate(_COLUMNS):
        ratios: dict[str, list[float]] = {}
        folds: dict[str, list[int]] = {}
        for seed in range(count):
            load = growing(seed, window=window, cold=cold)
            best = optimum(load, prices)
            folds.setdefault("best", []).append(len(best.folds))
            for name, rule in _rules(window, prices, str(seed)).items():
                bill = played(load, prices, rule)
                ratios.setdefault(name, []).append(bill.total / best.total)
                folds.setdefault(name, []).append(len(bill.folds))
        priced = f", a fold costs the work {prices.loss:,.0f}" if prices.loss else ""
        yield Row(
            f"fold, window {window // 1000:,}k, {'5 % cold' if cold else 'warm'}{priced}",
            f"{count} workloads",
            "earlier",
        )
        for name, found in ratios.items():
            told = earlier.get(name, ("",) * len(_COLUMNS))[column]
            yield Row(f"  {name} ({mean(folds[name]):.1f} folds)", _spread(found), told)
        yield Row(f"  the optimum ({mean(folds['best']):.1f} folds)", "1.00/1.00/1.00")


_MASKING: Mapping[str, Callable[[], Masking]] = {
    "every step": EveryStep,
    "polling 5": lambda: Polling(5),
    "polling 10": lambda: Polling(10),
    "at least 20,000": lambda: AtLeast(20_000),
    "at least 50,000": lambda: AtLeast(50_000),
    "the ledger": lambda: Suffix(PRICES),
}


def _masking(count: int) -> Iterator[Row]:
    """Give the bills of rules that mask, through that of never masking, and through that of the best batches."""
    for column, calls in enumerate(_LENGTHS):
        loads = [observing(seed, calls) for seed in range(count)]
        never = [masked(load, PRICES, Never()) for load in loads]
        best = [best_batches(load, PRICES) for load in loads]
        yield Row(
            f"mask, {calls} calls: the bill through never masking", f"{count} workloads", "earlier", "best batches"
        )
        for name, rule in _MASKING.items():
            bills = [masked(load, PRICES, rule()) for load in loads]
            through = mean(bill / none for bill, none in zip(bills, never, strict=True))
            regret = _spread([bill / least for bill, least in zip(bills, best, strict=True)])
            yield Row(f"  {name}", f"{through:.3f}", _EARLIER_MASKS[name][column], regret)
        planned = mean(least / none for least, none in zip(best, never, strict=True))
        yield Row("  the best batches", f"{planned:.3f}", "", "1.00/1.00/1.00")


def _exact(count: int) -> Iterator[Row]:
    """Give the ledger's bill on short conversations, through the best there is over all suffixes."""
    ratios, batches = [], []
    for seed in range(count):
        drawn = observing(seed, 14)
        load = Observations(sizes=drawn.sizes, prefix=drawn.prefix, newest=3)
        best = best_suffixes(load, PRICES)
        ratios.append(masked(load, PRICES, Suffix(PRICES)) / best)
        batches.append(best_batches(load, PRICES) / best)
    yield Row("mask, 14 calls, newest 3: the ledger through the best of all suffixes", _spread(ratios))
    yield Row("  the best batches through it", _spread(batches))
