"""The surroundings of tests: no network beyond this machine, no home folder, requirements pinned as the project wants them."""

import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from palaver.errors import DISTRIBUTION, MissingExtra
from tests.conftest import NetworkForbiddenError

ROOT = Path(__file__).parent.parent


def test_only_this_machine_can_be_reached() -> None:
    """A connection, and a look-up of a name, beyond loopback fail before a packet leaves."""
    for address in (("192.0.2.1", 80), ("2001:db8::1", 80), ("example.org", 80)):
        with pytest.raises(NetworkForbiddenError):
            socket.create_connection(address, timeout=1)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        pass


def test_the_home_folder_cannot_be_used() -> None:
    """Nothing can be made below the home folder, by whichever user, in this process or in a child."""
    with pytest.raises(NotADirectoryError):
        (Path.home() / ".palaver").mkdir(parents=True)
    program = [sys.executable, "-c", "import pathlib; pathlib.Path.home().joinpath('x').mkdir()"]
    child = subprocess.run(program, check=False, capture_output=True, text=True)
    assert "NotADirectoryError" in child.stderr


def _pins(path: Path) -> dict[str, list[str]]:
    """Return every pinned version of each name (universal files may pin one name twice, with markers)."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)(?:\[[^]]*])?==([^\s;]+)", path.read_text(), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


@pytest.mark.parametrize("group", ["dev", "docs", "bench", "floor", "node", "uv"])
def test_pins_satisfy_the_project(group: str) -> None:
    """Each requirement of pyproject.toml is pinned in a version that it allows: the pins were compiled after its last change."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["dependency-groups"][group])
    if group in ("dev", "bench", "floor"):
        wanted += project["project"]["dependencies"]
    pinned = _pins(ROOT / "requirements" / f"{group}.txt")
    for requirement in map(Requirement, wanted):
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not pinned in requirements/{group}.txt"
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement


def test_the_floor_is_the_oldest_that_is_allowed() -> None:
    """`./run floor` tests exactly the releases that pyproject.toml names as the oldest, those of the clients of models and of MCP included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = ("openai", "anthropic", "litellm", "mcp")
    clients = [one for extra in extras for one in project["optional-dependencies"][extra]]
    pinned = _pins(ROOT / "requirements" / "floor.txt")
    for requirement in map(Requirement, [*project["dependencies"], *clients]):
        oldest = min(map(Version, pinned[canonicalize_name(requirement.name)]))
        assert oldest == Version(next(iter(requirement.specifier)).version), requirement


def test_install_hints_name_this_distribution() -> None:
    """MissingExtra, the documents and the version that commands print use the name and the extras of pyproject.toml; no page says to install another project.

    Nothing in the sources, the tools and the pages gives extras to a project of another name.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, extras = project["name"], project["optional-dependencies"]
    assert name == DISTRIBUTION == metadata(DISTRIBUTION)["Name"]
    assert MissingExtra("X", "web").hint == f"Install it with: pip install '{name}[web]'."
    pages = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
    named = {found for page in pages.values() for found in re.findall(r"pip install '?(palaver[\w-]*)\b", page)}
    assert named == {name}
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    tools = [path.read_text() for path in (ROOT / "tools").glob("*.py")]
    extended = {
        found for text in (sources, *tools, *pages.values()) for found in re.findall(r"\b(palaver[\w-]*)\[", text)
    }
    assert extended <= {name}
    raised = set(re.findall(r"MissingExtra\([^)]*?, \"([\w-]+)\"", sources))
    assert raised <= set(extras)
    assert {"web", "mcp", "anthropic"} <= raised


def test_readme_shows_both_commands() -> None:
    """Who opens a checkout sees how to see it work and how to test it, and that nothing must be prepared."""
    page = (ROOT / "README.md").read_text()
    assert re.search(r"\n\./run demo .*\n\./run test .*\n```\n\n.*the two commands of `\./run` do all the set-up", page)


def test_the_wheel_holds_the_page_of_the_explorer() -> None:
    """It takes everything below the package that git does not ignore, scripts and styles included."""
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/palaver"]}
    page = [str(path) for path in (ROOT / "src/palaver/explorer/static").rglob("*.*")]
    ignored = subprocess.run(["git", "check-ignore", "--no-index", *page], cwd=ROOT, check=False, capture_output=True)
    assert (ignored.returncode, ignored.stdout) == (1, b""), "1: none is ignored"
