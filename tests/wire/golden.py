"""The golden requests: what each history of the corpus is compiled to, for every provider, in files that people read.

After a change that is meant, `python -m tests.wire.golden` writes them again; the difference is then read like any other change.
"""

import json
from pathlib import Path
from typing import Any

from palaver.messages import thaw
from tests.wire.histories import HISTORIES
from tests.wire.scenes import MODELS

FOLDER = Path(__file__).parent / "golden"


def snapshot(name: str) -> dict[str, Any]:
    """Return the requests of a history: for each provider its body and the lines of its report."""
    requests = {profile: HISTORIES[name]().request(profile) for profile in MODELS}
    return {
        profile: {"body": thaw(request.body), "report": [str(change) for change in request.report]}
        for profile, request in requests.items()
    }


def written(value: dict[str, Any]) -> str:
    """Write a snapshot as it stands in its file."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    for each in HISTORIES:
        (FOLDER / f"{each}.json").write_text(written(snapshot(each)), encoding="utf-8")
