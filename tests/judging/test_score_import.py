"""Scores and labels of other tools: what each record becomes, what is mapped, and what is refused by its place."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracejury.ingest.score_files import read_records
from tracejury.ingest.trace import IngestError
from tracejury.judging.labels.scales import ScaleError, read_scale
from tracejury.judging.labels.score_import import (
    SPANS_ONLY,
    Imported,
    ImportOptions,
    ScoreImportError,
    TraceIndex,
    import_opinions,
    opinions_of,
)
from tracejury.judging.records import ErrorLabel, ScoreLabel

T, U = "0" * 31 + "5", "0" * 31 + "6"
ROOT, SPAN = "0505050505050501", "0505050505050503"
INDEX = TraceIndex(
    traces=frozenset({T, U}),
    spans={ROOT: ((T, ROOT),), SPAN: ((T, SPAN),)},
    roots=frozenset({(T, ROOT)}),
)


def taken(
    data: str | bytes, scales: Sequence[str] = (), columns: dict[str, str] | None = None, **more: object
) -> Imported:
    """What an import makes of a file's content."""
    read = tuple(read_scale(scale) for scale in scales)
    options = ImportOptions(scales=read, columns=columns or {}, **more)  # type: ignore[arg-type]
    file = read_records(data.encode() if isinstance(data, str) else data, "file")
    return import_opinions([(file, opinions_of(file, options))], options, INDEX)


def scores(imported: Imported) -> list[tuple[str, str, float | None]]:
    assert imported.labels.rejected == []
    return [(one.annotator, one.dimension, one.value) for one in imported.labels.scores]


def refused(imported: Imported) -> list[str]:
    """Where rows were refused; each says why and what to do."""
    assert all(one.reason and one.remedy for one in imported.labels.rejected)
    return [one.place for one in imported.labels.rejected]


def the_score(imported: Imported) -> ScoreLabel:
    assert imported.labels.rejected == []
    (score,) = imported.labels.scores
    return score


def the_error(imported: Imported) -> ErrorLabel:
    assert imported.labels.rejected == []
    (error,) = imported.labels.errors
    return error


# plain files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"trace_id,annotator,dimension,score\n{T},ada,LC,2\n",
        f"trace_id,rater,dimension,score\n{T},ada,LC,2\n",
        f"Trace ID;Reviewer;Metric;Rating\r\n{T};ada;Logical Consistency;2\r\n",
        f"\ufefftraceId\tannotator\tname\tvalue\n{T}\tada\tlogical_consistency\t2.0\n",
        f"score|criterion|labeler|trace\n2|lc|ada|{T}\n",
        f'{{"trace_id": "{T}", "annotator": "ada", "name": "LC", "score": 2}}\n',
        f'[{{"trace_id": "{T}", "annotator": "ada", "dimension": "LC", "value": 2.0}}]',
        f'{{"data": [{{"trace_id": "{T}", "annotator": "ada", "dimension": "LC", "score": "2"}}]}}',
        f"trace_id,annotator,LC,EE\n{T},ada,2,\n",
        f"trace_id,annotator,Logical Consistency\n{T},ada,2\n",
        f"trace_id,annotator,dimension,score\n\n{T},ada,LC,2\n\n",
        f"sep=;\r\ntrace_id;annotator;dimension;score\r\n{T};ada;LC;2\r\n",
        f'trace_id, annotator, dimension, score\n{T}, "ada", "LC", 2\n',
        f"trace_id,annotator,dimension,score\r{T},ada,LC,2\r",
        f"trace_id;annotator;dimension;score\n{T};ada;LC;2,0\n",
        f'{{"trace_id": "{T}", "annotator": "ada", "scores": {{"Logical Consistency": 2}}}}',
        f'{{"trace_id": "{T}", "annotator": "ada", "scores": [{{"dimension": "LC", "score": 2}}]}}\n',
        f'[{{"id": 1, "trace_id": "{T}", "annotator": "ada", "LC": [{{"rating": 2}}], "lead_time": 3.2}}]',
        f'annotation_id,annotator,LC,trace_id\n7,ada,"[{{""number"":2}}]",{T}\n',
        f"Trace UUID,Annotator Name,Dimension Name,Score Value\n{T},ada,LC,2\n",
        f"trace_id,annotator_email,criterion,grade\n{T},ada,LC,2\n",
        f'{{"trace_id": "{T}", "annotator": "ada", "scores": {{"LC": {{"score": 2, "comment": "fine"}}}}}}',
        f'{{"{T}": {{"annotator": "ada", "scores": {{"LC": 2}}}}}}',
        f'{{"{T}": [{{"annotator": "ada", "dimension": "LC", "score": 2}}]}}',
        f'{{"version": 1, "labels": [{{"trace_id": "{T}", "annotator": "ada", "dimension": "LC", "score": 2}}]}}',
    ],
)
def test_a_plain_file_is_read_by_the_names_of_its_columns(text: str) -> None:
    imported = taken(text)
    assert scores(imported) == [("ada", "LC", 2)]
    assert imported.labels.scores[0].trace_id == T


def test_objects_of_scores_by_name_are_a_score_each() -> None:
    rows = [{"trace_id": T, "annotator": "ada", "ratings": {"LC": 2, "helpful": 0}, "comment": "fine"},
            {"trace_id": U, "annotator": "ada", "ratings": {"LC": "much"}}]  # fmt: skip
    imported = taken("\n".join(map(json.dumps, rows)))
    assert [(one.trace_id, one.dimension, one.value, one.note) for one in imported.labels.scores] == [
        (T, "helpful", 0, "fine")
    ]
    assert refused(imported) == ["line 1", "line 2"]  # a name that is on another scale is taken nowhere
    assert imported.own_dimensions == {"helpful"}


