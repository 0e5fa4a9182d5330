"""Summaries that keep the plot: asked for with sections, checked, held to the values of their sources, and never trusted alone."""

from palaver.context.summary.breaker import Breaker
from palaver.context.summary.checks import unusable
from palaver.context.summary.digest import Digested, DigestRequest, digested
from palaver.context.summary.extract import extract
from palaver.context.summary.inventions import distinctive, flagged, invented
from palaver.context.summary.request import HEADINGS, Summarizer, SummaryAnswer, SummaryRequest, given
from palaver.context.summary.retention import ENOUGH, Left, Retention, compensation, retention, values
from palaver.context.summary.sections import filled, lacking
from palaver.context.summary.summarize import Summarized, summarized
from palaver.context.summary.task import INPUT_TOKENS
from palaver.context.summary.transcript import pieces, transcript
from palaver.context.summary.trying import SECONDS, tried

__all__ = [
    "ENOUGH",
    "HEADINGS",
    "INPUT_TOKENS",
    "SECONDS",
    "Breaker",
    "DigestRequest",
    "Digested",
    "Left",
    "Retention",
    "Summarized",
    "Summarizer",
    "SummaryAnswer",
    "SummaryRequest",
    "compensation",
    "digested",
    "distinctive",
    "extract",
    "filled",
    "flagged",
    "given",
    "invented",
    "lacking",
    "pieces",
    "retention",
    "summarized",
    "transcript",
    "tried",
    "unusable",
    "values",
]
