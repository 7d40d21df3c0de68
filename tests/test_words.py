"""What a person reads (pages, help, errors, rubrics) keeps to one vocabulary and to plain English."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

BANNED = {
    r"\bsa(id|ys?) of (it|the|them|an?)\b|\bsaid, not broken\b": "name the verdict, the finding or the label",
    r"\bwho(ever)? stands? behind\b|\bstands? behind\b": "contributes to",
    r"\bgood for \S+ (day|minute|hour)|how long it is good|\bgood any more\b": "expires in",
    r"\bmend(s|ed|ing)?\b": "repair, or correct",
    r"\b(take|takes|taken|took) (\w+ ){0,4}back\b|take this \w+ away": "revoke, withdraw, delete or undo",
    r"\bwhose word\b|\bhas no such right\b": "reference; may not do this",
    r"\bpassed over in silence\b": "ignored",
    r"\b(has|have) no footing\b": "is not supported by",
    r"\b(lay|lays|laid|laying)([ -]\w+)?[ -]out\b": "Format JSON",
    r"\bin earnest\b": "live",
    r"\bledger\b": "workspace or database",
    r"\bfigures?\b": "estimate or metric (a value), chart (a drawing), table (an export)",
    r"^(?!HUMAN)humans?\b(?! ceiling)|\b(the|minus|judge −|with) humans?\b(?! ceiling)|\bhuman %|Human:": "reference",
    r"(?<!agent )(?<!operating )\bsystems?\b(?!-ui|[ -](prompt|message|instruction|role|text|part))":
        "judge model (that judges) or agent (that is judged)",
    r"\b(over|between|across|all|two) (\w+ )?runs\b|\bruns? of (a|the|this) judges?\b"
    r"|\bjudge['’]s (\w+ )?runs?\b"
    r"|\b(position|place|end|rest|share|effects) (in|of) the run\b|\bof the whole run\b|^%\{\S+\} of the run":
        "repeat (of a judge) or trace (of an agent)",
    r"\b(errors|findings|tokens|dollars|minutes|predictions|requests|bytes) an? (trace|error|answer|second|month)\b"
    r"|\bmeans a trace\b|\b(an?|one) (request|span|message|row|record|document|chat) a (line|row|trace|judge)\b":
        "per trace, per error, per line",
    r"\bverdicts? (on|of) (an?|the|unmatched) findings?\b|\b(people|person|annotator|reviewer)['’]?s?['’]? verdicts?\b":
        "review (of a finding); a verdict is a judge's answer",
    r"\bgold errors?\b|\b(share )?in gold\b|\bhuman or gold\b": "reference errors; gold is what was adjudicated",
    r"\{[^{}]*\}/\$?\{[^{}]*\} (mine|\$?\{name)|\d/\d+ mine": "name what is counted",
    r"\bWhat the reveal changed\b|\bWrite gold\b|\bwhat a judge reads\b|\bbehind it\b":
        "Changes after reveal, Save as gold, Judge's view, the rows of a mark",
    r"\bit may still come\b|\bstands twice\b|\bno such right\b": "say what happened and what to try",
}  # fmt: skip

# Exact pieces of text in which a banned word is right, each with its reason.
ALLOWED = {
    "Figures 3 and 4": "figures of the paper",
    "(ARE itself calls it a run.)": "names what a reader of ARE knows",
}
EXECUTION = (
    r"\b(an?|the|this|one|each|every|no|of|oracle|benchmark|judged|scored|other|\d+|\{\}) runs?\b|\bGAIA2 runs\b(?! in)"
)
BENCHMARK = (
    "ingest/formats/gaia2/", "ingest/formats/maseval.py", "ingest/gsr.py", "judging/gaia2/",
    "judging/reports/benchmark_",    "app/commands/benchmark.py", "app/views/benchmark_", "data/help/gaia2.md",
)  # fmt: skip
"""Where texts tell of executions of scenarios; a run is a start of `tracejury judge`."""


def is_read(text: str) -> bool:
    """Words rather than a key, a pattern, a query or an address."""
    is_pattern = re.search(r"\\[bwsdA-Z]|\(\?|\[\^|\bSELECT\b|\bINSERT\b|\bDELETE FROM\b|https?://\S+$", text)
    return is_pattern is None and re.search(r"[A-Za-z]{2,}", text) is not None and (" " in text or text[:1].isupper())


def constants(tree: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Strings of a module, an f-string as one, less docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in strings for part in ast.walk(node) if part is not node}
    loose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # notes below a name
    hidden = docs | parts | loose
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node


def shown(node: ast.Constant | ast.JoinedStr) -> str:
    """The text of a string; code within an f-string stands as {}."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def python_texts(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (shown(node) for node in constants(tree))
    if path.parent.name == "command_line":
        yield from filter(None, (ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)))


def browser_texts(path: Path) -> Iterator[str]:
    text = re.sub(r"(?m)^\s*(//|/?\*).*$|//[^\"`]*$", "", path.read_text(encoding="utf-8"))
    if path.suffix == ".html":
        yield from (a or b for a, b in re.findall(r'>([^<>]+)<|(?:title|placeholder|aria-label)="([^"]*)"', text))
        return
    yield from (a or b for a, b in re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', text))


def rubric_texts(path: Path) -> Iterator[str]:
    """What annotators read of a rubric; the rest is the prompt."""
    rubric = tomllib.loads(path.read_text(encoding="utf-8"))
    yield from (str(rubric[name]) for name in ("title", "annotator") if name in rubric)


def prose(path: Path) -> Iterator[str]:
    yield re.sub(r"(?s)```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"))


def texts(path: Path) -> Iterator[str]:
    match path.suffix:
        case ".py":
            yield from filter(is_read, python_texts(path))
        case ".mjs" | ".html":
            yield from filter(is_read, browser_texts(path))
        case ".toml":
            yield from rubric_texts(path)
        case _:
            yield from prose(path)


def read_files() -> list[Path]:
    patterns = (
        "app/**/*.py", "app/components/**/*.mjs", "app/components/**/*.html", "judging/**/*.py", "ingest/**/*.py",
        "judging/judges/rubrics/*.toml", "data/help/*.md", "README.md",
    )  # fmt: skip
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if "migrations" not in path.parts]


@pytest.mark.parametrize("path", read_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_person_reads_holds_no_banned_words(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    banned = BANNED | ({EXECUTION: "execution (of a scenario)"} if name.startswith(BENCHMARK) else {})
    hits = []
    for text in texts(path):
        for piece in ALLOWED:
            text = text.replace(piece, "")
        for pattern, better in banned.items():
            hits += [f"{match[0]!r} in {text[max(0, match.start() - 60) : match.end() + 60]!r}: {better}"
                     for match in re.finditer(pattern, text, re.IGNORECASE)]  # fmt: skip
    assert hits == []


def test_the_patterns_find_the_words_that_they_ban() -> None:
    sentences = (
        "Nothing stands behind this mark.", "Take this view away", "How long it is good.",
        "a tie is said, not broken", "What the reveal changed", "Write gold", "lay out JSON", "what a judge reads",
        "an own error passed over in silence", "it has no footing in what came before", "'ben' has no such right here",
        "the app has not answered; it may still come", "the figures of the choices", "0/32 mine", "Human: ada",
        "kind: in earnest", "Scores over runs", "the best system", "Mend what can be mended", "the ledger",
        "6 errors a trace", "0.7 predictions an error",
    )  # fmt: skip
    for sentence in sentences:
        assert any(re.search(pattern, sentence, re.IGNORECASE) for pattern in BANNED), sentence
