"""The invented harbour library that the sample agents search, and the invented code base of the repair sample."""

from __future__ import annotations

from smolagents import Tool

DOCUMENTS: dict[str, tuple[str, ...]] = {
    "Tollan Head Lighthouse: a short history": (
        "Tollan Head Lighthouse stands on the northern cape of Skarholm. The foundation stone was laid on 4 May 1871. "
        "Building stopped for two winters after the supply boat was lost in the sound. The lamp was first lit on "
        "12 October 1874. The first keeper stayed for fifteen years.",
        "Ines Vorrell took charge of the light in 1889 and kept the daily weather book that scholars still use. "
        "She retired on 30 June 1908 and moved to the village below the cape. The lamp was made electric in 1931.",
    ),
    "Lighthouses of the Skar coast": (
        "The coast has five lighthouses. Tollan Head is the northernmost and the second oldest; Grey Ness is the "
        "oldest and Low Skerry the youngest. All five show a white light.",
    ),
    "Sarn Valley Railway: stations and heights": (
        "The railway has six stations. Heights above the sea, in metres: Sarn Quay 6, Millfold 88, Upper Sarn 171, "
        "Beck Halt 240, Thornsett 355, Crown Pass 412. The line was opened in two stages, in 1898 and 1903.",
    ),
    "Walking guide to Crown Pass": (
        "Crown Pass station is a good place to start. The path to the cairn climbs 120 metres and takes an hour.",
    ),
    "Orvane Botanical Garden: the lily house": (
        "The lily house was built in 1921 and heated by the old mill boiler. It holds eleven giant lilies. The glass "
        "was replaced after the storm of 1954.",
        "The oldest giant lily grows in the middle basin. Its seeds reached the garden in the spring of 1926, packed "
        "in wet charcoal, and the first flower opened in August 1929.",
    ),
    "Marrow census of 1911: the parishes": (
        "Each row gives the parish, inhabited houses, households, persons. "
        "Northwick: 268 houses, 281 households, 1,240 persons. "
        "Eastwick: 412 houses, 437 households, 1,986 persons. "
        "Marrow Town: 1,103 houses, 1,390 households, 5,877 persons. "
        "A household is a group that shares one kitchen; several households may live in one house.",
    ),
    "Marrow census of 1901: the parishes": (
        "Each row gives the parish, inhabited houses, persons. Northwick: 251 houses, 1,102 persons. "
        "Eastwick: 371 houses, 1,702 persons. Households were not counted in this year.",
    ),
    "Pellworth Observatory: the instruments": (
        "The observatory owns a transit circle of 1859, a six-inch refractor of 1866 and a portrait lens camera of "
        "1880. The refractor was out of use from 1881 to 1884 while its dome was rebuilt.",
        "The great comet of 1882 was recorded on glass with the portrait lens camera on five mornings in September. "
        "The plates are in the cellar.",
    ),
    "Skar ferries: winter timetable": (
        "Boats leave Skar harbour for Ness at 07:10, 11:40 and 16:20, and for Orm at 09:05 and 15:30. The crossing to "
        "Ness takes 35 minutes, the crossing to Orm 80 minutes. On Sundays only the first boat runs.",
    ),
}  # fmt: skip

FILES: dict[str, str] = {
    "tidecalc/__init__.py": '"""Heights of the tide between high and low water."""\n',
    "tidecalc/height.py": (
        "def height_at(minute, low, high):\n"
        '    """Height in metres; low and high are (minute, metres)."""\n'
        "    share = (minute - low[0]) / (high[0] - low[0])\n"
        "    return low[1] + share * (high[1] - low[1])\n"
    ),
    "tests/test_height.py": (
        "from tidecalc.height import height_at\n\n\n"
        "def test_half_way():\n    assert height_at(180, (0, 1.0), (360, 5.0)) == 3.0\n\n\n"
        "def test_slack_water_is_the_mean():\n    assert height_at(60, (60, 2.0), (60, 3.0)) == 2.5\n"
    ),
}


