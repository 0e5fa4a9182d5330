"""A view over a log of which one entry's bytes are gone: the rest stands as it was, and the place says what is missing."""

import pytest

from palaver.errors import InvalidInput
from palaver.log import Handle, decode_entry, decoded
from palaver.messages import Speaker
from palaver.testing.log_strategies import assert_closed
from palaver.testing.logs import Log, model, result, sketch, system, user
from palaver.view import fold


def spoilt(seq: int) -> Log:
    """Give a log in which the bytes of one entry are no entry any more."""
    log = Log()
    log.put(system("rules"), user("go"), model("I look", "a", response="r1"), result("a"), model("done"), user("and?"))
    bodies = log.store.contents.logs[log.dialog].bodies
    bodies[seq] = bodies[seq][: len(bodies[seq]) // 2]
    return log


@pytest.mark.parametrize("seq", range(6))
def test_d20_one_damaged_entry_loses_itself_and_nothing_else(seq: int) -> None:
    """Whatever entry it is, the others are shown, calls keep their results, and a line of the harness names the place."""
    log = spoilt(seq)
    whole = Log()
    whole.put(
        system("rules"), user("go"), model("I look", "a", response="r1"), result("a"), model("done"), user("and?")
    )
    view = fold(log.store, log.dialog)
    assert_closed(view)
    blocks = [block for exchange in view.exchanges for block in exchange.blocks()]
    texts = "\n".join([*(str(block.content) for block in blocks), *(str(block.content) for block in view.system)])
    assert f"{log.dialog[:12]}:{seq}" in texts
    others = {"rules", "go", "I look", "done", "and?"} - [{"rules"}, {"go"}, {"I look"}, {"done"}, {"done"}, {"and?"}][
        seq
    ]
    assert all(word in texts for word in others)
    assert len(sketch(view)) - len(sketch(fold(whole.store, whole.dialog))) == (seq == 0), "instructions leave a line"
    assert fold(log.store, log.dialog) == view


def test_d20_what_stands_for_a_damaged_entry_is_nobodys_word() -> None:
    """It is the harness's, the same each time it is read; an entry that can be read is what it was."""
    log = spoilt(1)
    handle = Handle(log.dialog, 1)
    body = log.store.body(log.dialog, 1)
    with pytest.raises(InvalidInput):
        decode_entry(body)
    stand_in = decoded(log.store, handle, body)
    assert stand_in == decoded(log.store, handle, body)
    assert stand_in.model_dump()["message"]["speaker"] == Speaker.HARNESS
    assert decoded(log.store, Handle(log.dialog, 2), log.store.body(log.dialog, 2)) == decode_entry(
        log.store.body(log.dialog, 2)
    )
