"""Secrets are masked in every place of a trace and in its kept source, and nothing else is."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytest.importorskip("detect_secrets")

from tests.effort import assert_linear
from tests.ingest.trail_files import document, read_one, span

from tracejury.ingest.readers import read_bytes
from tracejury.ingest.redact import Redactor
from tracejury.ingest.trace import Rejected, Trace

SECRETS = {
    "sk-" + "proj-abcdefghijklmnopqrstuvwxyz123456": "API key",
    "gh" + "p_abcdefghijklmnopqrstuvwxyz0123456789": "GitHub Token",
    "AK" + "IAIOSFODNN7EXAMPLE": "AWS Access Key",
    "ada.lovelace@example.org": "e-mail address",
    "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ": "API key",
    "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N": "JSON Web Token",
}


@pytest.mark.parametrize("secret", SECRETS)
def test_each_kind_of_secret_is_masked_and_counted(secret: str) -> None:
    found: Counter[str] = Counter()
    text = Redactor().text(f"before {secret} after", found)
    assert secret not in text
    assert text.startswith("before [redacted: ")
    assert text.endswith(" after")
    assert sum(found.values()) == 1


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[redacted: password]"}'),
        ('{"t": "{\\"password\\": \\"hunter2-hunter2\\"}"}', '{"t": "{\\"password\\": \\"[redacted: password]\\"}"}'),
        ("File /home/ada/run.py", "File /home/[redacted: user name]/run.py"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [redacted: token]"),
    ],
)
def test_the_words_around_a_secret_stay(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "span c09361f7f5e6f534 of trace 4d98e6e6852b5b9e18c1f2e72d43da81",
        "password = get_password()",
        "the tokens: 3565 prompt, 812 completion",
        "from x import y  # @decorator at home",
    ],
)
def test_ids_code_and_counts_stay(text: str) -> None:
    assert Redactor().text(text) == text


def test_no_secret_is_left_anywhere_in_a_trace() -> None:
    secret = next(iter(SECRETS))
    call = span(
        "a" * 16,
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": f"use {secret}",
            "output.value": f"I used {secret}",
            "custom": {"deep": [secret]},
        },
        status_message=secret,
        events=[{"Timestamp": "2025-03-19T16:00:00", "Name": "x", "Attributes": {"k": secret}}],
        logs=[{"body": secret}],
        resource_attributes={"host.name": "ada-laptop"},
    )
    trace = read_one(document(call))
    assert secret in repr(trace)
    masked = Redactor().apply(trace)
    assert isinstance(masked, Trace)
    assert secret not in repr(masked)
    assert secret.encode() not in masked.source.data
    assert "ada-laptop" not in repr(masked.spans)
    assert masked.spans[0].span_id == "a" * 16
    assert any(w.startswith("redacted: ") for w in masked.warnings)


def test_the_masked_source_reads_as_the_masked_trace() -> None:
    secret = next(iter(SECRETS))
    trace = read_one(document(span("a" * 16, {"output.value": f"I used {secret} today"})))
    masked = Redactor().apply(trace)
    assert isinstance(masked, Trace)
    (again,) = read_bytes(masked.source.data, file="t.json")
    assert isinstance(again, Trace)
    assert again.spans == masked.spans


def test_a_rejection_does_not_quote_a_secret() -> None:
    secret = next(iter(SECRETS))
    masked = Redactor().apply(Rejected(file="f", place="p", reason=f"not JSON: {secret}", remedy="r"))
    assert secret not in repr(masked)


def test_masking_takes_no_more_than_linear_time() -> None:
    redactor = Redactor()
    for part in ("a", "//", "a@", "eyJ", "password=", "-----BEGIN ", "aws key "):
        assert_linear(lambda size, part=part: redactor.text(json.dumps(part * (size // len(part)))), 50_000)
