"""What containers printed, as Docker, Kubernetes, Compose and Fluentd keep it."""

import gzip
import json

import pytest
from tests.ingest.envelope_files import ANSWER, GOAL
from tests.ingest.trail_files import read_all

from tracejury.ingest.trace import Rejected, Trace

SPAN = {
    "name": "chat", "context": {"trace_id": f"0x{'a1' * 16}", "span_id": f"0x{'b2' * 8}"}, "parent_id": None,
    "start_time": "2026-01-01T10:00:00Z", "end_time": "2026-01-01T10:00:01Z", "attributes": {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([{"role": "user", "content": GOAL}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": ANSWER}])},
}  # fmt: skip
LINES = json.dumps(SPAN, indent=4).splitlines()
WHOLE = json.dumps(SPAN)
FAULTS = ["Traceback (most recent call last):", "KeyError: 'tide'"]
MOMENT = "2026-01-01T10:00:00.123456789"


def docker(lines: list[str], stream: str = "stdout", **more: object) -> list[str]:
    return [json.dumps({**more, "log": f"{line}\n", "stream": stream, "time": MOMENT}) for line in lines]


def pod(lines: list[str], stream: str = "stdout") -> list[str]:
    return [f"{MOMENT}Z {stream} F {line}" for line in lines]


LOGS = {
    "docker": [*docker(LINES[:4]), *docker(FAULTS, "stderr"), *docker(LINES[4:])],
    "docker, spans on stderr": [*docker(LINES, "stderr"), *docker(FAULTS)],
    "fluentd": [*docker(LINES, kubernetes={"pod_name": "p"}), *docker(FAULTS, "stderr")],
    "a pod": [*pod(LINES), *pod(FAULTS, "stderr")],
    "a pod, a line in parts": [f"{MOMENT}+02:00 stdout P {WHOLE[:90]}", f"{MOMENT}+02:00 stdout F {WHOLE[90:]}",
                               *pod(FAULTS, "stderr")],
    "compose": [f"agent-1  | {line}" for line in LINES],
}  # fmt: skip


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", LOGS)
def test_the_spans_in_what_a_container_printed_are_read_and_its_other_output_is_counted(
    name: str, is_packed: bool
) -> None:
    data = "\n".join(LOGS[name]).encode()
    (trace,) = read_all(gzip.compress(data) if is_packed else data, "pod.log.gz" if is_packed else "pod.log")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == ("a1" * 16, GOAL, ANSWER)
    left_out = [one for one in trace.warnings if one.startswith("other_output")]
    stream = "stdout" if name.endswith("on stderr") else "stderr"
    assert left_out == (
        [] if name == "compose" else [f"other_output: 2 lines of {stream} left out, the last: {FAULTS[1]!r}"]
    )


def test_what_a_container_printed_without_a_trace_is_refused() -> None:
    (refused,) = read_all("\n".join(docker(FAULTS, "stderr")).encode(), "pod.log")
    assert isinstance(refused, Rejected)
    assert refused.reason == "no known trace format"
