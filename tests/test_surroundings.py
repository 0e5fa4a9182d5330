"""The surroundings of tests: no network beyond this machine, no home folder, pinned requirements."""

import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import told
from tests.conftest import NetworkForbiddenError

ROOT = Path(__file__).parent.parent
PINS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80), ("example.org", 80)])
def test_another_machine_cannot_be_reached(address: tuple[str, int]) -> None:
    """A connection, and a look-up of a name, beyond loopback fail before a packet leaves."""
    with pytest.raises(NetworkForbiddenError):
        socket.create_connection(address, timeout=1)


def test_this_machine_can_be_reached() -> None:
    """Loopback stays open for the peer server."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        pass


def test_the_home_folder_cannot_be_used() -> None:
    """Nothing can be made below the home folder, by whichever user, in this process or in a child."""
    with pytest.raises(NotADirectoryError):
        (Path.home() / ".palaver").mkdir(parents=True)
    child = subprocess.run(
        [sys.executable, "-c", "import pathlib; pathlib.Path.home().joinpath('x').mkdir()"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "NotADirectoryError" in child.stderr


def test_the_size_of_the_terminal_is_unknown() -> None:
    """The variables that hold it are removed; output would be cut at it otherwise."""
    assert not {"COLUMNS", "LINES"} & os.environ.keys()


def test_lines_and_counts_arrive_with_reports() -> None:
    """A line is printed once, counts are added over all tests, and reports may come from any process."""
    counted = told.COUNTED + "views"
    reports = [
        pytest.TestReport("t.py::a", ("t.py", 1, "a"), {}, "passed", None, phase, user_properties=properties)
        for phase in ("call", "teardown")
        for properties in (
            [(told.TOLD, "one line"), (counted, {"valid": 1_000, "not": 0})],
            [("store", "sqlite"), (counted, {"valid": 1})],
        )
    ]
    assert list(told.lines(reports)) == ["one line", "views: 1,001 valid, 0 not"]


def _pins(path: Path) -> dict[str, list[str]]:
    """Return every pinned version of each name (universal files may pin one name twice, with markers)."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)(?:\[[^]]*])?==([^\s;]+)", path.read_text(), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_requirements_are_pinned_by_hash_and_name_no_host(path: Path) -> None:
    """Every line is `name==version` with hashes, without address, path or option."""
    for requirement in path.read_text().replace("\\\n", " ").splitlines():
        assert re.fullmatch(r"[\w.\[\]-]+==[^\s;]+( *;[^#]*?)?( +--hash=sha256:[0-9a-f]{64})+ *", requirement), (
            requirement
        )


@pytest.mark.parametrize(
    ("pins", "group"), [("dev", "dev"), ("docs", "docs"), ("bench", "bench"), ("node", "node"), ("uv", "uv")]
)
def test_pins_satisfy_the_project(pins: str, group: str) -> None:
    """Each requirement of pyproject.toml is pinned in a version that it allows: the pins were compiled after its last change."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["dependency-groups"][group])
    if group in ("dev", "bench"):
        wanted += project["project"]["dependencies"]
    pinned = _pins(ROOT / "requirements" / f"{pins}.txt")
    for requirement in map(Requirement, wanted):
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not pinned in requirements/{pins}.txt"
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement
