"""Summaries that keep the plot: asked for with sections, checked, held to the values of their sources, and never trusted alone."""

from palaver.context.summary.checks import filled, lacking, unusable
from palaver.context.summary.extract import extract
from palaver.context.summary.request import HEADINGS, Summarizer, SummaryAnswer, SummaryRequest
from palaver.context.summary.retention import ENOUGH, Retention, compensation, retention, values
from palaver.context.summary.summarize import Breaker, Summarized, summarized
from palaver.context.summary.transcript import pieces, transcript

__all__ = [
    "ENOUGH",
    "HEADINGS",
    "Breaker",
    "Retention",
    "Summarized",
    "Summarizer",
    "SummaryAnswer",
    "SummaryRequest",
    "compensation",
    "extract",
    "filled",
    "lacking",
    "pieces",
    "retention",
    "summarized",
    "transcript",
    "unusable",
    "values",
]
