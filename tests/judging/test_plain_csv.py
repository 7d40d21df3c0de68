"""Inputs from plain CSV files, as strangers write them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracejury.judging.agreement.inputs import COLUMNS, Inputs
from tracejury.judging.agreement.tables import tables_from_frames
from tracejury.judging.reports.export import input_csv
from tracejury.judging.reports.plain_csv import CsvError, read_folder, read_input

ERRORS = "trace_id,error_id,impact,dimension,relevant,caught,localized\n"
SCORES = "trace_id,dimension,reference_score,judge_score\n"


def errors(text: str) -> pd.DataFrame:
    return read_input((ERRORS + text).encode(), "error_pairs", "e.csv")


def scores(text: str) -> pd.DataFrame:
    return read_input((SCORES + text).encode(), "score_pairs", "s.csv")


def test_ids_keep_their_leading_zeros_and_words_that_pandas_takes_for_missing() -> None:
    frame = errors("007,NA,low,null,true,false,false\n")
    assert frame.iloc[0][["trace_id", "error_id", "dimension"]].tolist() == ["007", "NA", "null"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_any_delimiter_with_or_without_byte_order_mark(sign: str, mark: bytes) -> None:
    text = (SCORES + "01,LC,3,2\n").replace(",", sign)
    frame = read_input(mark + text.encode(), "score_pairs", "s.csv")
    assert frame.to_dict("records") == [
        {"trace_id": "01", "dimension": "LC", "reference_score": 3.0, "judge_score": 2.0}
    ]


def test_windows_line_ends_spaces_in_the_header_blank_lines_and_columns_of_ones_own() -> None:
    frame = read_input(
        b"trace_id, dimension ,reference_score,judge_score,note\r\n\r\nt,LC,1,2,hm\r\n", "score_pairs", "s.csv"
    )
    assert frame[["trace_id", "dimension", "reference_score", "note"]].to_numpy().tolist() == [["t", "LC", 1.0, "hm"]]


def test_a_blank_cell_is_missing_and_zero_is_a_score() -> None:
    frame = scores("a,LC,0,\nb,LC,n/a,0\n")
    assert frame["reference_score"].tolist()[0] == 0
    assert np.isnan(frame["judge_score"].tolist()[0])
    assert np.isnan(frame["reference_score"].tolist()[1])


def test_a_decimal_comma_stands_beside_semicolons() -> None:
    frame = read_input(b"trace_id;scale;reference_score;judge_score\nt;overall;3,5;4\n", "trail_scores", "x.csv")
    assert frame["reference_score"].tolist() == [3.5]


def test_flags_in_the_words_of_spreadsheets() -> None:
    frame = errors("t,1,low,LC,TRUE,0,no\nt,2,low,LC,yes,1,False\n")
    assert frame[["relevant", "caught", "localized"]].to_numpy().tolist() == [[True, False, False], [True, True, False]]


def test_a_label_of_a_judge_is_a_flag_and_its_score_a_number() -> None:
    frame = read_input(b"dimension,unit,judge_label,reference_label\nLC,t,true,\n", "unit_labels", "u.csv")
    assert frame.iloc[0][["judge_label", "reference_label"]].tolist() == [True, None]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "e.csv: is empty"),
        (
            b"trace_id,dimension\n",
            "e.csv, line 1: lacks the columns error_id, impact, relevant, caught, localized; it has",
        ),
        (ERRORS.replace("impact", "dimension").encode(), "line 1: lacks the column impact"),
        (ERRORS.strip().encode() + b",dimension\n", "line 1: the column 'dimension' appears twice"),
        (
            ERRORS.encode() + b"t,1,low,LC,maybe,true,true\n",
            "e.csv, line 2: relevant is 'maybe'; expected true or false",
        ),
        (ERRORS.encode() + b't,"1\n2",low,LC,1,1,1\n\n,3,low,LC,1,1,1\n', "e.csv, line 5: trace_id is empty"),
        (ERRORS.encode() + b"t,1,low,LC,1,1\n", "e.csv, line 2: fewer cells than the first line, which has 7"),
        (ERRORS.encode() + b"t,1,low,LC,1,1,1,1,1\n", "e.csv, line 2: more cells than the first line, which has 7"),
        (ERRORS.encode() + b"t,1,l\xf6w,LC,1,1,1\n", "e.csv, line 2: byte 0xf6 is not UTF-8"),
        ("\ufeffa,b\n".encode("utf-16"), "is UTF-16, not UTF-8"),
    ],
)
def test_a_fault_names_file_line_and_remedy(data: bytes, message: str) -> None:
    with pytest.raises(CsvError) as caught:
        read_input(data, "error_pairs", "e.csv")
    assert message in str(caught.value)


def test_a_bad_score_names_its_line() -> None:
    with pytest.raises(CsvError, match=r"s.csv, line 3: judge_score is 'two'; expected a number"):
        scores("a,LC,1,2\nb,LC,1,two\n")


def test_a_folder_is_read_by_names_and_says_what_it_left(tmp_path: Path) -> None:
    (tmp_path / "score_pairs.csv").write_text(SCORES + "a,LC,1,2\n", encoding="utf-8")
    (tmp_path / "Score-Pairs.csv").write_text("x\n", encoding="utf-8")
    read = read_folder(tmp_path)
    assert (list(read.frames), [(f.file, f.rows) for f in read.files], read.unused) == (
        ["score_pairs"], [("score_pairs.csv", 1)], ("Score-Pairs.csv",),
    )  # fmt: skip
    assert len(read.files[0].blake2b) == 32


def test_a_folder_without_an_input_says_the_names(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n", encoding="utf-8")
    with pytest.raises(CsvError, match=r"holds data.csv\); name them error_pairs.csv, score_pairs.csv"):
        read_folder(tmp_path)


def test_what_is_read_gives_the_same_table_as_frames() -> None:
    text = "".join(f"{i:03},e{i},high,LC,{i % 2},{i % 3 == 0},false\n" for i in range(30))
    plain = pd.DataFrame(
        [
            {"trace_id": f"{i:03}", "error_id": f"e{i}", "impact": "high", "dimension": "LC", "relevant": bool(i % 2),
             "caught": i % 3 == 0, "localized": False}
            for i in range(30)
        ]
    )  # fmt: skip
    made = [tables_from_frames(Inputs(error_pairs=frame, draws=50)) for frame in (errors(text), plain)]
    assert list(made[0]) == list(made[1])
    for name, frame in made[0].items():
        pd.testing.assert_frame_equal(frame, made[1][name])


def test_every_input_can_be_read_from_a_file_of_its_columns() -> None:
    for name, columns in COLUMNS.items():
        assert list(read_input((",".join(columns) + "\n").encode(), name, "x.csv").columns) == list(columns)


@settings(deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4))
def test_what_a_report_writes_is_read_back_whatever_the_text(texts: list[str]) -> None:
    frame = pd.DataFrame(dict.fromkeys(COLUMNS["score_pairs"], texts))
    frame[["reference_score", "judge_score"]] = 1.0
    again = read_input(input_csv(frame), "score_pairs", "score_pairs.csv")
    for name in frame.columns:
        assert list(again[name]) == list(frame[name])
