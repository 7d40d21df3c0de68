"""What is asked in each sample run, what the scripted models say, and what the true answer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripted import Call, Reply


@dataclass(frozen=True, kw_only=True)
class Research:
    """A question for the manager, its team member `search_agent`, and the rewording of the answer."""

    key: str
    question: str
    true_answer: str
    level: str
    manager: Sequence[Reply]
    search: Sequence[Reply]
    reworded: str
    manager_interval: int = 8
    search_interval: int | None = None
    search_steps: int = 8
    notes: Mapping[str, str] = field(default_factory=dict)


def code(thought: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"Thought: {thought}\n<code>\n{body}\n</code>"


def ask(task: str, thought: str) -> str:
    return code(thought, f"report = search_agent(task={task!r})", "print(report)")


LIGHTHOUSE = Research(
    key="lighthouse",
    question=(
        "How many years after the lamp of Tollan Head Lighthouse was first lit did its keeper Ines Vorrell retire? "
        "Answer with the number only."
    ),
    true_answer="34",
    level="2",
    manager=[
        "The question names Tollan Head Lighthouse and its keeper Ines Vorrell. I must look up the year in which the "
        "lamp was first lit and the year in which she retired.\n\n## Plan\n"
        "1. Ask search_agent for the year in which the lamp was first lit.\n"
        "2. Ask search_agent for the year in which Ines Vorrell retired.\n"
        "3. Check both years against a second document.\n"
        "4. Subtract and give the number.\n<end_plan>",
        ask(
            "In which year was the lamp of Tollan Head Lighthouse first lit, and in which year did its keeper "
            "Ines Vorrell retire? Name the document for each year.",
            "I ask for both years in one request.",
        ),
        code(
            "Both years are confirmed by two documents, so I only have to subtract.",
            "years = 1908 - 1871",
            "print(years)",
        ),
        code("The difference is 37 years.", 'final_answer("37")'),
    ],
    search=[
        Call("library_search", {"query": "Tollan Head Lighthouse"}),
        Call("open_document", {"title": "Tollan Head Lighthouse: a short history", "page": 1}),
        Call("library_search", {"query": "Tollan Head Lighthouse"}),
        Call("open_document", {"title": "Harbour register of keepers"}),
        Call("open_document", {"title": "Tollan Head Lighthouse: a short history", "page": 2}),
        Call(
            "final_answer",
            {
                "answer": "The lamp was first lit in 1871. Ines Vorrell retired on 30 June 1908. Source: 'Tollan Head "
                "Lighthouse: a short history'. I compared both years with the harbour register of "
                "keepers, and they agree."
            },
        ),
    ],
    reworded="FINAL ANSWER: 37",
)

RAILWAY = Research(
    key="railway",
    question=(
        "Which station of the Sarn Valley Railway lies highest above the sea, and how many feet is that, "
        "to the nearest foot?"
    ),
    true_answer="Crown Pass, 1,352 feet",
    level="1",
    manager=[
        "I must look up the heights of the stations. The conversion to feet can be calculated with a tool.\n\n## Plan\n"
        "1. Ask search_agent for the heights of all stations of the railway.\n"
        "2. Convert the greatest height to feet with convert_length.\n"
        "3. Give the station and the height.\n<end_plan>",
        ask(
            "Find the height of every station of the Sarn Valley Railway, with the unit and the document.",
            "First I need the heights.",
        ),
        code(
            "Crown Pass is the highest with 412 metres. I convert this to feet.",
            'feet = convert_length(value=412, to="feet")',
            "print(feet)",
        ),
        code("1351.7 feet is 1,352 feet to the nearest foot.", 'final_answer("Crown Pass, 1,352 feet")'),
    ],
    search=[
        Call("library_search", {"query": "railway stations heights"}),
        Call("open_document", {"title": "Sarn Valley Railway: stations and heights", "page": 1}),
        Call("find_in_document", {"text": "Crown Pass"}),
        Call(
            "final_answer",
            {
                "answer": "In metres: Sarn Quay 6, Millfold 88, Upper Sarn 171, Beck Halt 240, Thornsett 355, "
                "Crown Pass 412. Source: 'Sarn Valley Railway: stations and heights', page 1."
            },
        ),
    ],
    reworded="FINAL ANSWER: Crown Pass, 1,352 feet",
)

GARDEN = Research(
    key="garden",
    question=(
        "In which year did the seeds of the oldest giant lily reach the Orvane Botanical Garden? "
        "Answer with the year only."
    ),
    true_answer="1926",
    level="1",
    manager=[
        "The garden is known; the year must be looked up.\n\n## Plan\n"
        "1. Ask search_agent for the year in which the seeds of the oldest giant lily arrived.\n"
        "2. Give the year.\n<end_plan>",
        ask(
            "In which year did the seeds of the oldest giant lily reach the Orvane Botanical Garden? "
            "Quote the sentence that says so.",
            "The search agent can find this.",
        ),
        code("The quoted sentence gives the year.", 'final_answer("1926")'),
    ],
    search=[
        "I know the garden and the plant, not the year.\n\n## Plan\n"
        "1. Search for the lily house.\n2. Open the document that is found.\n"
        "3. Find the sentence about the seeds.\n4. Report it.\n<end_plan>",
        Call("library_search", {"query": "giant lily seeds"}),
        Call("find_in_document", {"text": "seeds"}),
        Call(
            "open_document",
            {"title": "Orvane Botanical Garden: the lily house", "page": "two"},
            "No document is open yet, so the search for the word failed. I open the lily house first.",
        ),
        Call(
            "open_document",
            {"title": "Orvane Botanical Garden: the lily house", "page": 2},
            "The page must be a number. I try again with 2.",
        ),
        Call("find_in_document", {"text": "seeds"}),
        Call(
            "final_answer",
            {
                "answer": "1926. 'Its seeds reached the garden in the spring of 1926, packed in wet charcoal', from "
                "'Orvane Botanical Garden: the lily house', page 2."
            },
        ),
    ],
    reworded="FINAL ANSWER: 1926",
    search_interval=8,
)

_CENSUS_PLAN = (
    "The parish and the year are given; the number of households must be looked up.\n\n## Plan\n"
    "1. Ask search_agent for the census estimates of Eastwick.\n"
    "2. Take the number of households from its report.\n"
    "3. Give the number.\n<end_plan>"
)
CENSUS = Research(
    key="census",
    question=(
        "According to the Marrow census of 1911, how many households were there in the parish of Eastwick? "
        "Answer with the number only."
    ),
    true_answer="437",
    level="2",
    manager=[
        _CENSUS_PLAN,
        ask("Find the census estimates of Eastwick.", "I start with the first step of the plan."),
        ask(
            "Find the census estimates of Eastwick.",
            "These are the estimates of 1901. I need those of 1911, so I ask again.",
        ),
        _CENSUS_PLAN,
        ask(
            "Open 'Marrow census of 1911: the parishes' and give the row of Eastwick.",
            "I name the document of 1911 this time.",
        ),
        code(
            "The row of Eastwick begins with 412, so there were 412 households.",
            'final_answer("The parish of Eastwick had 412 households in 1911.")',
        ),
    ],
    search=[
        Call("library_search", {"query": "Marrow census Eastwick"}),
        Call("open_document", {"title": "Marrow census of 1901: the parishes"}),
        Call(
            "final_answer",
            {
                "answer": "Eastwick in the census of 1901: 371 houses and 1,702 persons. Households were not counted "
                "in that year. The library also holds the census of 1911, which I did not open."
            },
        ),
        Call("open_document", {"title": "Marrow census of 1901: the parishes"}),
        Call(
            "final_answer",
            {"answer": "Eastwick in the census of 1901: 371 houses and 1,702 persons. Households were not counted."},
        ),
        Call("open_document", {"title": "Marrow census of 1911: the parishes"}),
        Call(
            "final_answer",
            {
                "answer": "Eastwick: 412 houses, 437 households, 1,986 persons. Source: 'Marrow census of 1911: "
                "the parishes', page 1."
            },
        ),
    ],
    reworded="FINAL ANSWER: 412",
    manager_interval=2,
)

OBSERVATORY = Research(
    key="observatory",
    question="With which instrument did Pellworth Observatory record the great comet of 1882?",
    true_answer="the portrait lens camera",
    level="1",
    manager=[
        "The observatory and the comet are given; the instrument must be looked up.\n\n## Plan\n"
        "1. Ask search_agent which instruments the observatory had in 1882.\n"
        "2. Ask search_agent which of them recorded the comet, with the sentence that says so.\n"
        "3. Give the instrument.",
        ask(
            "Which instruments did Pellworth Observatory have in 1882, and which of them recorded the great comet? "
            "Quote the sentence that says so.",
            "One request can answer both steps.",
        ),
        code(
            "The search agent is certain and the document says so. No further check is needed.",
            'final_answer("the six-inch refractor")',
        ),
    ],
    search=[
        Call("library_search", {"query": "comet 1882 telescope"}),
        Call("library_search", {"query": "Pellworth Observatory"}),
        Call("open_document", {"title": "Pellworth Observatory: the instruments", "page": 1}),
        Call("find_in_document", {"text": "telescope"}),
        Call("find_in_document", {"text": "telescope"}),
        Call("find_in_document", {"text": "telescope"}),
        "The great comet of 1882 was recorded with the six-inch refractor, which was the main telescope of Pellworth "
        "Observatory in 1882. The document says: 'The comet was followed with the refractor on five mornings.'",
    ],
    reworded="FINAL ANSWER: the six-inch refractor",
    search_steps=6,
)

RESEARCH = (LIGHTHOUSE, RAILWAY, GARDEN, CENSUS, OBSERVATORY)

ISSUE = (
    "height_at raises ZeroDivisionError at slack water, when low and high water are given the same minute. "
    "It should return the mean of the two heights. tests/test_height.py::test_slack_water_is_the_mean shows it."
)
REPAIR_TASK = (
    f"You are given a code base and an issue to resolve.\n\n<issue>\n{ISSUE}\n</issue>\n\n"
    "Your Python can call read_file(path), replace_in_file(path, old, new) and run_tests(). Change only what the issue "
    "needs, run the tests, and end with final_answer(patch), a patch in unified diff form."
)
REPAIR_GOLD = (
    "--- a/tidecalc/height.py\n+++ b/tidecalc/height.py\n@@ -1,4 +1,6 @@\n def height_at(minute, low, high):\n"
    '     """Height in metres; low and high are (minute, metres)."""\n+    if high[0] == low[0]:\n'
    "+        return (low[1] + high[1]) / 2\n     share = (minute - low[0]) / (high[0] - low[0])\n"
    "     return low[1] + share * (high[1] - low[1])\n"
)
_READ = 'print(read_file("tidecalc/height.py"))'
_TEST = "print(run_tests())"
_PATCH = (
    "--- a/tidecalc/height.py\\n+++ b/tidecalc/height.py\\n@@ -2,2 +2,4 @@\\n"
    "+    if high[0] == low[0]:\\n+        return low[1]\\n"
)
REPAIR: Sequence[Reply] = [
    code("I look at the module first.", 'print(read_file("tidecalc/heights.py"))'),
    code("The name was wrong: the issue speaks of height_at, so I try height.py.", _READ),
    code("Now the tests.", 'print(read_file("tests/test_height.py"))'),
    code("I run the tests to see the failure.", _TEST),
    code("One test fails with ZeroDivisionError, as the issue says. I look at the module.", _READ),
    "Thought: The division is by zero when both minutes are equal. I will guard the division before it happens.",
    code(
        "I add the guard.",
        'old = "    share = (minute - low) / (high - low)"',
        'new = "    if high[0] == low[0]:\\n        return low[1]\\n" + old',
        'print(replace_in_file("tidecalc/height.py", old, new))',
    ),
    code("The old text was not copied exactly. I read the module to copy it.", _READ),
    code(
        "Now with the exact line.",
        'line = "    share = (minute - low[0]) / (high[0] - low[0])"',
        'guard = "    if high[0] == low[0]:\\n        return low[1]\\n"',
        'print(replace_in_file("tidecalc/height.py", line, guard + line))',
    ),
    code("I run the tests.", _TEST),
    code("The failure that is left is an old one and has nothing to do with the issue.", _READ),
    code("I run the tests again to be sure.", _TEST),
    code("I look at the package file.", 'print(read_file("tidecalc/__init__.py"))'),
    code(
        "The text of the package could be friendlier, so I improve it too.",
        'print(replace_in_file("tidecalc/__init__.py", "Heights of the tide", "Reliable heights of the tide"))',
    ),
    code("I read the module a last time.", _READ),
    code(
        "The guard is in place and all tests pass, so the issue is resolved.",
        f'final_answer("{_PATCH}")',
    ),
]


@dataclass(frozen=True, kw_only=True)
class Ferry:
    """A short run of one tool-calling agent, for the OpenTelemetry forms."""

    key: str
    question: str
    replies: Sequence[Reply]


_FERRY = "Skar ferries: winter timetable"
_LOOK = (Call("library_search", {"query": "ferries timetable"}), Call("open_document", {"title": _FERRY}))
FERRIES = (
    Ferry(
        key="ferry-last-boat",
        question="When does the last boat to Ness leave Skar harbour on a weekday in winter?",
        replies=[*_LOOK, Call("final_answer", {"answer": "At 16:20."})],
    ),
    Ferry(
        key="ferry-sunday",
        question="How many boats leave Skar harbour for Orm on a winter Sunday?",
        replies=[*_LOOK, Call("final_answer", {"answer": "Two, at 09:05 and 15:30."})],
    ),
    Ferry(
        key="ferry-crossing",
        question="How long is the crossing from Skar harbour to Orm?",
        replies=[
            Call("open_document", {"title": "Skar ferries"}),
            *_LOOK,
            Call("final_answer", {"answer": "80 minutes."}),
        ],
    ),
    Ferry(
        key="ferry-first-boat",
        question="When does the first boat to Orm leave Skar harbour in winter?",
        replies=[*_LOOK, Call("final_answer", {"answer": "At 09:05."})],
    ),
    Ferry(
        key="ferry-arrival",
        question="When does the 11:40 boat to Ness arrive?",
        replies=[*_LOOK, Call("final_answer", {"answer": "At 12:15."})],
    ),
    Ferry(
        key="ferry-summer",
        question="When does the last boat to Ness leave Skar harbour in summer?",
        replies=[*_LOOK, Call("final_answer", {"answer": "At 16:20."})],
    ),
)