class LibrarySearch(Tool):
    name = "library_search"
    description = "Search the titles and texts of the harbour library. Returns the titles that hold every word."
    inputs = {"query": {"type": "string", "description": "Words to look for."}}  # noqa: RUF012
    output_type = "string"

    def forward(self, query: str) -> str:
        words = query.lower().split()
        hits = [
            title for title, pages in DOCUMENTS.items() if all(w in f"{title} {' '.join(pages)}".lower() for w in words)
        ]
        if not hits:
            return f"No document holds all of: {query}"
        return "\n".join(f"- {title} ({len(DOCUMENTS[title])} pages)" for title in hits)


class OpenDocument(Tool):
    name = "open_document"
    description = "Open a document of the library at a page and return the text of that page."
    inputs = {  # noqa: RUF012
        "title": {"type": "string", "description": "The exact title."},
        "page": {"type": "integer", "description": "Page number, from 1.", "nullable": True},
    }
    output_type = "string"

    def __init__(self) -> None:
        super().__init__()
        self.opened: str | None = None

    def forward(self, title: str, page: int | None = 1) -> str:
        number = 1 if page is None else page
        if title not in DOCUMENTS:
            raise LookupError(f"The library has no document with the title {title!r}.")
        pages = DOCUMENTS[title]
        if not 1 <= number <= len(pages):
            raise LookupError(f"{title!r} has {len(pages)} pages, not {number}.")
        self.opened = title
        return f"{title}, page {number} of {len(pages)}\n\n{pages[number - 1]}"


class FindInDocument(Tool):
    name = "find_in_document"
    description = "Find the sentences of the open document that hold a word."
    inputs = {"text": {"type": "string", "description": "The word to find."}}  # noqa: RUF012
    output_type = "string"

    def __init__(self, reader: OpenDocument) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, text: str) -> str:
        if self.reader.opened is None:
            raise RuntimeError("No document is open. Open one with open_document first.")
        whole = " ".join(DOCUMENTS[self.reader.opened])
        hits = [s.strip() for s in whole.split(". ") if text.lower() in s.lower()]
        return "\n".join(hits) if hits else f"{text!r} does not stand in {self.reader.opened!r}."


class ConvertLength(Tool):
    name = "convert_length"
    description = "Convert a length between metres and feet."
    inputs = {  # noqa: RUF012
        "value": {"type": "number", "description": "The length."},
        "to": {"type": "string", "description": "feet or metres."},
    }
    output_type = "number"

    def forward(self, value: float, to: str) -> float:
        if to == "feet":
            return round(value / 0.3048, 1)
        if to == "metres":
            return round(value * 0.3048, 1)
        raise ValueError(f"Cannot convert to {to!r}; give feet or metres.")


class CodeBase:
    """The code base of the repair sample, as plain functions that the agent's Python may call."""

    def __init__(self) -> None:
        self.files = dict(FILES)

    def read_file(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(f"no file {path!r} in the code base")
        return self.files[path]

    def replace_in_file(self, path: str, old: str, new: str) -> str:
        count = self.files.get(path, "").count(old)
        if count != 1:
            raise ValueError(f"the text stands {count} times in {path!r}, not once")
        self.files[path] = self.files[path].replace(old, new)
        return f"{path} changed"

    def run_tests(self) -> str:
        namespace: dict[str, object] = {}
        exec(self.files["tidecalc/height.py"], namespace)
        exec(self.files["tests/test_height.py"].split("\n\n\n", 1)[1], namespace)
        lines = [self._run(name, namespace) for name in namespace if name.startswith("test_")]
        failed = sum("FAILED" in line for line in lines)
        return "\n".join([*lines, f"{len(lines) - failed} passed, {failed} failed"])

    @staticmethod
    def _run(name: str, namespace: dict[str, object]) -> str:
        try:
            namespace[name]()  # type: ignore[operator]
        except Exception as error:
            return f"{name} FAILED: {type(error).__name__} {error}".rstrip()
        return f"{name} PASSED"
