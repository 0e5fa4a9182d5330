"""Counts in output: the noun agrees with the number."""

from palaver.plurals import counted


def test_the_noun_agrees_with_the_number() -> None:
    """Every number but 1 has the plural, -ies for y after a consonant, or the caller's own; long numbers have separators."""
    for count, words in ((0, "0 messages"), (1, "1 message"), (2, "2 messages"), (1_234_567, "1,234,567 messages")):
        assert counted(count, "message") == words
    for one, more in (("entry", "entries"), ("day", "days"), ("more line", "more lines")):
        assert [counted(count, one) for count in (0, 1, 2)] == [f"0 {more}", f"1 {one}", f"2 {more}"]
    shown = [counted(count, "stretch is", "stretches are") for count in (0, 1, 21)]
    assert shown == ["0 stretches are", "1 stretch is", "21 stretches are"]
