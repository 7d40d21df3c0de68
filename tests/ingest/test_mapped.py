"""Maps of one's own: attribute names to fields, so that a new dialect needs no code."""

import tomllib
from pathlib import Path

import pytest
from tests.ingest.spans import otlp, span, write

from tracejury.ingest.batch import ingest
from tracejury.ingest.check import check_store
from tracejury.ingest.conventions.mapped import load_map, maps_of, read_map, using
from tracejury.ingest.map_suggestion import suggest
from tracejury.ingest.readers import read_bytes
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import IngestError, Trace
from tracejury.judging.store import open_workspace

MAP = """
[fields]
input_messages = [{ attribute = "acme.rules", role = "system" }, "acme.request $.body.turns"]
output_messages = "event acme.said: text"
prompt_tokens = "acme.tokens.in"
tool_name = "acme.tool.name"
tool_arguments = "acme.tool.given $['args'][0]"
tool_result = "acme.tool.result"
agent = "acme.crew"
session = "acme.talk"

[kind]
attribute = "acme.type"
values = { "llm_*" = "LLM", tool = "TOOL" }
"""
CALL = span(
    "step",
    {"acme.type": "llm_call", "acme.rules": "Be exact.", "acme.tokens.in": 8, "acme.crew": "desk", "acme.talk": "t-1",
     "acme.request": {"body": {"turns": [{"role": "user", "content": "How deep?"}]}}},
    events=[("acme.said", {"text": "Nine metres."})],
)  # fmt: skip
TOOL = span("step", {"acme.type": "tool", "acme.tool.name": "sonar", "acme.tool.given": {"args": [{"at": "quay"}]},
                     "acme.tool.result": "9 m"}, parent=0)  # fmt: skip


def mapped(text: str = MAP, *spans: dict[str, object]) -> Trace:
    with using([read_map(text, "acme.toml")]):
        (found,) = read_bytes(otlp(*(spans or (CALL, TOOL))), file="hand.json")
    assert isinstance(found, Trace)
    return found


def test_a_map_fills_the_columns_of_a_dialect_that_nobody_knows() -> None:
    found = mapped()
    call, tool = found.spans
    assert [one.kind for one in found.spans] == ["LLM", "TOOL"]
    said = [(message.role, message.content) for message in found.messages]
    assert said == [("system", "Be exact."), ("user", "How deep?"), ("assistant", "Nine metres.")]
    assert (call.prompt_tokens, call.agent, call.attributes["session.id"]) == (8, "desk", "t-1")
    assert (tool.tool_name, tool.tool_arguments, tool.output) == ("sonar", '{"at":"quay"}', "9 m")
    assert (found.goal, found.final_answer) == ("How deep?", "Nine metres.")


def test_without_the_map_the_next_trace_is_read_as_before() -> None:
    mapped()
    (found,) = read_bytes(otlp(CALL), file="hand.json")
    assert isinstance(found, Trace)
    assert found.spans[0].kind == "UNKNOWN"


def test_a_map_of_another_tracer_is_not_used() -> None:
    assert mapped(MAP + '\n[when]\nscope = "other.*"\n').spans[0].kind == "UNKNOWN"
    assert mapped(MAP + '\n[when]\nscope = "te*"\n').spans[0].kind == "LLM"


def test_kinds_may_be_told_by_the_spans_name() -> None:
    text = '[kind]\nattribute = "name"\nvalues = { "step" = "AGENT" }\n'
    assert mapped(text, span("step")).spans[0].kind == "AGENT"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[fields]\ninput_messages = 'a'\nfoo = 'b'\n", "line 3: `foo` is not a field"),
        ("[fields]\n\ninput = 3\n", "line 3: `input` is 3"),
        ("[fields]\ninput = 'a $.x[y]'\n", "line 2: `input` has the path $'.x[y]'"),
        ("[kind]\nattribute = 'a'\n[kind.values]\nx = 'MODEL'\n", "line 4: `x` names the kind 'MODEL'"),
        ("[kind.values]\nx = 'LLM'\n", "`kind` lacks `attribute`"),
        ("[field]\n", "line 1: `field` is not part of a map"),
        ("[fields\n", "is not TOML"),
        ("", "maps nothing"),
    ],
)
def test_a_wrong_map_names_line_and_field(text: str, told: str) -> None:
    with pytest.raises(IngestError, match=r"acme\.toml") as caught:
        read_map(text, "acme.toml")
    assert told in caught.value.reason
    assert caught.value.remedy


def test_the_maps_of_a_workspace_are_its_files(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "acme.toml").write_text(MAP, encoding="utf-8")
    assert [one.text for one in maps_of(tmp_path)] == [MAP]
    assert maps_of(tmp_path / "none") == ()


def test_a_trace_read_by_a_map_is_verified_by_the_same_map(tmp_path: Path) -> None:
    engine = open_workspace(tmp_path / "home").engine
    with using([read_map(MAP, "acme.toml")]):
        ingest(engine, [write(tmp_path / "a.json", CALL, TOOL)])
    with read_transaction(engine) as connection:
        assert load(connection, "ab" * 16).spans[0].kind == "LLM"
    assert check_store(engine) == []


def test_a_map_is_proposed_from_what_is_left_over_and_reads_it(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", CALL, TOOL)
    text = suggest(file).toml()
    assert 'input_messages = "acme.request $.body.turns"' in text
    assert '"llm_call" = "LLM"' in text
    (tmp_path / "proposed.toml").write_text(text, encoding="utf-8")
    with using([load_map(tmp_path / "proposed.toml")]):
        (found,) = read_bytes(file.read_bytes(), file="hand.json")
    assert isinstance(found, Trace)
    assert [one.kind for one in found.spans] == ["LLM", "TOOL"]
    assert found.goal == "How deep?"
    assert found.spans[1].output == "9 m"


def test_where_nothing_is_left_over_the_proposal_says_so(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", span("chat", {"gen_ai.operation.name": "chat"}))
    text = suggest(file).toml()
    assert "Nothing to map" in text
    assert tomllib.loads(text) == {"fields": {}}
