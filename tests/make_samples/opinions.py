"""What the annotators ada and ben, and the recorded judges, say of the samples. Spans by place (seq)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GUIDELINE = "tracejury-guide-1"


@dataclass(frozen=True)
class Quote:
    """A text that stands in the span at `seq`; the field is looked up."""

    seq: int
    text: str


@dataclass(frozen=True)
class Said:
    """One error label. `dimensions` are two-letter keys divided by a space; `quotes` is the evidence."""

    spans: Sequence[int]
    dimensions: str
    impact: str
    category: str | None
    description: str
    quotes: Sequence[Quote]


@dataclass(frozen=True)
class Opinion:
    """All that one annotator says of one trace; a score of None is "not applicable"."""

    errors: Sequence[Said]
    scores: Mapping[str, int | None]
    notes: Mapping[str, str]


def scores(lc: int, ee: int, pq: int | None, pa: int | None, gf: int, ts: int, tc: int) -> dict[str, int | None]:
    return {"LC": lc, "EE": ee, "PQ": pq, "PA": pa, "GF": gf, "TS": ts, "TC": tc}


_NO_PLAN = {"PQ": "There is no plan in the trace.", "PA": "There is no plan in the trace."}

ADA: Mapping[str, Opinion] = {
    "lighthouse": Opinion(
        [
            Said(
                [16],
                "EE",
                "low",
                "Resource Abuse",
                "The same search is made a second time although its result is already known.",
                [Quote(16, '{"query": "Tollan Head Lighthouse"}')],
            ),
            Said(
                [19],
                "TC",
                "low",
                "Resource Not Found",
                "Opens a document that no search has returned. The title is invented.",
                [
                    Quote(19, '{"title": "Harbour register of keepers"}'),
                    Quote(20, "The library has no document with the title 'Harbour register of keepers'."),
                ],
            ),
            Said(
                [25],
                "LC",
                "high",
                "Tool-related",
                "Claims a comparison with the register of keepers. Opening that register had failed, and the failure "
                "is not mentioned.",
                [Quote(25, "I compared both years with the harbour register of keepers, and they agree.")],
            ),
            Said(
                [25],
                "TC",
                "high",
                "Tool Output Misinterpretation",
                "Reads the year of the foundation stone as the year of the first light, which the page gives as 1874.",
                [
                    Quote(25, "The lamp was first lit in 1871."),
                    Quote(14, "The lamp was first lit on 12 October 1874."),
                ],
            ),
            Said(
                [28],
                "PA",
                "medium",
                "Task Orchestration",
                "Step 3 of the plan, checking the years against a second document, is skipped and said to be done.",
                [Quote(28, "Both years are confirmed by two documents"), Quote(5, "3. Check both years against a")],
            ),
        ],
        scores(0, 2, 3, 1, 0, 3, 1),
        {"GF": "37 instead of 34: the trace itself gives 1874."},
    ),
    "railway": Opinion(
        [
            Said(
                [16],
                "EE",
                "low",
                "Resource Abuse",
                "The height of Crown Pass stands in the page just opened; the search for it is not needed.",
                [Quote(16, '{"text": "Crown Pass"}')],
            ),
        ],
        scores(3, 2, 3, 3, 3, 3, 3),
        {},
    ),
    "garden": Opinion(
        [
            Said(
                [14],
                "TC PA",
                "low",
                "Tool Selection Errors",
                "Searches for a word before a document is open. The plan has opening as the step before.",
                [Quote(15, "No document is open. Open one with open_document first.")],
            ),
            Said(
                [17],
                "TC",
                "low",
                "Formatting Errors",
                "The page number is given as a word; the tool asks for an integer.",
                [Quote(17, '"page": "two"'), Quote(16, "Argument page has type 'string' but should be 'integer'")],
            ),
        ],
        scores(3, 2, 3, 2, 3, 3, 1),
        {"TC": "Two failed calls of five, both noticed and put right."},
    ),
    "census": Opinion(
        [
            Said(
                [7],
                "TC",
                "medium",
                "Context Handling Failures",
                "The task handed to the search agent leaves out the year 1911 and the word households.",
                [Quote(7, "Find the census estimates of Eastwick.")],
            ),
            Said(
                [19],
                "EE",
                "medium",
                "Resource Abuse",
                "Sees that the year is wrong and yet sends the same request, word for word.",
                [
                    Quote(19, "I need those of 1911, so I ask again."),
                    Quote(19, "report = search_agent(task='Find the census estimates of Eastwick.')"),
                ],
            ),
            Said(
                [27],
                "PQ",
                "medium",
                "Task Orchestration",
                "The new plan repeats the first one although it has failed twice; it does not even name the year.",
                [Quote(27, "1. Ask search_agent for the census estimates of Eastwick.")],
            ),
            Said(
                [38],
                "TC",
                "high",
                "Tool Output Misinterpretation",
                "Takes the number of houses for the number of households.",
                [
                    Quote(38, "The row of Eastwick begins with 412, so there were 412 households."),
                    Quote(35, "412 houses, 437 households"),
                ],
            ),
            Said(
                [38],
                "GF",
                "low",
                "Instruction Non-compliance",
                "The question asks for the number only; the answer is a sentence.",
                [Quote(38, "The parish of Eastwick had 412 households in 1911.")],
            ),
        ],
        scores(2, 1, 1, 2, 0, 3, 1),
        {},
    ),
    "observatory": Opinion(
        [
            Said(
                [19],
                "TC",
                "medium",
                "Poor Information Retrieval",
                "The document has two pages and only the first is opened; the second names the instrument.",
                [Quote(17, "page 1 of 2")],
            ),
            Said(
                [25],
                "EE",
                "medium",
                "Resource Abuse",
                "The same word is looked for three times in the same document, until no steps are left.",
                [Quote(25, '{"text": "telescope"}'), Quote(20, "'telescope' does not stand in")],
            ),
            Said(
                [27],
                "LC",
                "high",
                "Language-only",
                "Invents the finding and a quotation. The page opened says that the refractor was out of use in 1882.",
                [
                    Quote(27, "'The comet was followed with the refractor on five mornings.'"),
                    Quote(17, "The refractor was out of use from 1881 to 1884"),
                ],
            ),
            Said(
                [29],
                "GF",
                "high",
                "Goal Deviation",
                "The answer names an instrument that the trace itself rules out.",
                [Quote(29, 'final_answer("the six-inch refractor")')],
            ),
        ],
        scores(0, 1, 3, 2, 0, 3, 1),
        {},
    ),
    "tidecalc": Opinion(
        [
            Said(
                [4],
                "TC",
                "low",
                "Resource Not Found",
                "Reads a file whose name was guessed.",
                [Quote(3, "no file 'tidecalc/heights.py' in the code base")],
            ),
            Said(
                [14],
                "LC",
                "low",
                "Formatting Errors",
                "The reply holds no code, which the system prompt asks for in every step.",
                [Quote(13, "the regex pattern <code>(.*?)</code> was not found in it")],
            ),
            Said(
                [24],
                "LC TC",
                "high",
                "Tool Output Misinterpretation",
                "Says that the failing test is an old matter. It is the very test that the issue names.",
                [
                    Quote(24, "The failure that is left is an old one and has nothing to do with the issue."),
                    Quote(21, "test_slack_water_is_the_mean FAILED: AssertionError"),
                ],
            ),
            Said(
                [26],
                "EE",
                "low",
                "Resource Abuse",
                "Runs the tests again although nothing has changed.",
                [Quote(26, "I run the tests again to be sure.")],
            ),
            Said(
                [30],
                "GF",
                "medium",
                "Instruction Non-compliance",
                "Rewords the package's text, though only what the issue needs was to be changed.",
                [Quote(30, "The text of the package could be friendlier, so I improve it too.")],
            ),
            Said(
                [34],
                "LC GF",
                "high",
                "Tool-related",
                "Claims that all tests pass. The last run has one failure, and the patch does not return the mean.",
                [Quote(34, "all tests pass, so the issue is resolved"), Quote(25, "1 passed, 1 failed")],
            ),
        ],
        scores(0, 1, None, None, 0, 3, 1),
        _NO_PLAN,
    ),
    "harbour_desk_pair": Opinion(
        [
            Said(
                [10],
                "TC",
                "low",
                "Resource Not Found",
                "Opens a mail by an id that was guessed; the inbox could have been listed first.",
                [Quote(10, '"email_id": "timetable.eml"'), Quote(11, "Email with id timetable.eml does not exist")],
            ),
            Said(
                [16],
                "TC",
                "high",
                "Tool Output Misinterpretation",
                "Enters 07:40 although the mail names 07:10 as the first boat.",
                [Quote(16, '"start_datetime": "2026-03-04 07:40:00"'), Quote(15, "Boats to Ness leave at 07:10")],
            ),
            Said(
                [18],
                "GF",
                "high",
                "Goal Deviation",
                "The user is told the wrong times and will miss the boat.",
                [Quote(18, "The first boat to Ness leaves at 07:40 and arrives at 08:15.")],
            ),
        ],
        scores(2, 2, None, None, 0, 3, 1),
        _NO_PLAN,
    ),
}

BEN: Mapping[str, Opinion] = {
    "lighthouse": Opinion(
        [
            Said(
                [17],
                "EE",
                "low",
                "Resource Abuse",
                "Second run of the same search.",
                [Quote(17, "- Lighthouses of the Skar coast (1 pages)")],
            ),
            Said(
                [22],
                "TC LC",
                "medium",
                "Context Handling Failures",
                "Goes on with page 2 as if the failed opening of the register had not happened.",
                [Quote(20, "The library has no document with the title 'Harbour register of keepers'.")],
            ),
            Said(
                [25],
                "LC",
                "high",
                "Tool-related",
                "The register was never seen, so nothing could be compared with it.",
                [Quote(25, "I compared both years with the harbour register of keepers")],
            ),
            Said(
                [25],
                "TC",
                "high",
                "Tool Output Misinterpretation",
                "1871 is the foundation stone, not the lamp.",
                [Quote(25, "The lamp was first lit in 1871."), Quote(14, "12 October 1874")],
            ),
            Said(
                [30],
                "GF",
                "high",
                "Goal Deviation",
                "37 is refuted by the page in the trace: 1908 less 1874 is 34.",
                [Quote(30, 'final_answer("37")')],
            ),
        ],
        scores(0, 2, 3, 2, 0, 3, 1),
        {"PA": "The second document was not looked at, but one could argue that the register was meant to be it."},
    ),
    "railway": Opinion([], scores(3, 3, 3, 3, 3, 3, 3), {}),
    "garden": Opinion(
        [
            Said(
                [14],
                "TC",
                "low",
                "Tool Selection Errors",
                "No document was open, so the call could not work.",
                [Quote(15, "No document is open.")],
            ),
            Said(
                [17],
                "TC",
                "low",
                "Formatting Errors",
                "'two' is not a number.",
                [Quote(17, '"page": "two"')],
            ),
        ],
        scores(3, 2, 3, 3, 3, 3, 2),
        {},
    ),
    "census": Opinion(
        [
            Said(
                [7],
                "TC",
                "medium",
                "Context Handling Failures",
                "The year is missing in the request.",
                [Quote(7, "search_agent(task='Find the census estimates of Eastwick.')")],
            ),
            Said(
                [13],
                "TC",
                "low",
                "Poor Information Retrieval",
                "Opens only the older of two documents and does not ask which year is meant.",
                [Quote(11, "- Marrow census of 1911: the parishes (1 pages)")],
            ),
            Said(
                [19, 22],
                "EE",
                "medium",
                "Resource Abuse",
                "Same request and same document again; the outcome cannot differ.",
                [Quote(19, "so I ask again"), Quote(22, '{"title": "Marrow census of 1901: the parishes"}')],
            ),
            Said(
                [27],
                "PQ",
                "high",
                "Task Orchestration",
                "A replan that changes nothing.",
                [Quote(27, "1. Ask search_agent for the census estimates of Eastwick.")],
            ),
            Said(
                [38],
                "TC",
                "high",
                "Tool Output Misinterpretation",
                "412 are houses. The report says 437 households in so many words.",
                [Quote(38, "so there were 412 households"), Quote(35, "437 households")],
            ),
        ],
        scores(2, 1, 1, 3, 0, 3, 0),
        {},
    ),
    "observatory": Opinion(
        [
            Said(
                [5],
                "LC",
                "low",
                "Instruction Non-compliance",
                "The end mark <end_plan> that the prompt asks for is missing.",
                [Quote(5, "3. Give the instrument.")],
            ),
            Said(
                [22],
                "EE",
                "medium",
                "Resource Abuse",
                "Repeats a search that had just found nothing.",
                [Quote(22, '{"text": "telescope"}')],
            ),
            Said(
                [27],
                "LC",
                "high",
                "Language-only",
                "No document that was opened speaks of the comet; the quoted sentence stands nowhere.",
                [Quote(27, "The great comet of 1882 was recorded with the six-inch refractor")],
            ),
            Said(
                [29],
                "LC",
                "medium",
                "Poor Information Retrieval",
                "Calls the report certain and forgoes a check, though the agent had run out of steps.",
                [Quote(29, "No further check is needed.")],
            ),
        ],
        scores(0, 1, 2, 3, 0, 3, 1),
        {},
    ),
    "tidecalc": Opinion(
        [
            Said(
                [4],
                "TC",
                "low",
                "Resource Not Found",
                "The path does not exist.",
                [Quote(4, 'read_file("tidecalc/heights.py")')],
            ),
            Said(
                [14],
                "LC",
                "low",
                "Formatting Errors",
                "A step without code.",
                [Quote(14, "I will guard the division before it happens.")],
            ),
            Said(
                [20],
                "GF",
                "high",
                "Goal Deviation",
                "The guard returns the low water; the issue asks for the mean.",
                [Quote(20, "return low[1]")],
            ),
            Said(
                [24],
                "LC",
                "high",
                "Tool Output Misinterpretation",
                "The failure is exactly the one of the issue.",
                [Quote(24, "has nothing to do with the issue")],
            ),
            Said(
                [32],
                "EE",
                "low",
                "Resource Abuse",
                "Reads the same file for the fifth time.",
                [Quote(32, "I read the module a last time.")],
            ),
            Said(
                [34],
                "LC",
                "high",
                "Language-only",
                "Not all tests pass.",
                [Quote(34, "all tests pass")],
            ),
        ],
        scores(0, 1, None, None, 1, 3, 2),
        _NO_PLAN,
    ),
    "harbour_desk_pair": Opinion(
        [
            Said(
                [10],
                "TC",
                "low",
                "Resource Not Found",
                "The mail has no such id.",
                [Quote(10, '"email_id": "timetable.eml"')],
            ),
            Said(
                [16],
                "TC GF",
                "high",
                "Tool Output Misinterpretation",
                "Wrong time in the calendar: 07:40 for 07:10.",
                [Quote(16, "2026-03-04 07:40:00")],
            ),
        ],
        scores(3, 2, None, None, 0, 3, 1),
        _NO_PLAN,
    ),
}

TRAIL_SCORES: Mapping[str, tuple[float, float, float, float]] = {
    "lighthouse": (2, 5, 3, 3),
    "railway": (5, 5, 5, 4),
    "garden": (4, 5, 5, 4),
    "census": (2, 5, 2, 2),
    "observatory": (1, 5, 3, 2),
    "tidecalc": (1, 5, 2, 2.5),
}
"""Reliability, security, instruction adherence, plan optimality, as TRAIL scores them from 1 to 5."""

TRAIL_LABELS: Mapping[str, Sequence[int]] = {
    "lighthouse": (0, 2, 3),
    "railway": (),
    "garden": (0, 1),
    "census": (0, 1, 2, 3),
    "observatory": (1, 2),
    "tidecalc": (0, 1, 2, 5),
}
"""Which of ada's labels ben saw too: these make the TRAIL-form annotation files."""


