"""A made-up price sheet whose figures are easy to reckon with."""

from palaver.lab.prices import Sheet

SHEET = Sheet(
    model="m",
    currency="USD",
    input=1.0,
    cache_read=0.1,
    cache_write=1.25,
    output=5.0,
    lifetime=300.0,
    least=1_000,
    source="made up",
)
