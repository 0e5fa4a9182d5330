"""What a call costs, in US dollars, by the price list of the provider that serves the model.

Prices come from genai-prices: with steps by size of the request, changes by date and cheaper hours, for the host that the
model's name points to. A price that is not known is an error, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.errors import InvalidInput, NotFound
from palaver.ids import now
from palaver.messages import InvokeCost, Usage, UsageCost
from palaver.tokens.catalogue import Listing, ModelInfo, close_names, find, source
from palaver.tokens.names import read_name

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_MILLION = 1_000_000
_WITHOUT_PRICE = "price for the model"


@dataclass(frozen=True, slots=True)
class Rates:
    """What one token costs, in US dollars. Where a provider has no price of its own for cached tokens, they cost as input.

    Attributes:
        input: A token read that was not cached.
        cache_read: A token read from the provider's cache.
        cache_write: A token written to the cache, kept for the shortest time the provider offers.
        output: A token written, reasoning included.
        source: The data, host and model the figures are from.
    """

    input: float
    cache_read: float
    cache_write: float
    output: float
    source: str


def rates(model: str | ModelInfo, *, input_tokens: int = 0, at: float | None = None) -> Rates:
    """Look up what a token costs.

    Args:
        model: The model; a host in its name decides whose price counts.
        input_tokens: The size of the request, where the provider charges more for long ones.
        at: When, in seconds since 1970 UTC; now if None.

    Raises:
        NotFound: There is no such model, or no price for it at a host its name points to.
    """
    listing = _listing(model)
    token = _per_token(_listed(listing, at), input_tokens, _name(model))
    return Rates(
        input=float(token.input),
        cache_read=float(token.cache_read),
        cache_write=float(token.cache_write),
        output=float(token.output),
        source=_source(listing),
    )


def price(usage: Usage | Mapping[str, Any], model: str | ModelInfo, at: float | None = None) -> UsageCost:
    """Return what one call cost, in US dollars.

    Args:
        usage: What it used, in any provider's words. One call's, not a sum: long requests may cost more per token.
        model: The model; a host in its name decides whose price counts.
        at: When, in seconds since 1970 UTC; now if None.

    Raises:
        NotFound: There is no such model, or no price for it at a host its name points to.
        InvalidInput: The usage contradicts itself, such as more cached tokens than were read.
    """
    used = usage if isinstance(usage, Usage) else Usage(usage)
    return _priced(used, used.invoke_cost, _name(model), _listed(_listing(model), at))


def _priced(used: Usage, counted: InvokeCost, model: str, listed: ModelPrice) -> UsageCost:
    """Return what a call cost by a model's prices; `counted` are its tokens."""
    size, cached, kept = counted.prompt_tokens, counted.cached_prompt_tokens, used.cache_write_tokens
    token = _per_token(listed, size, model)
    long_kept = long_writes(used)
    words = {
        "input_tokens": size,
        "cache_read_tokens": cached,
        "cache_write_tokens": kept,
        "cache_write_1h_tokens": long_kept,
        "output_tokens": counted.completion_tokens,
        "input_audio_tokens": counted.audio_prompt_tokens,
        "output_audio_tokens": counted.audio_completion_tokens,
    }
    try:
        charged = listed.calc_price({word: count for word, count in words.items() if count})
    except ValueError as error:
        raise InvalidInput(f"This usage cannot be priced: {error}.", hint="Pass the usage of one call.") from error
    read, written = cached * token.cache_read, kept * token.cache_write
    if (rate := _rate(listed, "cache_write_1h_mtok", size)) is not None:  # Anthropic's one-hour cache costs more
        written += long_kept * (rate - token.cache_write)
    return UsageCost(
        input=float(charged["input_price"] - read - written),
        output=float(charged["output_price"]),
        cache_read=float(read),
        cache_write=float(written),
        total=float(charged["total_price"]),
    )


def cost_anew(usage: Usage, model: str, at: float | None, count: int) -> float:
    """Return what some tokens of a prompt cost more than read from the cache; 0 where no price is known.

    Those that the call wrote to the cache come first, at the price of writing; the others were read anew.
    """
    try:
        listed = _listed(_listing(model), at)
        token = _per_token(listed, usage.input_tokens, model)
    except NotFound:
        return 0.0
    kept = min(count, usage.cache_write_tokens)
    long = _rate(listed, "cache_write_1h_mtok", usage.input_tokens) or token.cache_write
    kept_long = kept * long_writes(usage) // usage.cache_write_tokens if kept else 0
    charged = (kept - kept_long) * token.cache_write + kept_long * long + (count - kept) * token.input
    return float(charged - count * token.cache_read)


def cost_of(usage: Usage, model: str, at: float | None = None) -> InvokeCost:
    """Return what a call used and cost: the provider's dollars, or else those of the price list, if it has the model."""
    if not usage:
        return InvokeCost()
    known = usage.invoke_cost
    if known.cost or not model or (listing := _certain(model)) is None:
        return known
    try:
        charged = _priced(usage, known, model, _listed(listing, at))
    except (NotFound, InvalidInput):
        return known
    read = charged.total - charged.output
    return replace(known, prompt_cost=read, completion_cost=charged.output, cost=charged.total, estimated=charged.total)


class _PerToken(NamedTuple):
    """Exact dollars for one token, as in :class:`Rates`."""

    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal


def _name(model: str | ModelInfo) -> str:
    """Return the name of a model."""
    return model.name if isinstance(model, ModelInfo) else model


def _no_price(name: str) -> NotFound:
    """Return the error for a model without a price; it names models with one."""
    return NotFound(
        name,
        what=_WITHOUT_PRICE,
        close=close_names(read_name(name)),
        hint="Name the host that serves it, as in 'openrouter/anthropic/claude-sonnet-4.5'.",
    )


def _certain(model: str) -> Listing | None:
    """Find a model, unless its price would be a guess."""
    listing = find(read_name(model))
    return listing if listing is not None and listing.certain else None


def _listing(model: str | ModelInfo) -> Listing:
    listing = _certain(_name(model))
    if listing is None:
        raise _no_price(_name(model))
    return listing


def _listed(listing: Listing, at: float | None) -> ModelPrice:
    """Return the prices of a model at a time."""
    return listing.model.get_prices(datetime.fromtimestamp(now() if at is None else at, UTC))


def _source(listing: Listing) -> str:
    """Return the data, host and model of a price."""
    return f"{source()}: {listing.provider.id}/{listing.model.id}"


def _per_token(listed: ModelPrice, input_tokens: int, name: str) -> _PerToken:
    """Return the price of each kind of token in a request of some size."""
    plain, output = _rate(listed, "input_mtok", input_tokens), _rate(listed, "output_mtok", input_tokens)
    if plain is None or output is None:
        raise _no_price(name)
    read, write = _rate(listed, "cache_read_mtok", input_tokens), _rate(listed, "cache_write_mtok", input_tokens)
    return _PerToken(plain, plain if read is None else read, plain if write is None else write, output)


def _rate(listed: ModelPrice, key: str, input_tokens: int) -> Decimal | None:
    """Return dollars for one token by a key of the price list, or None if the list has none."""
    listing = getattr(listed, key)
    if listing is None:
        return None
    base = getattr(listing, "base", listing)
    steps = [step.price for step in getattr(listing, "tiers", ()) if input_tokens > step.start]
    return Decimal(steps[-1] if steps else base) / _MILLION


def long_writes(used: Usage) -> int:
    """Return the tokens written to Anthropic's one-hour cache."""
    detail = used.get("cache_creation")
    return int(detail.get("ephemeral_1h_input_tokens") or 0) if isinstance(detail, Mapping) else 0
