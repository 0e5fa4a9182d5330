"""A collector of traces: a process on loopback that receives OTLP over HTTP and decodes it with OpenTelemetry's own messages.

`python -m tests.collector FILE` prints its port and writes each accepted request to the file, a line of JSON each, before it answers.
"""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson, Parse
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

PATH = "/v1/traces"


@dataclass(frozen=True)
class Arrived:
    """A span that arrived.

    Attributes:
        name: Its name.
        span_id: Its id.
        parent_id: The id of the span around it; empty of a root.
        trace_id: The id of its trace.
        kind: The name of its kind.
        service: The name of the service that sent it.
        failed: Whether its status is an error.
        attributes: Its attributes.
        events: The names and attributes of its events.
    """

    name: str
    span_id: bytes
    parent_id: bytes
    trace_id: bytes
    kind: str
    service: str
    failed: bool
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True)
class Collector:
    """A running collector.

    Attributes:
        url: Its address, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
        file: The requests that it accepted.
        process: Its process.
    """

    url: str
    file: Path
    process: subprocess.Popen[str]

    @property
    def endpoint(self) -> str:
        """The address that traces are sent to."""
        return self.url + PATH

    def spans(self) -> list[Arrived]:
        """Return the spans that arrived, in the order in which they ended."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        requests = [Parse(line, ExportTraceServiceRequest()) for line in lines]
        found = [
            (span.end_time_unix_nano, _arrived(span, _said(resource.resource.attributes)))
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return [span for _, span in sorted(found, key=lambda pair: pair[0])]

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


@contextmanager
def collecting(folder: Path) -> Iterator[Collector]:
    """Run a collector on a free port, whose file is in a folder."""
    file = folder / "traces.jsonl"
    command = [sys.executable, "-m", "tests.collector", str(file)]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        collector = Collector(f"http://127.0.0.1:{int(process.stdout.readline())}", file, process)
        try:
            yield collector
        finally:
            collector.stop()


def tree(spans: list[Arrived]) -> str:
    """Return the names of spans as lines, those inside another indented below it, in the order in which they ended."""
    inside: dict[bytes, list[Arrived]] = {}
    for span in spans:
        inside.setdefault(span.parent_id, []).append(span)

    def lines(parent: bytes, depth: int) -> Iterator[str]:
        for span in inside.get(parent, ()):
            yield "    " * depth + span.name
            yield from lines(span.span_id, depth + 1)

    return "\n".join(lines(b"", 0))


def _arrived(span: Span, resource: Mapping[str, Any]) -> Arrived:
    return Arrived(
        name=span.name,
        span_id=span.span_id,
        parent_id=span.parent_span_id,
        trace_id=span.trace_id,
        kind=Span.SpanKind.Name(span.kind),
        service=resource["service.name"],
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        attributes=_said(span.attributes),
        events=tuple((event.name, _said(event.attributes)) for event in span.events),
    )


def _said(pairs: Iterator[KeyValue] | Any) -> dict[str, Any]:  # noqa: ANN401 - protobuf's own list
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:  # noqa: ANN401 - what OTLP has
    if value.HasField("array_value"):
        return tuple(map(_value, value.array_value.values))
    return getattr(value, str(value.WhichOneof("value")))


# --- the process ----------------------------------------------------------------------------------------------------------


class _Receiver(BaseHTTPRequestHandler):
    """Receives requests, and answers as the specification of OTLP says."""

    file: Path
    writing = threading.Lock()

    def do_POST(self) -> None:
        """Decode a request and keep it, or refuse it."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        try:
            line = MessageToJson(ExportTraceServiceRequest.FromString(body), indent=None)
        except DecodeError:
            return self.send_error(400)
        if self.path != PATH:
            return self.send_error(404)
        with self.writing, self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        return None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives
        """Say nothing."""


def _serve(file: Path) -> None:
    """Serve until standard input closes: also after a kill of the tests."""
    file.touch()
    _Receiver.file = file
    with ThreadingHTTPServer(("127.0.0.1", 0), _Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
