"""The rounds: a session is created, imported, exported, resumed by another agent and imported again; each step loses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from palaver import MemoryStore, Session
from palaver.log import Custom, decode_entry
from palaver.testing.strict import StrictServer
from palaver.transcripts import Imported, Importer, export, remember, write_file
from tests.drift.clients import PNG, Cli
from tests.drift.pieces import Piece, missing, of_messages, of_request, summary
from tests.drift.play import Home

PROMPT, GO_ON = "List the files, please.", "Go on, please."


@dataclass(frozen=True)
class Bench:
    """Where the rounds take place: a temporary folder, the folders of the programs, and the stand-ins by agent."""

    folder: Path
    programs: Path
    node: Path
    servers: Mapping[str, StrictServer]

    def home(self, cli: Cli, name: str, url: str = "") -> Home:
        """Return a home folder of an agent that asks the stand-in, or another address; all share the folder to work in, by which agents find sessions."""
        self.image.parent.mkdir(exist_ok=True)
        self.image.write_bytes(PNG)
        return Home(cli, self.folder / name, self.image.parent, self.programs, self.node, self.servers[cli.name], url)

    @property
    def image(self) -> Path:
        """An image that the agents read."""
        return self.folder / "work" / "pixel.png"


@dataclass
class Told:
    """What a round came to: in a few words, `exact` where nothing differs, and each difference, for people."""

    outcome: str
    differences: list[str] = field(default_factory=list)


@dataclass
class Kept:
    """An imported session, and its transcript."""

    store: MemoryStore
    imported: Imported
    pieces: list[Piece] = field(init=False)

    def __post_init__(self) -> None:
        """Read what it says."""
        self.pieces = list(of_messages(Session.open(self.store, self.imported.session_id).root.messages))

    def unknown(self) -> set[str]:
        """Return what palaver does not know in the transcript: keys that it does not read, and kinds of records that it keeps as they are."""
        lost = {loss.reason.partition(" of ")[0] for loss in self.imported.losses if loss.severity != "note"}
        dialogs = (node.dialog_id for node in self.store.nodes(self.imported.session_id))
        bodies = (body for each in dialogs for _, body in self.store.bodies(each, 0, self.store.last(each).seq + 1))
        customs = (entry for entry in map(decode_entry, bodies) if isinstance(entry, Custom))
        return lost | {f"The record {entry.custom_type} is kept" for entry in customs}


def kept(path: Path, store: MemoryStore | None = None) -> Kept:
    """Import a transcript into a store, by default one of its own."""
    store = MemoryStore() if store is None else store
    (imported,) = Importer(store).import_path(path)
    return Kept(store, imported)


def created(cli: Cli, bench: Bench) -> tuple[Path, Told]:
    """Create a session, import it, and compare it with what the model was sent and answered."""
    home = bench.home(cli, f"{cli.name}-created")
    asked = home.played(PROMPT, cli.opening(bench.image))
    there = kept(home.transcript())
    said = [piece for piece in of_request(asked[-1], cli.dialect) if _own(piece)]
    told = _compared([*said, Piece("text", "All done.", "model")], there.pieces, only=True)
    extra = [piece.value for piece in there.pieces if piece.by == "human" and piece.kind == "text"]
    if extra != [PROMPT]:
        told.outcome += ", a person's words differ"
        told.differences.append(f"a person said {extra}")
    return home.transcript(), told


def resumed(origin: Kept, cli: Cli, bench: Bench, name: str) -> tuple[Kept, Told, Told]:
    """Export a session to an agent that resumes it; compare its next request with the session, and the session with what comes back."""
    home, session = bench.home(cli, name), origin.imported.session_id
    exported = export(origin.store, session, cli.name)
    assert exported.continuing is not None
    place = Path(exported.continuing.place.replace("~", str(home.folder)))
    place.parent.mkdir(parents=True)
    write_file(place, exported.pieces)
    remember(origin.store, session, exported, place)
    asked = home.played(GO_ON, cli.going_on(), exported.continuing.command.split()[-1])
    told = _compared(origin.pieces, of_request(asked[0], cli.dialect))
    back = of_request(asked[-1], cli.dialect)
    start = max(at for at, piece in enumerate(back) if piece.value == GO_ON)
    new = [piece for piece in back[start:] if _own(piece)]
    again = kept(home.transcript(), origin.store)
    linked = _compared([*origin.pieces, *new, Piece("text", "Went on.", "model")], again.pieces, only=True)
    if again.imported.session_id != session:
        linked.outcome = "a second session"
    elif again.imported.dialogs != origin.imported.dialogs:
        linked.outcome += ", on a branch"
    return again, told, linked


def _own(piece: Piece) -> bool:
    """Return whether a piece of a request is no text that an agent adds in the user's role."""
    return piece.kind != "text" or piece.by != "human" or piece.value in {PROMPT, GO_ON}


def _compared(wanted: list[Piece], there: list[Piece], *, only: bool = False) -> Told:
    """Compare what there is with what is wanted; with `only`, models and tools said nothing else, and nothing twice."""
    lost = missing(wanted, there)
    told = Told(summary(wanted, lost), [f"{piece.kind} is missing: {piece.value[:80]!r}" for piece in lost])
    mine = [piece for piece in there if piece.kind != "thinking" and (piece.kind != "text" or piece.by == "model")]
    if only and (extra := missing(mine, wanted)):
        told.outcome += f", {len(extra)} twice or unknown"
        told.differences += [f"{piece.kind} is there twice, or unknown: {piece.value[:80]!r}" for piece in extra]
    return told