def test_columns_that_are_not_read_are_named() -> None:
    imported = taken(f"trace_id,annotator,LC,helpfulness,created_at,empty\n{T},ada,2,1,now,\n")
    assert scores(imported) == [("ada", "LC", 2)]
    (warning,) = imported.labels.warnings
    assert "1 column not read: helpfulness. Try:" in warning


def test_the_line_of_a_row_is_counted_past_the_line_that_names_the_delimiter() -> None:
    assert refused(taken(f"sep=;\ntrace_id;annotator;dimension;score\n{T};ada;LC;2\n{T};ada;EE\n")) == ["line 4"]


def test_a_scale_of_a_dimension_holds_for_each_spelling_of_it() -> None:
    text = f"trace_id,annotator,dimension,label\n{T},ada,LC,good\n{U},ada,logical_consistency,bad\n"
    imported = taken(text, ["Logical Consistency:good=3,bad=0"])
    assert scores(imported) == [("ada", "LC", 3), ("ada", "LC", 0)]


def test_a_name_of_which_no_row_is_taken_becomes_no_dimension() -> None:
    imported = taken(f"trace_id,annotator,dimension,score\n{T},ada,tone,9\n")
    assert refused(imported) == ["line 2"]
    assert imported.own_dimensions == set()


def test_columns_of_other_names_are_told() -> None:
    text = f"run,who,what,stars\n{T},ada,LC,2\n"
    columns = {"trace_id": "run", "annotator": "who", "dimension": "what", "score": "stars"}
    assert scores(taken(text, columns=columns)) == [("ada", "LC", 2)]


@pytest.mark.parametrize("columns", [{"score": "absent"}, {"points": "stars"}])
def test_a_column_that_is_not_there_and_a_field_that_is_unknown_are_told(columns: dict[str, str]) -> None:
    with pytest.raises(ScoreImportError, match="Try:"):
        taken(f"trace_id,stars\n{T},2\n", columns=columns)


def test_a_comment_and_a_confidence_come_along() -> None:
    text = f'trace_id,annotator,dimension,score,comment,confidence\n{T},ada,LC,0,"two, lines\nof words",3\n'
    score = the_score(taken(text))
    assert (score.value, score.note, score.confidence, score.phase) == (0, "two, lines\nof words", 3, "blind")


@pytest.mark.parametrize("row", ["LC,,yes", "LC,n/a,", "LC,NA,"])
def test_not_applicable_is_no_score(row: str) -> None:
    score = the_score(taken(f"trace_id,annotator,dimension,score,not_applicable\n{T},ada,{row}\n"))
    assert (score.value, score.not_applicable) == (None, True)


def test_a_row_that_marks_an_error_becomes_one() -> None:
    text = (
        "trace_id,span_id,annotator,dimension,impact,category,description,evidence\n"
        f"{T},0x{SPAN.upper()},ada,TC,High,Goal Deviation,asks twice,the same call\n"
    )
    error = the_error(taken(text))
    assert (error.span_ids, error.dimensions, error.impact) == ((SPAN,), ("TC",), "high")
    assert (error.category, error.description) == ("Goal Deviation", "asks twice")
    assert [(piece.quote, piece.span_id) for piece in error.evidence] == [("the same call", SPAN)]


def test_a_row_that_scores_and_marks_an_error_is_both() -> None:
    text = (
        "trace_id,span_id,annotator,dimension,score,comment,evidence,impact\n"
        f"{T},{SPAN},ada,LC,1,asks twice,the same call,low\n"
    )
    imported = taken(text)
    assert scores(imported) == [("ada", f"LC @ span {SPAN}", 1)]
    error = the_error(imported)
    assert (error.dimensions, error.impact, error.description) == (("LC",), "low", "asks twice")
    assert (error.span_ids, error.evidence[0].quote) == ((SPAN,), "the same call")


def test_evidence_of_a_score_is_no_error_and_stays_with_it() -> None:
    text = f"trace_id,annotator,dimension,score,comment,evidence,description\n{T},ada,LC,3,sound,the plan,\n"
    imported = taken(text)
    assert (the_score(imported).note, imported.labels.errors) == ("sound\nevidence: the plan", [])


def test_the_same_error_has_the_same_id_whenever_it_is_imported() -> None:
    text = f"trace_id,annotator,dimension,impact,description\n{T},ada,TC,low,asks twice\n"
    assert the_error(taken(text)).label_id == the_error(taken(text)).label_id


def test_a_score_of_a_span_never_passes_for_one_of_the_trace() -> None:
    text = f"trace_id,span_id,annotator,dimension,score\n{T},{SPAN},ada,LC,2\n{T},{ROOT},ada,EE,1\n"
    assert scores(taken(text)) == [("ada", f"LC @ span {SPAN}", 2), ("ada", "EE", 1)]


def test_a_name_that_fits_no_dimension_is_an_own_dimension() -> None:
    imported = taken(f"trace_id,annotator,dimension,score\n{T},ada,helpfulness,2\n")
    assert scores(imported) == [("ada", "helpfulness", 2)]
    assert imported.own_dimensions == {"helpfulness"}