@dataclass(frozen=True)
class Guess:
    """One error in a recorded judge output; `location` is a seq, or text that is no span id."""

    category: str
    location: int | str
    evidence: str
    description: str
    impact: str


CAREFUL: Mapping[str, Sequence[Guess]] = {
    "lighthouse": [
        Guess(
            "Tool-related",
            25,
            "I compared both years with the harbour register of keepers, and they agree.",
            "The register was never opened, so the comparison is made up.",
            "HIGH",
        ),
        Guess(
            "Tool Output Misinterpretation",
            25,
            "The lamp was first lit in 1871.",
            "1871 is the year of the foundation stone.",
            "HIGH",
        ),
        Guess(
            "Resource Abuse",
            16,
            '{"query": "Tollan Head Lighthouse"}',
            "The same search was made before.",
            "LOW",
        ),
        Guess(
            "Goal Deviation",
            31,
            "37",
            "The final answer does not follow from the page that was read.",
            "HIGH",
        ),
    ],
    "railway": [],
    "garden": [
        Guess(
            "Tool Selection Errors",
            15,
            "No document is open. Open one with open_document first.",
            "The word is looked for before any document is open.",
            "LOW",
        ),
        Guess("Formatting Errors", 17, '"page": "two"', "The page must be an integer.", "MEDIUM"),
    ],
    "census": [
        Guess(
            "Tool Output Misinterpretation",
            38,
            "The row of Eastwick begins with 412, so there were 412 households.",
            "412 is the number of houses.",
            "HIGH",
        ),
        Guess(
            "Resource Abuse",
            19,
            "search_agent(task='Find the census estimates of Eastwick.')",
            "The request is repeated without a change.",
            "MEDIUM",
        ),
        Guess(
            "Incorrect Problem Identification",
            27,
            "Ask search_agent for the census estimates of Eastwick.",
            "The replan is the old plan.",
            "MEDIUM",
        ),
    ],
    "observatory": [
        Guess(
            "Language-only",
            27,
            "The comet was followed with the refractor on five mornings.",
            "This sentence stands in no document of the trace.",
            "HIGH",
        ),
        Guess("Resource Abuse", 25, '{"text": "telescope"}', "Three identical searches.", "MEDIUM"),
        Guess(
            "Instruction Non-compliance",
            "the planning step",
            "Give the instrument.",
            "The end mark of the plan is missing.",
            "LOW",
        ),
    ],
}
"""A judge that mostly sees what the people see. It names one location that is no span id."""

HASTY: Mapping[str, Sequence[Guess]] = {
    "lighthouse": [
        Guess(
            "Resource Not Found",
            20,
            "The library has no document with the title 'Harbour register of keepers'.",
            "A document could not be opened.",
            "MEDIUM",
        ),
        Guess("Timeout Issues", 11, "library_search", "The search may have been slow.", "LOW"),
    ],
    "railway": [
        Guess("Language-only", 25, "1351.7 feet is 1,352 feet", "The height was rounded without need.", "MEDIUM"),
    ],
    "garden": [
        Guess("Formatting Errors", 17, '"page": "two"', "Wrong type of an argument.", "LOW"),
    ],
    "census": [
        Guess(
            "Instruction Non-compliance",
            38,
            "The parish of Eastwick had 412 households in 1911.",
            "The answer is not a number only.",
            "LOW",
        ),
    ],
    "tidecalc": [
        Guess("Tool-related", 34, "all tests pass", "One test still fails.", "HIGH"),
        Guess("Resource Not Found", 4, "tidecalc/heights.py", "The file does not exist.", "LOW"),
    ],
}
"""A judge that looks at error messages and little else."""
