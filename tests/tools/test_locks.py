"""A lock of one process: a child that was forked off has its own."""

import threading

from palaver.testing.forked import forked
from palaver.tools.locks import OwnLock
from tests.threads import WAIT, at_once


def test_a_child_does_not_wait_for_a_thread_that_stayed_in_the_parent() -> None:
    """Forked while another thread holds the lock: the child takes it, and the parent's is as it was."""
    lock = OwnLock()
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            assert go_on.wait(WAIT)

    def child() -> None:
        with lock, lock:
            pass

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(WAIT)
    assert forked(child) == 0
    go_on.set()
    thread.join(WAIT)
    with lock:
        assert forked(child) == 0


def test_only_one_thread_holds_it() -> None:
    """What is done under it is one step."""
    lock = OwnLock()
    counted = [0]

    def work(_: int, barrier: threading.Barrier) -> None:
        barrier.wait()
        for _turn in range(200):
            with lock:
                before = counted[0]
                counted[0] = before + 1

    at_once(4, work)
    assert counted == [800]