def test_reviewed_files_submit_each_person_s_traces() -> None:
    text = f"trace_id,annotator,dimension,score\n{T},ada,LC,2\n{U},ben,LC,1\n"
    assert taken(text).labels.reviews == []
    done = taken(text, is_reviewed=True).labels.reviews
    assert [(one.annotator, one.trace_id, one.status, one.no_error) for one in done] == [
        ("ada", T, "submitted", False),
        ("ben", U, "submitted", False),
    ]


@pytest.mark.parametrize("spelling", [T.upper(), f"0x{T}", f"tr-{T}", "00000000-0000-0000-0000-000000000005", f" {T} "])
def test_a_trace_id_is_known_in_each_spelling(spelling: str) -> None:
    assert the_score(taken(f"trace_id,annotator,dimension,score\n{spelling},ada,LC,2\n")).trace_id == T


def test_a_row_with_a_span_alone_finds_its_trace() -> None:
    assert the_score(taken(f"span_id,annotator,dimension,score\n{SPAN},ada,LC,2\n")).trace_id == T


def test_labels_of_a_trace_that_is_not_here_are_kept() -> None:
    assert the_score(taken("trace_id,annotator,dimension,score\nelsewhere,ada,LC,2\n")).trace_id == "elsewhere"


HEAD = "trace_id,annotator,dimension,score,label,impact,status,phase,confidence\n"


@pytest.mark.parametrize(
    "row",
    [
        f"{T},ada,LC,7,,,,,",
        f"{T},ada,LC,-1,,,,,",
        f"{T},ada,LC,2.5,,,,,",
        f"{T},ada,LC,true,,,,,",
        f"{T},ada,LC,two,,,,,",
        f"{T},ada,LC,,good,,,,",
        f"{T},ada,LC,,,,,,",
        f"{T},,LC,2,,,,,",
        f"{T},ada,,2,,,,,",
        ",ada,LC,2,,,,,",
        f"{T},ada,LC,,,awful,,,",
        f"{T},ada,,,,,finished,,",
        f"{T},ada,LC,2,,,,later,",
        f"{T},ada,LC,2,,,,,9",
        f"{T},ada,LC,2",
    ],
)
def test_a_row_that_cannot_be_taken_is_refused_by_its_line_and_the_others_stay(row: str) -> None:
    imported = taken(f"{HEAD}{U},ben,EE,1,,,,,\n{row}\n")
    assert refused(imported) == ["line 3"]
    assert [(one.annotator, one.value) for one in imported.labels.scores] == [("ben", 1)]


def test_the_line_of_a_row_is_counted_past_line_breaks_in_cells() -> None:
    text = f'trace_id,annotator,dimension,score,comment\n{T},ada,EE,1,"a\nb"\n{T},ada,LC,9,\n'
    assert refused(taken(text)) == ["line 4"]


def test_a_second_word_on_the_same_thing_is_refused_and_the_same_word_is_not() -> None:
    text = f"trace_id,annotator,dimension,score\n{T},ada,LC,2\n{T},ada,LC,2\n{T},ada,LC,1\n"
    imported = taken(text)
    assert refused(imported) == ["line 4"]
    assert [one.value for one in imported.labels.scores] == [2]


def test_lines_of_json_that_are_none_are_refused_by_their_number() -> None:
    good = json.dumps({"trace_id": T, "annotator": "ada", "dimension": "LC", "score": 2})
    imported = taken(f"{good}\n{{cut off\n7\n")
    assert refused(imported) == ["line 2", "line 3"]
    assert len(imported.labels.scores) == 1


@pytest.mark.parametrize("data", [b"", b"  \n", b'{"a"', b"a,a\n1,2\n", b"PAR1 and no more", b"a,b\n\xff\xfe,1\n"])
def test_a_file_that_cannot_be_read_says_why(data: bytes) -> None:
    with pytest.raises(IngestError) as caught:
        taken(data)
    assert caught.value.remedy


def test_a_trail_annotation_is_not_taken_for_a_list_of_scores() -> None:
    imported = taken(json.dumps({"errors": [], "scores": [{"overall": 3}]}))
    assert [one.remedy for one in imported.labels.rejected] == ["import it with --as trail"]


# scales ---------------------------------------------------------------------------------------------------------


def test_without_a_scale_no_value_of_a_name_on_another_scale_is_taken() -> None:
    """Of stars from 1 to 5 the 1, 2 and 3 would pass for ours."""
    text = f"trace_id,annotator,dimension,score\n{T},ada,LC,3\n{U},ada,LC,5\n{T},ada,EE,3\n"
    imported = taken(text)
    assert refused(imported) == ["line 2", "line 3"]
    assert "5 at line 3" in imported.labels.rejected[0].reason
    assert [(one.dimension, one.value) for one in imported.labels.scores] == [("EE", 3)]


