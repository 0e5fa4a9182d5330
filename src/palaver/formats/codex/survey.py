"""The first pass over a Codex rollout: find the end and usage of each response, and items that later records refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.codex.messages import envelope, is_spoken
from palaver.formats.events import NOTHING, Loss, without_losses
from palaver.formats.lists import digest_of
from palaver.formats.records import Record


class Responses:
    """Finds where one response of the model ends and the next begins, which rollouts do not record.

    Items of the model form one response until another record follows: an output, a user message, or a count of tokens.
    """

    def __init__(self) -> None:
        self.first = -1
        self._open = False

    def read(self, kind: str, payload: Mapping[str, object], ordinal: int) -> bool:
        """Read the next record. Return whether it is part of a response, whose first item is then `first`."""
        if not is_spoken(kind, payload):
            self._open = self._open and kind == "event_msg" and payload.get("type") != "token_count"
            return False
        if not self._open:
            self._open, self.first = True, ordinal
        return True


class CodexSurvey:
    """The results of the first pass over the file.

    Attributes:
        usage: The usage of each response, by the record number of its last item.
        wanted: The digests of the items that replaced the history in compactions.
        main: The key of the dialog that the conversation ends in.
        losses: The faults of the file.
        session: The payload of the first `session_meta`, without the instructions.
        model: The first model named.
        started_at: When the first record was written.
        unused: The number of token counts that belong to no item.
    """

    def __init__(self, records: Iterator[Record | Loss]) -> None:
        self.usage: dict[int, Mapping[str, object]] = {}
        self.wanted: set[bytes] = set()
        self.main = "main"
        self.losses: list[Loss] = []
        self.session: Mapping[str, object] = NOTHING
        self.model = ""
        self.started_at = 0.0
        self.unused = 0
        self._responses = Responses()
        self._last_item = -1
        self._total: object = None
        for record in without_losses(records, self.losses):
            self._note(record)

    def _note(self, record: Record) -> None:
        kind, payload = envelope(record.value)
        self.started_at = self.started_at or fields.moment(record.value.get("timestamp"))
        if self._responses.read(kind, payload, record.ordinal):
            self._last_item = record.ordinal
        if kind == "event_msg":
            self._event(payload, record.ordinal)
        elif kind == "compacted":
            self.wanted.update(digest_of(item) for item in fields.objects(payload, "replacement_history"))
        elif kind == "turn_context":
            self.model = self.model or fields.text(payload, "model")
        elif kind == "session_meta" and not self.session:
            self.session = {name: value for name, value in payload.items() if name != "base_instructions"}

    def _event(self, payload: Mapping[str, object], ordinal: int) -> None:
        if payload.get("type") == "thread_rolled_back":
            self.main = f"rollback:{ordinal}"
        if payload.get("type") != "token_count":
            return
        info = fields.mapping(payload, "info")
        total = info.get("total_token_usage")
        if not info or total == self._total:  # rate limits alone, or the same figures again
            return
        self._total = total
        if self._last_item < 0 or self._last_item in self.usage:
            self.unused += 1
        else:
            self.usage[self._last_item] = fields.mapping(info, "last_token_usage")
