"""The golden requests: what each history of the corpus is compiled to, for every provider, in files that people read.

After a change that is meant, `python -m tests.wire.test_golden` writes them again; the difference is then read like any other change.
"""

import json
from pathlib import Path

from palaver.messages import thaw
from tests.wire.histories import HISTORIES
from tests.wire.scenes import MODELS

FOLDER = Path(__file__).parent / "golden"


def snapshot(name: str) -> str:
    """Return the file of a history: for each provider the body of its request and the lines of its report."""
    requests = {profile: HISTORIES[name]().request(profile) for profile in MODELS}
    value = {
        profile: {"body": thaw(request.body), "report": [str(change) for change in request.report]}
        for profile, request in requests.items()
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def test_every_history_is_compiled_as_it_was() -> None:
    """R239, R243: bodies and reports are those of the golden files, byte for byte, the order of keys included."""
    assert {path.stem for path in FOLDER.glob("*.json")} == set(HISTORIES)
    for name in HISTORIES:
        assert snapshot(name) == (FOLDER / f"{name}.json").read_text(encoding="utf-8"), name


if __name__ == "__main__":
    for each in HISTORIES:
        (FOLDER / f"{each}.json").write_text(snapshot(each), encoding="utf-8")