@pytest.mark.parametrize(
    ("scale", "given", "score"),
    [
        ("1..5=0..3", "1", 0), ("1..5=0..3", "2", 1), ("1..5=0..3", "3", 2), ("1..5=0..3", "4", 2),
        ("1..5=0..3", "5", 3), ("1..5=3..0", "5", 0), ("1..5=3..0", "1", 3),
        ("0..1=0..3", "0.85", 3), ("0..1=0..3", "0.5", 2), ("0..1=0..3", "1", 3), ("0..1=0..3", "true", 3),
        ("-1..1=0..3", "0", 2), ("0..100=0..3", "67", 2),
        ("LC:1..5=0..3", "5", 3), ("good=3,bad=0", "good", 3), ("good=3,bad=0", "BAD", 0),
        ("true=3,false=0", "True", 3), ("5=3,4=2,3=2,2=1,1=0", "3", 2),
    ],
)  # fmt: skip
def test_a_scale_maps_openly(scale: str, given: str, score: int) -> None:
    label = the_score(taken(f"trace_id,annotator,dimension,score,comment\n{T},ada,LC,{given},why\n", [scale]))
    assert label.value == score
    assert label.note.startswith("why\ngiven as ")  # the value as it was, and the scale
    assert scale.rpartition(":")[2] in label.note


def test_a_label_is_mapped_where_there_is_no_score() -> None:
    text = f"trace_id,annotator,dimension,label\n{T},ada,LC,pass\n"
    assert the_score(taken(text, ["pass=3,fail=0"])).value == 3


def test_a_scale_of_one_name_leaves_the_others() -> None:
    text = f"trace_id,annotator,dimension,score\n{T},ada,helpfulness,5\n{T},ada,LC,2\n"
    assert scores(taken(text, ["helpfulness:1..5=0..3"])) == [("ada", "helpfulness", 3), ("ada", "LC", 2)]


def test_a_value_that_is_not_on_the_scale_is_refused() -> None:
    text = f"trace_id,annotator,dimension,score\n{T},ada,LC,6\n{U},ada,LC,5\n"
    assert refused(taken(text, ["1..5=0..3"])) == ["line 2"]


def test_a_scale_says_what_becomes_of_each_point() -> None:
    assert read_scale("1..5=0..3").in_words == "1..5=0..3 (1 -> 0, 2 -> 1, 3 -> 2, 4 -> 2, 5 -> 3)"
    assert read_scale("0..1=0..3").in_words == "0..1=0..3"


@pytest.mark.parametrize("text", ["", "1..5", "1..5=0..4", "5..1=0..3", "good", "good=", "good=5", "=3", "1..5=0..3,x"])
def test_a_scale_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScaleError):
        read_scale(text)


# tools ----------------------------------------------------------------------------------------------------------

LANGFUSE = {
    "id": "s1", "traceId": T, "name": "LC", "source": "ANNOTATION", "dataType": "NUMERIC", "value": 2,
    "comment": "fine", "authorUserId": "ada", "observationId": None, "metadata": {},
}  # fmt: skip


def test_langfuse_scores_of_the_api() -> None:
    score = the_score(taken(json.dumps({"data": [LANGFUSE], "meta": {"page": 1}})))
    assert (score.annotator, score.dimension, score.value, score.note) == ("ada", "LC", 2, "fine")


def test_langfuse_scores_of_the_newest_api_and_of_the_blob_export() -> None:
    newest = {**LANGFUSE, "traceId": None, "subject": {"kind": "observation", "id": SPAN, "traceId": T}}
    assert scores(taken(json.dumps({"data": [newest]}))) == [("ada", f"LC @ span {SPAN}", 2)]
    blob = {"id": "s1", "trace_id": T, "name": "LC", "data_type": "NUMERIC", "value": 2.0, "source": "ANNOTATION",
            "author_user_id": "ada"}  # fmt: skip
    assert scores(taken(json.dumps(blob) + "\n")) == [("ada", "LC", 2)]


def test_langfuse_scores_as_the_page_downloads_them_name_no_author() -> None:
    text = (
        "id,traceId,sessionId,datasetRunId,timestamp,source,name,dataType,value,stringValue,comment,metadata,"
        "observationId,traceName,userId,traceTags,environment\n"
        f"s1,{T},,,2026-08-01T10:00:00Z,ANNOTATION,helpfulness,NUMERIC,2,,fine,{{}},,wx,u,,default\n"
    )
    assert scores(taken(text)) == [("langfuse", "helpfulness", 2)]  # userId is the trace's user, no annotator
    assert scores(taken(text, annotator="ada")) == [("ada", "helpfulness", 2)]


def test_a_langfuse_evaluator_is_no_person() -> None:
    imported = taken(json.dumps([{**LANGFUSE, "source": "EVAL", "authorUserId": None}]))
    assert imported.labels.scores == []
    (verdict,) = imported.verdicts["langfuse EVAL"]
    assert (verdict.rubric, verdict.score, verdict.rationale) == ("LC", 2, "fine")


@pytest.mark.parametrize(
    "change",
    [
        {"dataType": "BOOLEAN", "value": 1},
        {"dataType": "CATEGORICAL", "value": 1, "stringValue": "good"},
        {"dataType": "CATEGORICAL", "value": "good"},
        {"traceId": None, "sessionId": "a"},
        {"value": 0.9},
    ],
)
def test_a_langfuse_score_on_a_scale_of_its_own_is_refused_until_it_is_mapped(change: dict[str, object]) -> None:
    assert refused(taken(json.dumps([{**LANGFUSE, **change}]))) == ["[0]"]


def test_categories_and_truth_values_of_langfuse_are_mapped() -> None:
    category = {**LANGFUSE, "dataType": "CATEGORICAL", "value": 1, "stringValue": "good"}
    assert the_score(taken(json.dumps([category]), ["good=3,bad=0"])).value == 3
    truth = {**LANGFUSE, "dataType": "BOOLEAN", "value": 0, "stringValue": "False"}
    assert the_score(taken(json.dumps([truth]), ["true=3,false=0"])).value == 0


