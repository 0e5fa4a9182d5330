"""The PostgreSQL store of each old format, as statements that make it again.

`python -m tests.store.golden_postgres` writes the newest one into tests/golden: once, when a format is new, and never again after its release.
"""

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

from palaver.store.postgres import PostgresStore
from palaver.store.postgres.address import address
from palaver.store.postgres.opening import newest_format
from tests import postgres
from tests.store.golden import content, write

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMA = "golden"
# What pg_dump says for psql alone, and settings that older servers do not know.
_ASIDE = re.compile(r"^(?:\\.*|SET transaction_timeout.*|--.*|)\n", re.MULTILINE)


def main() -> None:
    """Write the golden file of the newest format."""
    programs = postgres.wheel_programs()
    assert programs is not None, "the server of the wheel is not installed"
    with postgres.server(programs) as server:
        url = server.url(SCHEMA)
        with PostgresStore(url) as store:
            write(store)
            described = json.dumps(content(store), indent=1, ensure_ascii=False, sort_keys=True)
        options = (
            "--inserts",
            "--no-owner",
            "--no-privileges",
            f"--schema={SCHEMA}",
            f"--dbname={address(url).conninfo}",
        )
        dumped = subprocess.run(
            [str(programs / "pg_dump"), *options], capture_output=True, check=True, text=True, env={"PATH": os.defpath}
        )
    name = f"postgres-v{newest_format()}"
    (GOLDEN / f"{name}.sql.gz").write_bytes(gzip.compress(_ASIDE.sub("", dumped.stdout).encode(), mtime=0))
    (GOLDEN / f"{name}.json").write_text(described + "\n", "utf-8")


if __name__ == "__main__":
    main()
