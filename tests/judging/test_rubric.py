"""Rubrics and agent descriptions: the shipped ones hold together, a user's own are read, bad ones are named."""

import re
from pathlib import Path

import pytest
from tests.judging.traces import small_trace

from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.judges.prompt import example_reply
from tracejury.judging.judges.reply import ParsedReply, read_reply
from tracejury.judging.judges.rubric import (
    RubricError,
    agent_descriptions,
    agent_for,
    broken_files,
    choose_rubrics,
    new_rubric,
    parse_agent,
    parse_rubric,
    rubrics,
)
from tracejury.judging.records import DIMENSIONS

OWN = """
key = "SAFE"
title = "Safety"
judges = "no harm"
annotator = "mark harm"
[anchors]
3 = "none"
middle = "some"
0 = "much"
"""


def test_every_dimension_has_a_shipped_rubric_and_the_baseline_stands_beside_them() -> None:
    known = rubrics()
    assert {*DIMENSIONS, "trail"} <= set(known)
    assert all(known[key].dimension == key for key in DIMENSIONS)
    assert len(known["trail"].categories) == 21


@pytest.mark.parametrize("key", DIMENSIONS)
def test_each_rubric_names_its_borders_to_other_judges_and_shows_an_example(key: str) -> None:
    rubric = rubrics()[key]
    assert set(rubric.leaves) <= set(DIMENSIONS) - {key}
    assert len(rubric.leaves) >= 5
    assert 1 <= len(rubric.examples) <= 2


@pytest.mark.parametrize("key", ["PQ", "PA"])
def test_plan_judges_say_what_a_plan_is_and_may_find_none(key: str) -> None:
    rubric = rubrics()[key]
    assert rubric.plan is not None
    assert "Never fill in a plan" in rubric.plan
    assert "I cannot find a plan." in rubric.not_applicable_phrases


@pytest.mark.parametrize("key", [*DIMENSIONS, "trail"])
@pytest.mark.parametrize("form", ["json", "template"])
def test_the_example_replies_are_read_by_our_own_reader(key: str, form: str) -> None:
    rubric = rubrics()[key]
    for example in rubric.examples:
        parsed = read_reply(example_reply(example.reply, rubric, form), rubric)
        assert isinstance(parsed, ParsedReply), parsed
        assert parsed.score == example.reply.score
        assert [f.description for f in parsed.findings] == [f.description for f in example.reply.findings]
        assert [f.citations for f in parsed.findings] == [f.citations for f in example.reply.findings]
        assert [f.category for f in parsed.findings] == [f.category for f in example.reply.findings]
        assert parsed.notes == ()


@pytest.mark.parametrize("key", [*DIMENSIONS, "trail"])
def test_the_quotes_and_citations_of_an_example_stand_in_its_own_trace(key: str) -> None:
    for example in rubrics()[key].examples:
        folded = " ".join(example.trace.split())
        for finding in example.reply.findings:
            assert finding.evidence in folded
            assert all(f"[{cite}]" in folded for cite in finding.citations)


@pytest.mark.parametrize("key", ["PQ", "PA"])
def test_the_rules_for_plans_are_shown_at_work_where_no_section_is_marked(key: str) -> None:
    unmarked = [example for example in rubrics()[key].examples if "[PLAN]" not in example.trace]
    assert len(unmarked) == 1


def test_a_workspace_adds_its_own_rubric(tmp_path: Path) -> None:
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "safe.toml").write_text(OWN, encoding="utf-8")
    assert rubrics(tmp_path)["SAFE"].title == "Safety"


def own(home: Path, name: str, text: str) -> None:
    (home / "rubrics").mkdir(exist_ok=True)
    (home / "rubrics" / name).write_text(text, encoding="utf-8")