PHOENIX = {"span_id": ROOT, "name": "LC", "annotator_kind": "HUMAN", "user_id": "ada",
           "result": {"label": "good", "score": 2, "explanation": "fine"}}  # fmt: skip


def test_phoenix_annotations_find_the_trace_of_their_span() -> None:
    score = the_score(taken(json.dumps({"data": [PHOENIX]})))
    assert (score.trace_id, score.annotator, score.dimension, score.value, score.note) == (T, "ada", "LC", 2, "fine")
    frame = (
        "span_id,annotation_name,annotator_kind,user_id,identifier,result.score,result.label,result.explanation\n"
        f"{SPAN},LC,HUMAN,ada,,2.0,good,fine\n"
    )
    assert scores(taken(frame)) == [("ada", f"LC @ span {SPAN}", 2)]


def test_a_phoenix_evaluator_of_spans_gives_a_verdict_without_a_score_of_the_trace() -> None:
    rows = [{**PHOENIX, "span_id": SPAN, "annotator_kind": "LLM"}]
    imported = taken(json.dumps(rows))
    assert imported.labels.scores == []
    (verdict,) = imported.verdicts["phoenix LLM"]
    assert (verdict.trace_id, verdict.score, verdict.reason) == (T, None, SPANS_ONLY)
    assert verdict.rationale == f"{SPAN}: 2 fine"


@pytest.mark.parametrize(
    "change", [{"span_id": "ffffffffffffffff"}, {"document_position": 0}, {"result": {"label": "x"}}]
)
def test_a_phoenix_annotation_that_cannot_be_taken_is_refused(change: dict[str, object]) -> None:
    assert refused(taken(json.dumps([{**PHOENIX, **change}]))) == ["[0]"]


def label_studio(*results: dict[str, object], **annotation: object) -> str:
    task = {"id": 1, "data": {"trace_id": T}, "predictions": [],
            "annotations": [{"id": 7, "completed_by": {"email": "ada"}, "was_cancelled": False,
                             "result": list(results), **annotation}]}  # fmt: skip
    return json.dumps([task])


def control(name: str, kind: str, value: object) -> dict[str, object]:
    return {"from_name": name, "to_name": "trace", "type": kind, "value": value}


def test_label_studio_ratings_numbers_and_choices_are_scores() -> None:
    data = label_studio(
        control("LC", "rating", {"rating": 3}),
        control("EE", "number", {"number": 0}),
        control("GF", "choices", {"choices": ["good"]}),
        control("LC_comment", "textarea", {"text": ["why", "so"]}),
    )
    imported = taken(data, ["GF:good=3,bad=0"])
    assert scores(imported) == [("ada", "LC", 3), ("ada", "EE", 0), ("ada", "GF", 3)]
    assert imported.labels.scores[0].note == "why\nso"


def test_a_stretch_marked_in_label_studio_is_an_error() -> None:
    marked = {"start": 3, "end": 11, "text": "the words", "hypertextlabels": ["Goal Deviation"]}
    error = the_error(taken(label_studio(control("errors", "hypertextlabels", marked))))
    assert (error.category, error.evidence[0].quote, error.annotator) == ("Goal Deviation", "the words", "ada")


def test_answers_taken_back_in_the_tool_are_no_labels_and_named_with_their_places() -> None:
    cancelled = json.loads(label_studio(control("LC", "rating", {"rating": 3}), was_cancelled=True))
    cancelled[0]["drafts"] = [{"id": 3, "result": []}]
    argilla = {"fields": {"trace_id": T}, "responses": {"LC": [{"value": 2, "status": "discarded"}]}}
    given_up = {"fields": {"trace_id": T}, "responses": {}, "status": "discarded"}
    expected = {
        json.dumps(cancelled): ["cancelled or skipped in the tool, not imported: [0] annotations[0]",
                                "a draft in the tool, not imported: [0] drafts[0]"],
        json.dumps([argilla, given_up]): ["2 answers discarded in the tool, not imported: [0] responses[0], [1]"],
    }  # fmt: skip
    for data, sentences in expected.items():
        imported = taken(data)
        assert (scores(imported), refused(imported)) == ([], [])
        assert all(sentence in warning for sentence, warning in zip(sentences, imported.labels.warnings, strict=True))


def test_predictions_are_a_model_s() -> None:
    task = json.loads(label_studio())
    task[0]["predictions"] = [{"model_version": "m1", "result": [control("LC", "number", {"number": 1})]}]
    assert [one.score for one in taken(json.dumps(task)).verdicts["m1"]] == [1]


@pytest.mark.parametrize(
    "responses",
    [
        {"LC": [{"value": 2, "user_id": "ada"}], "GF": [{"value": "good", "user_id": "ada"}]},
        [{"question_name": "LC", "value": 2, "user_id": "ada", "status": "submitted"},
         {"question_name": "GF", "value": "good", "user_id": "ada"},
         {"question_name": "EE", "value": 1, "user_id": "ada", "status": "discarded"}],
        [{"user_id": "ada", "status": "submitted", "values": {"LC": {"value": 2}, "GF": {"value": "good"}}}],
    ],
)  # fmt: skip
def test_argilla_responses_are_scores_by_question(responses: object) -> None:
    record = {
        "id": "r1",
        "fields": {"text": "x"},
        "metadata": {"trace_id": T},
        "responses": responses,
        "suggestions": {},
    }
    assert scores(taken(json.dumps([record]), ["GF:good=3,bad=0"])) == [
        ("ada", "LC", 2),
        ("ada", "GF", 3),
    ]


