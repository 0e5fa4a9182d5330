"""The documentation tells the truth: its Python runs and prints what it says, its links lead somewhere."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

from tests.collector import collecting

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = list(find_examples(*PAGES))
SKIP = "skip:"
SERVERS = {"docs/how-to/telemetry.md": "collector"}
"""Pages whose Python talks to a server, and the fixture that runs it."""


@pytest.fixture
def collector(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a collector of traces, and name its address in the environment."""
    with collecting(tmp_path_factory.mktemp("collector")) as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield


def _page(example: CodeExample) -> str:
    return str(example.path.relative_to(ROOT)) if example.path.is_relative_to(ROOT) else str(example.path)


@pytest.mark.parametrize("page", sorted({_page(example) for example in EXAMPLES}))
def test_the_python_of_a_page_runs(
    page: str,
    eval_example: EvalExample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The blocks of a page run in order, in one namespace and an empty folder, and print what their `#>` lines say.

    A block opts out with a reason: ```` ```python test="skip: needs an API key" ````.
    """
    monkeypatch.chdir(tmp_path)
    if page in SERVERS:
        request.getfixturevalue(SERVERS[page])
    names: dict[str, object] = {}
    for example in EXAMPLES:
        opted_out = example.prefix_settings().get("test", "").startswith(SKIP)
        if _page(example) != page or opted_out:
            continue
        run = eval_example.run_print_update if eval_example.update_examples else eval_example.run_print_check
        what = ""
        try:
            names.update(run(example, module_globals=names))
        except Exception as error:  # noqa: BLE001 - whatever a block of a page raises
            what = _raised(example, error)
        if what:  # not while the error is handled: pytest prints that one too
            pytest.fail(what, pytrace=False)


def _raised(example: CodeExample, error: Exception) -> str:
    """Say what a block raised, and where; its traceback has a frame without positions, which pytest cannot print (`StopIteration`)."""
    path = str(example.path)
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    what = "".join(traceback.format_exception_only(error)).strip()
    return f"{_page(example)}:{lines[-1] if lines else example.start_line}: {what}"


def test_a_block_opts_out_only_with_a_reason() -> None:
    """The one setting a block may have is `test="skip: <reason>"`, the reason not empty."""
    for example in EXAMPLES:
        said = example.prefix_settings()
        assert set(said) <= {"test"}, example
        assert "test" not in said or re.fullmatch(rf"{SKIP} \S.{{5,}}", said["test"]), example


def test_relative_links_lead_somewhere() -> None:
    """A link or picture without a scheme names a file of the checkout."""
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"]\(([^)\s]+)[^)]*\)|src=\"([^\"]+)\"", text):
            link = (target[0] or target[1]).partition("#")[0]
            elsewhere = not link or "://" in link or link.startswith("mailto:")
            assert elsewhere or (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_tests_that_a_page_names_exist() -> None:
    """A test file that is named is there, and so is a test in it: what a page says is proved can be looked up."""
    for page in PAGES:
        for file, name in re.findall(r"`((?:tests|src)/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8")):
            place = ROOT / file
            assert place.is_file(), f"{page.name}: {file}"
            assert not name or f"def {name}(" in place.read_text(encoding="utf-8"), f"{page.name}: {file}::{name}"
