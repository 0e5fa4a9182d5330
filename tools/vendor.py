"""Write the scripts of others that the explorer's page uses, each at a pinned digest: `python tools/vendor.py`.

They are the builds that their authors publish, without the reference to a source map. Needs npm and network; nobody needs this to install or run.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "src/palaver/explorer/static/vendor"


class File(NamedTuple):
    """A file to write.

    Attributes:
        package: The npm package and its version.
        path: The file's path in the package.
        name: Its name here.
        digest: The SHA-256 of the file in the package.
    """

    package: str
    path: str
    name: str
    digest: str


FILES = (
    File(
        "preact@10.29.8",
        "dist/preact.min.umd.js",
        "preact.js",
        "aa558e32247d4ccea18c5addbb0311bc1771bf39734185be01dc0c3c4cf3fd6d",
    ),
    File(
        "preact@10.29.8",
        "hooks/dist/hooks.umd.js",
        "hooks.js",
        "5c29238e5dc99df306d7f7fff038591a397cfcfabb59f81fbdef43d670aa0566",
    ),
    File("htm@3.1.1", "dist/htm.umd.js", "htm.js", "7a31776e04bd4afde0d4308177d26f377716fcf7e4bd70be590746d6aa594f08"),
    File(
        "uplot@1.6.32",
        "dist/uPlot.iife.min.js",
        "uplot.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    File(
        "uplot@1.6.32",
        "dist/uPlot.min.css",
        "uplot.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
    File(
        "markdown-it@15.0.3",
        "dist/browser/markdown-it.umd.min.js",
        "markdown.js",
        "391f2aa638e75e6c7859d0a5c5650ef0956722a45998f17e05b83bc655778e1e",
    ),
)


def _read(packed: tarfile.TarFile, name: str) -> bytes:
    found = packed.extractfile(f"package/{name}")
    return b"" if found is None else found.read()


def main() -> int:
    """Fetch the packages, compare the digests, write the files."""
    with tempfile.TemporaryDirectory() as folder:
        for package in sorted({file.package for file in FILES}):
            subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)  # noqa: S603, S607 - npm of the developer
        licences = []
        for file in FILES:
            archive = Path(folder) / f"{file.package.replace('@', '-')}.tgz"
            with tarfile.open(archive) as packed:
                data, licence = (_read(packed, name) for name in (file.path, "LICENSE"))
            if hashlib.sha256(data).hexdigest() != file.digest:
                sys.stderr.write(f"{file.package}: {file.path} is not the pinned one.\n")
                return 1
            lines = [each for each in data.decode().splitlines() if not each.startswith("//# sourceMappingURL")]
            FOLDER.mkdir(parents=True, exist_ok=True)
            (FOLDER / file.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
            licences.append(f"{file.name}: {file.path} of {file.package}\n\n{licence.decode()}")
        (FOLDER / "NOTICE").write_text("\n".join(dict.fromkeys(licences)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
