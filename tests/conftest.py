"""What every test gets: hypothesis profiles, no network beyond loopback, no home folder, the recorded sessions."""

import inspect
import ipaddress
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import chance, postgres, recorded, told
from tests.demand.table import Table
from tests.peers import server
from tests.postgres_wheel import wheel_server

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "soak", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("default")

# What would let a test reach beyond this machine, or make it depend on who runs it, and in how many processes: those of several are told
# the size of the terminal.
FOREIGN_ENVIRONMENT = ("_API_KEY", "_PROXY", "_proxy", "_BASE_URL", "PALAVER_STORE", "XDG_", "COLUMNS", "LINES")

_COMES = pytest.StashKey[Callable[[Path, str], None]]()


class NetworkForbiddenError(AssertionError):
    """A test spoke to a host other than this machine."""


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
        msg = f"{event} to {host!r}: tests speak to this machine only"
        raise NetworkForbiddenError(msg)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let ids be drawn as chance draws them seldom."""
    parser.addoption("--ids", choices=sorted(chance.CHANCES), help="draw ids as chance seldom does (tests/chance.py)")


def pytest_configure(config: pytest.Config) -> None:
    """Forbid the network from before collection on, so that no import reaches out either."""
    sys.addaudithook(_forbid_network)
    _heed_ctrl_c()
    if (name := config.getoption("--ids")) is not None:
        config.stash[_COMES] = chance.drawn_by(name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say which test is next, where that matters to its ids."""
    if (comes := item.config.stash.get(_COMES, None)) is not None:
        written = inspect.getsourcefile(inspect.unwrap(item.obj)) if isinstance(item, pytest.Function) else None
        comes(Path(written or item.path), getattr(item, "originalname", None) or item.name)


def _heed_ctrl_c() -> None:
    """Heed Ctrl-C also where this process was begun with it ignored (`&` in a script): the children that tests interrupt inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_home_and_no_foreign_environment() -> Iterator[None]:
    """Make the home folder a place where nothing can be read or made, also for children and for root."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if any(part in name for part in FOREIGN_ENVIRONMENT):
                patch.delenv(name)
        patch.setenv("HOME", os.devnull)
        yield


@pytest.fixture(scope="session")
def recorded_sessions() -> Path:
    """Return the folder of recorded sessions that PALAVER_TEST_DATA names; without it the test skips."""
    if recorded.ROOT is None:
        pytest.skip(recorded.WHY_MISSING)
    return recorded.ROOT


@pytest.fixture(scope="session")
def start_peer() -> Iterator[Callable[[Path], server.Peer]]:
    """Return a function that starts a peer server over a folder of fixtures, once a folder; all end with the session."""
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
    """Return a running PostgreSQL server, the one in the wheel; `url()` gives the address of a store that is not there yet."""
    with wheel_server() as running:
        yield running


# --- what is printed at the end ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that has a line printed at the end of the run."""
    return partial(record_property, told.TOLD)


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Callable[[str, Mapping[str, int]], None]:
    """Return a function that has numbers, by what they count, printed under a title at the end of the run: those of all tests, added up."""
    return lambda title, numbers: record_property(told.COUNTED + title, dict(numbers))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests told and counted, and the table of the scenarios, if any ran."""
    stats = terminalreporter.stats.values()
    reports = [report for kind in stats for report in kind if isinstance(report, pytest.TestReport)]
    scenarios = Table()
    for report in reports:
        scenarios.take(report)
    for title, lines in (
        ("told", [*told.lines(reports)]),
        ("scenarios", [*scenarios.lines()] if scenarios.rows else []),
    ):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