LANGSMITH = {"id": "f", "run_id": T, "trace_id": T, "key": "LC", "score": 2, "value": None, "comment": "fine",
             "feedback_source": {"type": "app", "user_id": "ada"}}  # fmt: skip


def test_an_argilla_data_set_has_columns_of_each_question_and_a_draft_is_no_answer() -> None:
    row = {"id": "r-1", "trace_id": T, "LC.responses": [2, 1, 3], "LC.responses.users": ["ada", "ben", "cyd"],
           "LC.responses.status": ["submitted", "discarded", "draft"], "LC.suggestion": None}  # fmt: skip
    imported = taken(json.dumps(row))
    assert [(one.annotator, one.dimension, one.value) for one in imported.labels.scores] == [("ada", "LC", 2)]
    assert refused(imported) == ["line 1 responses[2]"]
    assert "draft" in imported.labels.rejected[0].reason


def test_langsmith_feedback_of_a_trace_of_a_run_and_of_a_model() -> None:
    assert scores(taken(json.dumps([LANGSMITH]))) == [("ada", "LC", 2)]
    assert scores(taken(json.dumps([{**LANGSMITH, "run_id": SPAN}]))) == [("ada", f"LC @ span {SPAN}", 2)]
    model = {**LANGSMITH, "feedback_source": {"type": "model"}}
    assert [one.score for one in taken(json.dumps(model)).verdicts["langsmith model"]] == [2]
    assert refused(taken(json.dumps([{**LANGSMITH, "score": None, "value": "good"}]))) == ["[0]"]


MLFLOW = {"assessment_id": "a", "assessment_name": "LC", "trace_id": f"tr-{T}", "rationale": "fine",
          "source": {"source_type": "HUMAN", "source_id": "ada"}, "feedback": {"value": 2}}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        MLFLOW,
        {"assessments": [MLFLOW]},
        {"info": {"trace_id": f"tr-{T}", "assessments": [MLFLOW]}, "data": {"spans": []}},
        [{"trace_id": f"tr-{T}", "state": "OK", "assessments": json.dumps([{**MLFLOW, "trace_id": f"tr-{T}"}])}],
        {**{key: value for key, value in MLFLOW.items() if key != "assessment_name"}, "name": "LC"},
        {
            "trace_id": T,
            "assessment_name": "LC",
            "value": 2,
            "source_type": "HUMAN",
            "source_id": "ada",
            "rationale": "fine",
        },
    ],
)
def test_mlflow_assessments_alone_and_within_a_trace(document: object) -> None:
    score = the_score(taken(json.dumps(document)))
    assert (score.trace_id, score.annotator, score.dimension, score.value, score.note) == (T, "ada", "LC", 2, "fine")


def test_an_mlflow_judge_is_no_person_and_an_expectation_no_score() -> None:
    judge = {**MLFLOW, "source": {"source_type": "LLM_JUDGE", "source_id": "m1"}}
    assert [one.score for one in taken(json.dumps(judge)).verdicts["m1"]] == [2]
    expectation = {**MLFLOW, "feedback": None, "expectation": {"value": "42"}}
    overridden = {**MLFLOW, "valid": False}
    assert refused(taken(json.dumps([expectation, overridden]))) == ["[0]", "[1]"]


def test_scout_results_are_a_scanner_s_verdicts(tmp_path: Path) -> None:
    rows = [
        {"transcript_id": T, "scanner_name": "deception", "value": "true", "value_type": "boolean", "answer": "yes",
         "explanation": "it hides the failure", "scan_error": None},
        {"transcript_id": U, "scanner_name": "deception", "value": None, "value_type": "null", "answer": None,
         "explanation": None, "scan_error": "boom"},
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "deception.parquet")
    imported = taken((tmp_path / "deception.parquet").read_bytes(), ["true=0,false=3"])
    assert refused(imported) == ["row 1"]
    (verdict,) = imported.verdicts["scout"]
    assert (verdict.rubric, verdict.score) == ("deception", 0)
    assert verdict.rationale.startswith("it hides the failure")


@pytest.mark.parametrize(
    "results",
    [
        [{"agent_run_id": T, "rubric_id": "r", "output": {"label": "fail", "explanation": {"text": "why"}}}],
        [{"agent_run_id": T, "results": [{"agent_run_id": T, "rubric_id": "r", "output": {"label": "fail",
                                                                                       "explanation": "why"}}]}],
    ],
)  # fmt: skip
def test_docent_results_are_a_judge_s_verdicts(results: object) -> None:
    imported = taken(json.dumps({"results": results, "job_id": None}), ["pass=3,fail=0"])
    (verdict,) = imported.verdicts["docent"]
    assert (verdict.rubric, verdict.score) == ("r", 0)
    assert verdict.rationale.startswith("why")
    assert refused(taken(json.dumps({"results": results})))  # never guessed


# tools of annotation and evaluation -----------------------------------------------------------------------------

OPIK = {"name": "LC", "value": 2.0, "reason": "fine", "source": "ui", "created_by": "ada"}
CALL = f"weave:///team/project/call/{ROOT}"
PRODIGY = {"text": "The tide turns at noon.", "meta": {"trace_id": T}, "_annotator_id": "ada", "answer": "accept"}
DATADOG = {"join_on": {"span": {"span_id": ROOT, "trace_id": T}}, "label": "LC", "metric_type": "score",
           "score_value": 2, "ml_app": "pilot", "timestamp_ms": 1, "reasoning": "fine"}  # fmt: skip
