"""Make the frozen table of word weights of the matching rule from the texts that ship with Tracejury.

`python -m tests.make_samples.word_weights` writes `judging/matching/word_weights.json`. Another table makes other
proposals: give it another version in `judging/matching/rule.py` when you make one.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer

ROOT = Path(__file__).parents[2]
LEAST = 2  # documents that a word stands in; rarer words weigh like unknown ones


def documents() -> Iterator[str]:
    """Give each paragraph of rubrics and help pages, and each text of the sample labels and answers."""
    for file in sorted([*ROOT.glob("judging/judges/rubrics/*.toml"), *ROOT.glob("data/help/*.md")]):
        yield from (line for line in file.read_text(encoding="utf-8").splitlines() if len(line.split()) > 4)
    for file in sorted([*ROOT.glob("data/labels/*.json"), *ROOT.glob("data/samples/predictions/**/*.json")]):
        for field in re.findall(r'"(?:description|evidence|quote)"\s*:\s*("(?:[^"\\]|\\.)*")', file.read_text("utf-8")):
            yield json.loads(field, strict=False)


def main() -> None:
    """Write the table."""
    vectors = CountVectorizer(stop_words="english", ngram_range=(1, 2), binary=True)
    texts = list(dict.fromkeys(documents()))
    counts = vectors.fit_transform(texts).sum(axis=0).A1
    known = {
        term: int(counts[at])
        for term, at in sorted(vectors.vocabulary_.items())
        if counts[at] >= LEAST and not re.search(r"\d", term)
    }
    table = {"documents": len(texts), "in_documents": known}
    text = json.dumps(table, indent=0, sort_keys=True, ensure_ascii=False)
    (ROOT / "judging" / "matching" / "word_weights.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
