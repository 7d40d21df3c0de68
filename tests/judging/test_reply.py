"""The strict reader: what is a score, what is "not applicable", and what is no verdict at all."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.judging.judges.reply import WHOLE_EVIDENCE, ParsedReply, Unparsable, read_reply, reply_schema
from tracejury.judging.judges.rubric import rubrics

RUBRICS = rubrics()
FINDING = {"description": "d", "evidence": "e", "citations": ["S3"], "impact": "high"}


def answer(**changes: object) -> str:
    content = {"criteria": "c", "rationale": "r", "findings": [], "score": 2, "not_applicable": None}
    return json.dumps({**content, **changes})


def state(text: str, key: str = "LC") -> str | int:
    reply = read_reply(text, RUBRICS[key])
    if isinstance(reply, Unparsable):
        assert reply.reason
        return "unparsable"
    return "not_applicable" if reply.score is None else reply.score


def read(text: str, key: str = "LC") -> ParsedReply:
    reply = read_reply(text, RUBRICS[key])
    assert isinstance(reply, ParsedReply), reply
    return reply


@pytest.mark.parametrize("score", [0, 1, 2, 3])
def test_each_score_is_read_as_itself(score: int) -> None:
    assert state(answer(score=score)) == score
    assert state(f"Criteria: c\nSupporting Evidence: e\nScore: {score}") == score


@pytest.mark.parametrize(
    "text",
    [
        answer(),
        f"```json\n{answer()}\n```",
        f"```\n{answer()}\n```",
        f"\ufeff{answer()}\n\n",
        f"<think>maybe score 0? {{}}</think>\n{answer()}",
        f"<think>a</think><think>b</think>{answer()}",
        answer(confidence="high"),  # a key too many that is no second score
        answer(rationale="a { brace } and ``` fence ``` and </think>"),
        '{"criteria":"c","rationale":"line\nbreak","findings":[],"score":2}',  # a raw line break inside a string
        "Criteria: c\nSupporting Evidence: e\nScore: 2",
        "```\nCriteria: c\nSupporting Evidence: e\nScore: 2\n```",
        "Criteria: c\nSupporting Evidence: e\n**Score**: 2",
        "**Criteria:** c\n**Supporting Evidence:** e\n**Score:** 2",
        "Supporting Evidence: e\nScore: **2**",
        "SUPPORTING EVIDENCE: e\nSCORE: 2",
        "## Criteria\nc\n## Supporting Evidence\ne\n## Score\n2",
        "Supporting Evidence: e\nScore: 2 (on a 0 to 3 scale)",
        "Supporting Evidence: e\nScore: 2/3",
        "Supporting Evidence: e\nScore: 2 out of 3",
        "Supporting Evidence: e\nScore: [2]",
        "Supporting Evidence: e\nScore: 2.",
        "Supporting Evidence: e\nScore: 2 (mostly sound)",
        "Supporting Evidence: e\nScore:\n\n2",
        "Supporting Evidence: e\r\nScore: 2\r\n",
        "<think>maybe Score: 0? no.</think>\nCriteria: c\nSupporting Evidence: e\nScore: 2",
        'Score: 2\nSupporting Evidence: the tool printed "Score: 1" in span S4.',
    ],
)
def test_two_is_read_in_every_clear_form(text: str) -> None:
    assert state(text) == 2


@pytest.mark.parametrize(
    "score", [-1, 4, 7, 2.0, 2.5, "2", "two", True, False, None, [2], {"score": 2}, 10**30, "", "2/3"]
)
def test_only_the_integers_0_to_3_are_scores_in_json(score: object) -> None:
    assert state(answer(score=score)) == "unparsable"


@pytest.mark.parametrize(
    "value",
    ["-1", "4", "2.5", "2,5", "1-2", "1 - 2", "1 or 2", "1/2", "2/10", "02", "+2", "²", "two", "", "n/a", "2 3",
     "2 because of 1 slip", "2\nbut perhaps 1", "[0-3]", "0, 1, 2 or 3", "2 (or 1)", "2e0", "0x2", "2%"],
)  # fmt: skip
def test_only_a_lone_digit_0_to_3_is_a_score_in_the_template(value: str) -> None:
    assert state(f"Criteria: c\nSupporting Evidence: e\nScore: {value}") == "unparsable"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "There were 2 searches and 0 failed. I give it 3.",
        "I would say: Score: 3",
        "3",
        "score 2",
        "null",
        "[]",
        f"[{answer()}]",
        f"{answer()} {answer(score=0)}",
        f"{answer()}\nScore: 0",
        '{"criteria":"c","rationale":"the agent first',
        '{"criteria":"c","rationale":"r","findings":[],"score":0,"score":3}',  # the second would win unseen
        '{"criteria":"c","rationale":"r","findings":[],"score":NaN}',
        answer(final_score=0),
        answer(Score=3),
        '{"criteria":"c","rationale":"r","score":2}',  # findings left out are not "no findings"
        answer(findings=None),
        answer(findings=["S3 is wrong"]),
        answer(findings=[{**FINDING, "citations": "S3"}]),
        answer(findings=[{**FINDING, "citations": [3]}]),
        answer(findings=[{**FINDING, "description": " "}]),
        answer(rationale=5),
        "Criteria: c\nScore: 3\nSupporting Evidence: the trace says\nScore: 1",
        "Score: 2\nScore: 2",
        "<think>Score: 2",
        "[" * 100_000,
        "{" * 50_000,  # no search may take time by its square
        "</think>" * 20_000,
        "{" + '"a":{' * 5_000,
        '{"score":' + "9" * 5_000 + "}",
        "Criteria: c\nSupporting Evidence: e",
        "Dear reader,\nCriteria: c\nSupporting Evidence: e\nScore: 2",
    ],
)
def test_what_is_unclear_cut_off_or_hunted_for_in_prose_is_no_score(text: str) -> None:
    assert state(text) == "unparsable"


@pytest.mark.parametrize("key", ["PQ", "PA"])
@pytest.mark.parametrize(
    "text",
    [
        "I cannot find a plan.",
        '"I cannot find a plan."',
        "**I cannot find a plan**",
        "I cannot find a plan. The agents act at once.",
        answer(score=None, not_applicable="no plan in the trace"),
        "Criteria: c\nNot applicable: no plan in the trace",
        "Criteria: c\nSupporting Evidence: I cannot find a plan.",
    ],
)
def test_no_plan_is_not_applicable_and_no_score(text: str, key: str) -> None:
    assert state(text, key) == "not_applicable"
    assert read(text, key).not_applicable


@pytest.mark.parametrize("text", ["I cannot find a plan.", answer(score=None, not_applicable="no plan")])
def test_a_judge_that_always_applies_cannot_be_not_applicable(text: str) -> None:
    assert state(text, "LC") == "unparsable"


@pytest.mark.parametrize(
    "text",
    [
        answer(score=0, not_applicable="no plan"),
        answer(score=None, not_applicable=True),
        "I cannot find a plan.\nScore: 0",
        "Criteria: c\nSupporting Evidence: I cannot find a plan.\nScore: 0",
        "Criteria: c\nNot applicable: no plan\nScore: 0",
    ],
)
def test_a_score_and_not_applicable_together_contradict_each_other(text: str) -> None:
    assert state(text, "PQ") == "unparsable"


def test_findings_keep_their_words_and_citations() -> None:
    reply = read(answer(findings=[FINDING, {**FINDING, "impact": "LOW", "citations": ["[S1]", "0242ca2533f.."]}]))
    assert [f.citations for f in reply.findings] == [("S3",), ("[S1]", "0242ca2533f..")]
    assert [f.impact for f in reply.findings] == ["high", "low"]


def test_an_unknown_impact_is_left_out_and_said() -> None:
    reply = read(answer(findings=[{**FINDING, "impact": "catastrophic"}]))
    assert reply.findings[0].impact is None
    assert reply.notes == ("unknown_impact: 'catastrophic' is left out",)


def test_finding_lines_of_the_template() -> None:
    reply = read(
        "Criteria: c\nSupporting Evidence: see S3\nFindings:\n"
        '- S3, S4 | high | claims a failed search | "As the search showed"\n- S1 | low | no end tag\nScore: 1'
    )
    assert reply.score == 1
    assert [(f.citations, f.impact, f.evidence) for f in reply.findings] == [
        (("S3", "S4"), "high", "As the search showed"),
        (("S1",), "low", ""),
    ]


def test_the_papers_prose_evidence_becomes_one_finding_that_says_so() -> None:
    reply = read("Criteria: c\nSupporting Evidence: step 2 is skipped in S3 and 0242ca2533fac5b8.\nScore: 1")
    assert [f.citations for f in reply.findings] == [("S3", "0242ca2533fac5b8")]
    assert reply.notes == (WHOLE_EVIDENCE,)
    assert read("Supporting Evidence: all steps are sound (S1 to S9).\nScore: 3").findings == ()


def test_the_baseline_gives_errors_with_categories_and_no_score() -> None:
    errors = [{**FINDING, "category": "tool related"}, {**FINDING, "category": "Bad Luck"}]
    reply = read(json.dumps({"criteria": "", "rationale": "", "findings": errors}), "trail")
    assert (reply.score, reply.not_applicable) == (None, None)
    assert [f.category for f in reply.findings] == ["Tool-related", "Bad Luck"]
    assert reply.notes == ("unknown_category: 'Bad Luck' is kept as written",)
    assert read("Findings: none", "trail").findings == ()
    assert state("Criteria: c\nSupporting Evidence: all fine", "trail") == "unparsable"


def test_one_schema_serves_all_scoring_judges_since_caches_come_after_it() -> None:
    schemas = [reply_schema(rubric) for rubric in RUBRICS.values() if rubric.answer == "score"]
    assert all(schema == schemas[0] for schema in schemas)
    assert list(schemas[0]["properties"])[-2:] == ["score", "not_applicable"]  # the reasons come before the score
    assert "score" not in reply_schema(RUBRICS["trail"])["properties"]


@given(st.text())
def test_no_text_makes_the_reader_fail(text: str) -> None:
    assert isinstance(read_reply(text, RUBRICS["PQ"]), ParsedReply | Unparsable)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(
                        ["criteria", "rationale", "findings", "score", "not_applicable", "citations", "description"]),
                        inner)))  # fmt: skip
def test_no_json_makes_the_reader_fail_and_scores_are_always_0_to_3(content: object) -> None:
    for key in ("LC", "PQ", "trail"):
        reply = read_reply(json.dumps(content), RUBRICS[key])
        assert isinstance(reply, Unparsable) or reply.score in {None, 0, 1, 2, 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps([{"text": "hm, perhaps 1", "thought": True}, {"text": answer()}]), 2),
        (f'{{"verdict": {answer()}}}', 2),
        (json.dumps({"response": answer()}), 2),
        (f'Here it is:\n```json\n{{"result": {answer()}}}\n```', "unparsable"),
        (f'{{"example": {answer()}}}', "unparsable"),
        (f'{{"verdict": {answer()}, "score": 1}}', "unparsable"),
        (f'{{"verdict": {answer()}, "answer": {answer(score=1)}}}', "unparsable"),
        (f'{{"verdict": {answer()[:-1]}, "score": 1}}}}', "unparsable"),
    ],
)
def test_a_verdict_that_one_part_or_one_name_holds_is_read(text: str, expected: object) -> None:
    assert state(text) == expected


def check(case: dict[str, Any]) -> None:
    """A case of a file of replies: the state, the score and the words that are wanted."""
    expected = case["expect"]
    for key in case.get("judges", expected.get("judges", ["LC"])):
        assert state(case["reply"], key) == expected.get("score", expected["state"]), case["case"]
        if "rationale" in expected:
            assert read(case["reply"], key).rationale == expected["rationale"]


def cases_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", cases_of(Path(__file__).with_name("reply_cases.jsonl")), ids=lambda case: case["case"])
def test_wrapping_is_taken_off_and_a_doubtful_verdict_stays_none(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        (answer(), None),
        (f"<think>The plan holds.</think>{answer()}", "The plan holds."),
        (f"The plan holds.\n</think>\n{answer()}", "The plan holds."),
        (f"<think>hm</think>The plan holds.\n```json\n{answer()}\n```", "hm\n\nThe plan holds."),
        (f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{answer()}", "hm"),
        ("The plan holds.\n</think>\nSupporting Evidence: e\nScore: 2", "The plan holds."),
    ],
)
def test_what_stood_beside_an_answer_is_kept_as_its_reasoning(text: str, reasoning: str | None) -> None:
    assert read(text).reasoning == reasoning


def test_a_quote_that_holds_tags_and_full_width_signs_stays_as_it_was_written() -> None:
    quote = "the tool printed </think> <|end|> ：２"
    reply = read(f"hm\n</think>\nMy answer: {answer(findings=[{**FINDING, 'evidence': quote}])}")
    assert reply.findings[0].evidence == quote


@pytest.mark.shared
@pytest.mark.parametrize("file", ["judge_replies.jsonl", "judge_replies_wrapped.jsonl"])
def test_the_cases_of_public_bug_reports(shared: Path, file: str) -> None:
    for case in cases_of(shared / "cases" / file):
        check(case)