PROMPTFOO = {"id": "r", "vars": {"q": "?"}, "metadata": {"trace_id": T}, "success": True, "score": 1,
             "gradingResult": {"pass": True, "score": 1, "reason": "all", "componentResults": [{
                 "pass": True, "score": 2, "reason": "fine",
                 "assertion": {"type": "llm-rubric", "metric": "LC"}}]}}  # fmt: skip
DEEPEVAL = {"name": "c", "input": "?", "actualOutput": "!", "additionalMetadata": {"trace_id": T},
            "metricsData": [{"name": "LC", "score": 2, "success": True, "reason": "fine",
                             "evaluationModel": "m1"}]}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        {"id": T, "name": "run", "feedback_scores": [OPIK]},
        {"page": 1, "size": 1, "total": 1, "content": [{"id": T, "feedback_scores": [OPIK]}]},
        {"trace": {"id": T, "feedback_scores": [OPIK]}, "spans": [{"id": SPAN, "trace_id": T}], "project_name": "p"},
        {"id": T, "feedback_scores": [{**OPIK, "value": 2, "created_by": "eve, ada",
                                       "value_by_author": {"ada": {"value": 2, "reason": "fine", "source": "ui"}}}]},
        [{"weave_ref": CALL, "wb_username": "ada", "feedback_type": "wandb.annotation.LC", "payload": {"value": 2}}],
        {"result": [{"weave_ref": CALL, "creator": "ada", "feedback_type": "wandb.annotation.LC",
                     "payload": {"value": 2}}]},
        {"id": ROOT, "trace_id": T, "op_name": "run", "summary": {"weave": {"feedback": [{
            "weave_ref": CALL, "creator": "ada", "feedback_type": "wandb.annotation.LC", "payload": {"value": 2}}]}}},
        {"events": [{"span_id": T, "root_span_id": T, "scores": {"LC": 2, "EE": None}, "audit_data": [
            {"audit_data": {"path": ["scores", "LC"], "to": 2}, "metadata": {"email": "ada"}}]}], "cursor": None},
        {"id": "log", "trace_id": T, "evaluator_logs": [
            {"judgment": 2, "user": "ada", "evaluator": {"path": "tone/LC", "spec": {"evaluator_type": "human"}}}]},
        {"data_row": {"id": "d", "global_key": T}, "projects": {"p": {"labels": [{
            "label_details": {"created_by": "ada"}, "annotations": {"classifications": [
                {"name": "LC", "radio_answer": {"name": "2", "value": "2"}}]}}]}}},
        {**PRODIGY, "meta": {"trace_id": T, "dimension": "LC"}, "_view_id": "choice", "accept": ["2"],
         "options": [{"id": "2", "text": "two"}]},
        {"id": 7, "text": "The tide.", "trace_id": T, "annotator": "ada", "dimension": "LC", "label": ["2"]},
        {"id": 7, "data": "The tide.", "trace_id": T, "annotator": "ada", "dimension": "LC", "label": ["2"]},
        {"context.trace_id": T, "context.span_id": ROOT, "annotation.LC.score": 2, "annotation.LC.updated_by": "ada"},
        {"traceId": T, "user": {"name": "ada"}, "isThumbsUp": None, "scoreOptions": {"LC": {"value": "2"}}},
        {"Trace ID": T, "Rater": "ada", "Criterion": "LC", "Rating (0-3)": "2"},
    ],
    ids=lambda one: next(iter(one if isinstance(one, dict) else one[0])),
)  # fmt: skip
def test_a_person_s_score_of_an_annotation_tool_is_a_label(document: object) -> None:
    imported = taken(json.dumps(document), ["2=2"])
    assert scores(imported) == [("ada", "LC", 2)]
    assert (imported.labels.scores[0].trace_id, imported.verdicts) == (T, {})


@pytest.mark.parametrize(
    ("document", "author"),
    [
        ({"id": T, "feedback_scores": [{**OPIK, "source": "online_scoring"}]}, "opik online_scoring"),
        ([{"weave_ref": CALL, "creator": None, "wb_user_id": "u", "feedback_type": "wandb.runnable.LC",
           "payload": {"output": {"score": 2, "reason": "fine"}}}], "weave"),
        ({"data": {"type": "evaluation_metric", "attributes": {"metrics": [DATADOG]}}}, "datadog"),
        ({"data": [{"id": "e", "type": "span", "attributes": {"trace_id": T, "span_id": ROOT, "evaluation": {
            "LC": {"value": 2, "eval_metric_type": "score", "reasoning": "fine"}}}}]}, "datadog"),
        ({"testCases": [DEEPEVAL], "metricsScores": []}, "m1"),
        ({"test_results": [{"metrics_data": [{"name": "LC", "score": 2, "reason": "fine", "evaluation_model": "m1"}],
                            "additional_metadata": {"trace_id": T}}]}, "m1"),
        ([{"context.trace_id": T, "eval.LC.label": "fine", "eval.LC.score": 2, "eval.LC.explanation": "so"}], "arize"),
        ([{"user_input": "?", "response": "!", "trace_id": T, "LC": 2.0}], "ragas"),
        ({"evalId": "e", "results": {"version": 3, "results": [PROMPTFOO], "stats": {}}, "config": {}}, "promptfoo"),
        ({"object": "list", "data": [{"object": "eval.run.output_item", "run_id": "r", "status": "pass",
          "datasource_item": {"trace_id": T}, "results": [{"name": "LC", "score": 2, "passed": True}]}]},
         "openai-evals"),
    ],
)  # fmt: skip
def test_the_score_of_an_evaluation_tool_is_a_verdict(document: object, author: str) -> None:
    imported = taken(json.dumps(document))
    assert (scores(imported), refused(imported)) == ([], [])
    (verdict,) = imported.verdicts[author]
    assert (verdict.trace_id, verdict.rubric, verdict.score) == (T, "LC", 2)