def test_a_broken_file_is_left_out_by_name_and_stops_no_other(tmp_path: Path) -> None:
    own(tmp_path, "again.toml", OWN.replace("SAFE", "LC"))
    own(tmp_path, "half.toml", 'key = "HALF"\n')
    own(tmp_path, "safe.toml", OWN)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.md").write_text("An agent.", encoding="utf-8")
    assert set(rubrics(tmp_path)) == {*rubrics(), "SAFE"}
    assert set(agent_descriptions(tmp_path)) == set(agent_descriptions())
    again, half, agent = map(str, broken_files(tmp_path))
    assert again.endswith("again.toml: key: 'LC' is taken by another rubric; choose another key")
    assert "half.toml: title: is missing. Try: write it; judges: is missing" in half
    assert "mine.md: begin with a title" in agent
    assert broken_files(None) == []


def test_every_fault_is_named_at_once() -> None:
    text = """
key = "two words"
anotator = "x"
judges = ""
not_applicable_phrases = ["none"]
[[examples]]
trace = "t"
[examples.reply]
criteria = "c"
rationale = "r"
score = 7
not_applicable = "no plan"
"""
    with pytest.raises(RubricError) as told:
        parse_rubric(text.encode(), "own.toml")
    faults = told.value.faults
    for fault in (
        "key: String should match pattern",
        "title: is missing. Try: write it",
        "judges: is empty",
        "annotator: is missing. Try: write it",
        "anotator: not a field of a rubric. Try: correct its name",
        "examples.0.reply.score: Input should be less than or equal to 3",
        "a rubric that asks for a score needs [anchors]",
        "not_applicable_phrases need not_applicable",
        "example 1: its reply needs a score or not_applicable",
        "example 1: it is not applicable, but the rubric does not say when",
    ):
        assert any(one.startswith(fault) for one in faults), fault
    assert len(faults) == 10


def test_a_new_rubric_is_left_out_until_it_is_filled_in(tmp_path: Path) -> None:
    path = new_rubric(tmp_path, "SAFE")
    (fault,) = broken_files(tmp_path)
    assert set(fault.faults) == {
        f"{place}: is empty. Try: write it"
        for place in ("title", "judges", "annotator", "anchors.3", "anchors.middle", "anchors.0")
    }
    text = path.read_text(encoding="utf-8")
    filled = re.sub(r'^(title|3|middle|0) = ""', r'\1 = "words"', text, flags=re.MULTILINE)
    path.write_text(filled.replace('"""\n"""', '"""\nwords\n"""'), encoding="utf-8")
    assert rubrics(tmp_path)["SAFE"].judges == "words"
    for name in ("SAFE", "LC", "two words", "../up"):
        with pytest.raises(RubricError, match="Try:"):
            new_rubric(tmp_path, name)


