"""The surroundings of every test: hypothesis profiles, no network beyond loopback, no home folder, the recorded sessions."""

import ipaddress
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import clients, laws, postgres, recorded
from tests.peers import server
from tests.postgres_wheel import wheel_server

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "soak", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("default")

# Variables that would let a test reach another machine, or depend on the user or the terminal.
FOREIGN_ENVIRONMENT = (
    "_API_KEY",
    "_PROXY",
    "_proxy",
    "_BASE_URL",
    "PALAVER_STORE",
    "OTEL_",
    "XDG_",
    "COLUMNS",
    "LINES",
)


class NetworkForbiddenError(AssertionError):
    """A test contacted another machine."""


def _is_this_machine(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(os.fsdecode(host) if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def _forbid_network(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_this_machine(host):
        msg = f"{event} to {host!r}: tests contact this machine only"
        raise NetworkForbiddenError(msg)


def pytest_configure() -> None:
    """Forbid the network before collection, so that imports cannot use it either."""
    sys.addaudithook(_forbid_network)
    _heed_ctrl_c()


def _heed_ctrl_c() -> None:
    """Restore the handler of Ctrl-C where a script started this process with `&`: children that tests interrupt inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# --- the laws, counted ------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what names a law, before `-m` chooses."""
    for item in items:
        if named := laws.laws_of(item):
            item.add_marker("law")
            item.user_properties.append(("laws", named))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Put the number of checks into the report of a test."""
    if call.when == "call":
        item.user_properties.append(("checks", laws.checks_of(item)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was held over what, where tests were chosen by law."""
    if "law" in config.getoption("markexpr"):
        made = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind) if one.when == "call"]
        terminalreporter.section("laws")
        terminalreporter.write_line("\n".join(laws.table(made)))


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _no_home_and_no_foreign_environment() -> Iterator[None]:
    """Point the home folder at a file, so that neither children nor root can use it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if any(part in name for part in FOREIGN_ENVIRONMENT):
                patch.delenv(name)
        patch.setenv("HOME", os.devnull)
        yield


@pytest.fixture(autouse=True)
def _no_client_is_left_open() -> Iterator[None]:
    """Close the clients that a test opened."""
    yield
    clients.OPENED.close()


@pytest.fixture(scope="session")
def recorded_sessions() -> Path:
    """Return the folder of recorded sessions that PALAVER_TEST_DATA names; without it the test skips."""
    if recorded.ROOT is None:
        pytest.skip(recorded.WHY_MISSING)
    return recorded.ROOT


@pytest.fixture(scope="session")
def start_peer() -> Iterator[Callable[[Path], server.Peer]]:
    """Return a function that starts a peer server for a folder of fixtures, once per folder; all stop with the test session."""
    if (reason := server.why_missing()) is not None:
        pytest.skip(reason)
    running: dict[Path, server.Peer] = {}
    with ExitStack() as stack:

        def start(fixtures: Path) -> server.Peer:
            if fixtures not in running:
                running[fixtures] = stack.enter_context(server.serve(fixtures))
            return running[fixtures]

        yield start


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """Return a running PostgreSQL server, the one in the wheel; `url()` returns the address of a new store."""
    with wheel_server() as running:
        yield running