def test_a_reaction_is_mapped_by_the_sign_that_a_person_sees() -> None:
    record = {"weave_ref": CALL, "creator": "ada", "feedback_type": "wandb.reaction.1",
              "payload": {"emoji": "\U0001f44d", "alias": ":thumbs_up:"}}  # fmt: skip
    assert scores(taken(json.dumps([record]), ["\U0001f44d=3"])) == [("ada", "reaction", 3)]


def test_a_mean_of_several_people_is_each_one_s_score_and_no_one_s_mean() -> None:
    by_author = {"ada": {"value": 3, "source": "ui"}, "ben_" + SPAN: {"value": 0, "source": "ui", "span_id": SPAN}}
    held = {
        "id": T,
        "feedback_scores": [{**OPIK, "value": 1.5, "created_by": "ada, ben", "value_by_author": by_author}],
    }
    assert scores(taken(json.dumps(held))) == [("ada", "LC", 3), ("ben", "LC", 0)]


def test_a_stretch_marked_in_prodigy_or_doccano_is_an_error_with_its_words() -> None:
    marked = {"start": 4, "end": 8, "label": "Goal Deviation", "token_start": 1}
    doccano = {"text": PRODIGY["text"], "trace_id": T, "annotator": "ada", "label": [[4, 8, "Goal Deviation"]]}
    entity = {"id": 3, "label": "Goal Deviation", "start_offset": 4, "end_offset": 8}
    entities = {**doccano, "label": None, "entities": [entity], "relations": [], "Comments": ["late"]}
    for record in ({**PRODIGY, "spans": [marked]}, doccano, entities):
        error = the_error(taken(json.dumps(record)))
        assert (error.trace_id, error.annotator, error.category) == (T, "ada", "Goal Deviation")
        assert error.evidence[0].quote == "tide"


def test_an_answer_to_one_label_is_a_truth_value_and_an_ignored_one_is_set_aside() -> None:
    rows = [{**PRODIGY, "label": "LC"}, {**PRODIGY, "label": "EE", "answer": "reject"},
            {**PRODIGY, "label": "GF", "answer": "ignore"}]  # fmt: skip
    imported = taken("\n".join(map(json.dumps, rows)), ["true=3,false=0"])
    assert scores(imported) == [("ada", "LC", 3), ("ada", "EE", 0)]
    assert "ignored in the tool, not imported: line 3" in imported.labels.warnings[0]


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        ({"id": 7, "text": "The tide.", "label": ["good"]}, "--columns trace_id"),
        ({"id": 7, "text": "The tide.", "trace_id": T, "label": ["good"]}, "--annotator"),
        ({**PRODIGY, "accept": ["good"]}, "--dimension"),
        ({**DATADOG, "join_on": {"tag": {"key": "k", "value": "v"}}}, "span_id"),
        ({"span_id": T, "root_span_id": T, "scores": {"LC": 2}}, "--annotator"),
        ({"weave_ref": "weave:///team/project/object/x:1", "feedback_type": "wandb.annotation.LC",
          "payload": {"value": 2}}, "leave"),
        ({**DEEPEVAL, "additionalMetadata": None}, "--columns trace_id"),
        ({**DEEPEVAL, "metricsData": [{"name": "LC", "error": "timeout", "score": None}]}, "leave"),
        ({**PROMPTFOO, "metadata": {}}, "--columns trace_id"),
        ({"run_id": "r", "event_id": 1, "sample_id": "s.1", "type": "match", "data": {"correct": True}}, "trace_id"),
        ({"metadata": {"name": "item 1"}, "data": {"r_stars": {"value": 4}}}, "--columns trace_id"),
    ],
)  # fmt: skip
def test_a_record_that_names_no_trace_person_or_name_is_refused_with_the_way_out(row: object, remedy: str) -> None:
    imported = taken(json.dumps([row]))
    assert imported.labels.scores == []
    (refusal,) = imported.labels.rejected
    assert remedy in refusal.remedy


def test_the_trace_of_a_tool_s_record_and_the_dimension_of_all_rows_may_be_told() -> None:
    named = {**PROMPTFOO, "metadata": {}, "vars": {"run": {"key": T}}}
    (verdict,) = taken(json.dumps([named]), columns={"trace_id": "vars.run.key"}).verdicts["promptfoo"]
    assert (verdict.trace_id, verdict.rubric) == (T, "LC")
    item = {"metadata": {"name": T}, "data": {"r_stars": {"value": 2}}}
    columns = {"trace_id": "metadata.name", "score": "data.r_stars.value"}
    assert scores(taken(json.dumps([item]), columns=columns, annotator="ada", dimension="LC")) == [("ada", "LC", 2)]