def test_what_the_new_rubric_shows_in_comments_is_right(tmp_path: Path) -> None:
    text = re.sub("^##.*$", "", new_rubric(tmp_path, "SAFE").read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = re.sub("^# ?", "", text, flags=re.MULTILINE).replace(' ""\n', ' "words"\n')
    rubric = parse_rubric(text.replace('"""\n"""', '"""\nwords\n"""').encode(), "shown.toml")
    assert (rubric.key, rubric.dimension, len(rubric.examples), [*rubric.leaves]) == ("SAFE", "LC", 1, ["EE"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('key = "SAFE"', "key: is missing. Try: write it"),  # replaced by nothing
        ('0 = "much"', "anchors.0: is missing. Try: write it"),
        ('title = "Safety"', "title: is missing. Try: write it"),
    ],
)
def test_what_is_missing_is_named(change: str, message: str) -> None:
    with pytest.raises(RubricError, match=f"own.toml: {message}"):
        parse_rubric(OWN.replace(change, "").encode(), "own.toml")


def test_an_unknown_key_is_refused_since_it_is_mostly_a_slip() -> None:
    with pytest.raises(RubricError, match="anotator: not a field of a rubric"):
        parse_rubric(b'anotator = "x"\n' + OWN.encode(), "own.toml")


def test_toml_errors_say_the_line() -> None:
    with pytest.raises(RubricError, match=r"own\.toml: not valid TOML: .*line 2"):
        parse_rubric(b'title = "x"\nkey = = 1\n', "own.toml")


def test_the_version_follows_the_content_and_nothing_else() -> None:
    first = parse_rubric(OWN.encode(), "a.toml")
    same = parse_rubric(b"# a comment\n" + OWN.encode(), "b.toml")
    other = parse_rubric(OWN.replace("no harm", "no harm at all").encode(), "a.toml")
    assert first.version == same.version != other.version


def test_all_chooses_the_scoring_rubrics_and_names_fold() -> None:
    known = rubrics()
    assert {r.key for r in choose_rubrics("all", known)} == {r.key for r in known.values() if r.answer == "score"}
    assert set(DIMENSIONS) <= {r.key for r in choose_rubrics("all", known)} < set(known)
    assert [r.key for r in choose_rubrics("lc, TRAIL,LC", known)] == ["LC", "trail"]
    with pytest.raises(RubricError, match="no rubric is called 'XY'"):
        choose_rubrics("LC,XY", known)


MINE = """+++
title = "Mine"
[match]
agents = ["scout"]
tools = ["web_search"]
+++
A scout.
"""


def test_a_description_is_chosen_where_every_list_it_gives_shares_a_name_with_the_trace() -> None:
    known = {"mine": parse_agent(MINE.encode(), "mine.md")}
    assert agent_for(small_trace(agent="scout"), known) == known["mine"]
    assert agent_for(small_trace(agent="unheard_of"), known) is None
    other_tools = parse_agent(MINE.replace("web_search", "fly").encode(), "mine.md")
    assert agent_for(small_trace(agent="scout"), {"mine": other_tools}) is None


def test_tools_that_an_agent_lists_tell_its_system_though_none_ran() -> None:
    listing = SpanDraft(span_id="a", kind="AGENT", attributes={
        "smolagents.tools_names": '["visualizer", "inspect_file_as_text"]',
        "smolagents.managed_agents.0.name": "search_agent",
    })  # fmt: skip
    trace = assemble([listing], trace_id="t", format="otlp", source=Source(file="t"))
    chosen = agent_for(trace, agent_descriptions())
    assert chosen is not None
    assert chosen.name == "open-deep-research"


def test_a_name_that_other_systems_use_too_is_not_enough_to_be_told_of_a_system() -> None:
    known = agent_descriptions()
    assert set(known) == {"open-deep-research", "are-react", "swe-bench-codeagent"}
    assert agent_for(small_trace(agent="search_agent"), known) is None
    creating = assemble([SpanDraft(span_id="a", name="create_agent")], trace_id="t", format="otlp",
                        source=Source(file="t"))  # fmt: skip
    assert agent_for(creating, known) is None


AGENT_WORDS = ("search_agent", "page_down", "visit_page", "inspect_file", "final_answer", "end_plan", "end_code",
               "gitingest", "send_message_to_user", "end_action", "Viewport")  # fmt: skip


@pytest.mark.parametrize("key", [*DIMENSIONS, "trail"])
def test_no_rubric_speaks_of_one_agent_system_to_the_judge_of_another(key: str) -> None:
    rubric = rubrics()[key].model_dump_json()
    assert [word for word in AGENT_WORDS if word in rubric] == []


@pytest.mark.shared
@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("trail/traces/gaia", {"open-deep-research"}),
        ("trail/traces/swe_bench", {"swe-bench-codeagent"}),
        ("gaia2", {"are-react", None}),  # a MASEval report is of another agent
        ("otel", {None}),
    ],
)
def test_each_shared_trace_is_told_of_its_own_system_or_of_none(
    shared: Path, folder: str, told: set[str | None]
) -> None:
    known, chosen = agent_descriptions(), set[str | None]()
    for trace in (trace for trace in read_traces(shared / folder) if isinstance(trace, Trace)):
        agent = agent_for(trace, known)
        chosen.add(None if agent is None else agent.name)
        assert agent is None or (agent.name == "are-react") == (trace.format == "gaia2")
    assert chosen == told


def test_a_description_without_its_front_matter_is_refused() -> None:
    with pytest.raises(RubricError, match=r"mine\.md: begin with a title"):
        parse_agent(b"An agent.", "mine.md")
