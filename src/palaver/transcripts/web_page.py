"""A session as one HTML file that needs nothing else: no script, no network; images are inside."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

from palaver.errors import Erased, NotFound, StoreDamaged
from palaver.ids import BlobId
from palaver.messages import Media
from palaver.store.protocol import SessionRecord
from palaver.transcripts.pages import page
from palaver.view import View
from palaver.wire.check.media import SNIFFED
from palaver.wire.media import Load

_CONTROLS = (*range(9), *range(11, 32), *range(127, 160))
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that reorder what is shown around them (Unicode Standard Annex 9, table 4)."""

_SAFE = {ord(sign): f"&{name};" for sign, name in zip("&<>\"'", ("amp", "lt", "gt", "quot", "apos"), strict=True)} | {
    code: f"[U+{code:04X}]" for code in (*_CONTROLS, *_BIDI)
}

_OPENING = """<!DOCTYPE html>
<html lang="und"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title><style>
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; color-scheme: light dark }}
h2 {{ font-size: 1rem; margin-top: 2rem; border-top: 1px solid #8888 }}
pre {{ background: #8882; padding: .5rem; font-size: .85rem }}
p, pre {{ white-space: pre-wrap; overflow-wrap: anywhere }}
img {{ max-width: 100% }}
</style></head><body>
<h1>{title}</h1>
"""


def html(record: SessionRecord, view: View, load: Load) -> Iterator[str]:
    """Return a view as HTML, piece by piece. Characters that control or reorder are written as their numbers."""
    return page(record, view, _Html(load))


class _Html:
    """A page in HTML."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def opening(self, title: str, facts: Mapping[str, str]) -> str:
        items = [f"{name}: {value}" for name, value in facts.items()]
        return _OPENING.format(title=_escaped(title)) + self.listed(items)

    def heading(self, words: Sequence[str]) -> str:
        return f"<h2>{_escaped(' · '.join(words))}</h2>\n"

    def text(self, text: str) -> str:
        return f"<p>{_escaped(text)}</p>\n"

    def thinking(self, text: str) -> str:
        return f"<details><summary>Thinking</summary><p>{_escaped(text)}</p></details>\n"

    def code(self, title: str, call_id: str, text: str, language: str = "") -> str:
        opened = " open" if language else ""
        return f"<details{opened}><summary>{_escaped(title)} <code>{_escaped(call_id)}</code></summary>\n<pre>{_escaped(text)}</pre></details>\n"

    def media(self, media: Sequence[Media]) -> str:
        return f"<p>{' '.join(map(self._medium, media))}</p>\n"

    def _medium(self, one: Media) -> str:
        named = _escaped(one.url or f"[{one.media_type}, {one.size:,} bytes, sha256 {one.digest[:12]}]")
        if one.url or one.media_type not in SNIFFED:
            return named
        try:
            data = one.data if one.data is not None else self._load(BlobId(one.digest))
        except (NotFound, Erased, StoreDamaged):
            return named
        return f'<img alt="{named}" src="data:{one.media_type};base64,{base64.b64encode(data).decode()}">'

    def listed(self, items: Sequence[str]) -> str:
        return f"<ul>{''.join(f'<li>{_escaped(item)}</li>' for item in items)}</ul>\n"

    def closing(self) -> str:
        return "</body></html>\n"


def _escaped(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_SAFE)
