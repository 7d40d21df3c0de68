"""The arrows of the house: who may import whom, and what must not be imported early."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "judging", "ingest", "data")
BARE = re.compile(rf"\b(?:import|from)\b.*(?<![.\w])(?:{'|'.join(PACKAGES)})\b")
"""A line that may import one of them by its bare name; to parse every file takes 5 s."""


def modules(package: str) -> list[Path]:
    return sorted(path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


def imports(path: Path, *, only_top: bool = False) -> Iterator[str]:
    """Names of modules imported; with `only_top` those at module level (not in functions or TYPE_CHECKING)."""
    for node in parsed(path).body if only_top else nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offenders(package: str, forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if any(name == bad or name.startswith(f"{bad}.") for bad in forbidden)
    ]


def test_everything_is_imported_under_one_name() -> None:
    """A module imported as `app.x` and as `tracejury.app.x` would be two modules with two states."""
    everywhere = [path for folder in (*PACKAGES, "tests") for path in modules(folder)]
    suspects = [path for path in everywhere if BARE.search(path.read_text(encoding="utf-8"))]
    bare = [f"{path}: {name}" for path in suspects for name in imports(path) if name.split(".")[0] in PACKAGES]
    assert bare == []


def test_ingest_knows_no_judges_and_no_screens() -> None:
    assert offenders("ingest", ("tracejury.judging", "tracejury.app", "streamlit", "plotly", "litellm")) == []


def test_judging_knows_no_screens() -> None:
    assert offenders("judging", ("tracejury.app", "streamlit", "plotly")) == []


def test_agreement_is_pure() -> None:
    assert offenders("judging/agreement", ("tracejury.judging.store", "tracejury.ingest", "sqlalchemy")) == []


def test_planning_is_pure() -> None:
    assert offenders("judging/planning", ("tracejury.judging.store", "tracejury.ingest", "sqlalchemy")) == []


FLOORS = (
    "agreement", "planning", "records", "taxonomy", "judges", "checks", "store", "runs", "queues", "labels", "matching",
    "juries", "adjudication", "reports", "corpus",
)  # fmt: skip
"""The subjects of `judging` from the ground up: each knows those before it. `wiring` and `integrity` know them all."""


def test_no_arrow_inside_judging_runs_up() -> None:
    floor = {name: number for number, name in enumerate(FLOORS)}
    up = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("judging")
        for name in imports(path)
        if name.startswith("tracejury.judging.")
        for here, there in [(path.relative_to(ROOT / "judging").parts[0].removesuffix(".py"), name.split(".")[2])]
        if here in floor and floor.get(there, -1) > floor[here]
    ]
    assert up == []


def test_data_imports_nothing() -> None:
    worker = ROOT / "data" / "gaia2" / "worker.py"  # a file for another Python, not a module of ours
    assert [str(path) for path in modules("data") if path != worker for _ in imports(path)] == []
    roots = {name.split(".")[0] for name in imports(worker)}
    assert roots - set(sys.stdlib_module_names) == {"are"}


def test_only_the_model_adapter_imports_litellm() -> None:
    faults = {str(path.relative_to(ROOT)) for package in PACKAGES for path in modules(package)
             if any(name.split(".")[0] == "litellm" for name in imports(path))}  # fmt: skip
    assert faults <= {"judging/judges/model.py"}
    assert not any(name.split(".")[0] == "litellm" for name in imports(ROOT / "judging/judges/model.py", only_top=True))


def test_only_reliability_imports_krippendorff() -> None:
    faults = {path.name for package in PACKAGES for path in modules(package) if "krippendorff" in imports(path)}
    assert faults <= {"reliability.py"}


def test_only_the_engine_of_corpora_imports_dask_and_late() -> None:
    engine = ROOT / "ingest/corpus/engine.py"
    faults = {path for package in PACKAGES for path in modules(package)
              if any(name.split(".")[0] in {"dask", "distributed"} for name in imports(path))}  # fmt: skip
    assert faults <= {engine}
    assert not any(name.split(".")[0] in {"dask", "distributed"} for name in imports(engine, only_top=True))


def test_no_list_of_unknown_length_is_spelt_out_in_a_statement() -> None:
    """`IN` takes a parameter for each value, and SQLite 32,766 at most: what grows with a workspace is `is_one_of`."""
    faults = [f"{path.relative_to(ROOT)}:{line}: {argument}"
              for package in PACKAGES for path in modules(package) for line, argument in unbounded(path)]  # fmt: skip
    assert [one for one in faults if "hash.in_" not in one] == []  # bytes, so many at a time


def unbounded(path: Path) -> Iterator[tuple[int, str]]:
    """What stands in `in_()` and is neither a query nor a list written in the code, with its line."""
    queries = {ast.unparse(target) for node in nodes_of(path) if isinstance(node, ast.Assign)
               for target in node.targets if "select(" in ast.unparse(node.value)}  # fmt: skip
    queries |= {node.arg for node in nodes_of(path) if isinstance(node, ast.arg) and node.annotation is not None
                and ast.unparse(node.annotation).startswith("Select[")}  # fmt: skip
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"in_", "not_in"}:
            argument = ast.unparse(node.args[0])
            is_query = argument in queries or argument.startswith("select(") or argument == "_read_by_two()"
            if not is_query and not isinstance(node.args[0], ast.Tuple) and not argument.isupper():
                yield node.lineno, ast.unparse(node)


def test_nothing_unpickles_or_evaluates() -> None:
    """Traces and labels are untrusted."""
    faults = []
    for package in PACKAGES:
        for path in modules(package):
            names = [n.func.id for n in nodes_of(path) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
            faults += [f"{path.name}: {name}" for name in names if name in {"eval", "exec", "compile"}]
            faults += [
                f"{path.name}: {name}" for name in imports(path) if name in {"pickle", "dill", "marshal", "shelve"}
            ]
    assert faults == []


def is_constant(node: ast.expr) -> bool:
    """A literal, or a name written as a constant of its module (a style sheet)."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def test_no_view_shows_trace_text_as_markup() -> None:
    """st.markdown loads external images, st.html draws whatever it is given: neither may get a variable."""
    faults = []
    for path in modules("app"):
        for node in nodes_of(path):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            is_markup = node.func.attr in {"html", "write_stream"} or any(
                keyword.arg == "unsafe_allow_html" for keyword in node.keywords
            )
            if is_markup and all(is_constant(argument) for argument in node.args):
                continue
            if is_markup and isinstance(node.func.value, ast.Name) and node.func.value.id == "st":
                faults.append(f"{path.name}:{node.lineno}")
    assert faults == []


def test_only_views_session_and_the_edges_know_the_store() -> None:
    """Inside app, components take values; views, routes, commands, session and what they list know the database."""
    allowed = (
        "app/views/", "app/api/", "app/commands/", "app/session.py", "app/listings.py", "app/options.py",
        "app/estimates.py", "app/adjudicating.py", "app/datasets.py", "app/notebook.py",
    )  # fmt: skip
    of_database = {
        "tracejury." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in modules("judging")
        if any(name.split(".")[0] == "sqlalchemy" for name in imports(path))
    }
    faults = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("app")
        if not str(path.relative_to(ROOT)).startswith(allowed)
        for name in imports(path)
        if name in of_database
    ]
    assert faults == []


@pytest.mark.parametrize("path", modules("app"), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_at_the_top_of_app_shadows_a_library(path: Path) -> None:
    """Streamlit puts app/ first on the path, so app/token.py would be `import token` for everyone."""
    if path.parent != ROOT / "app":
        return
    taken = sys.stdlib_module_names | {*PACKAGES, "streamlit", "plotly", "pandas", "numpy", "sqlalchemy", "logging"}
    assert path.stem not in taken - {"app"} or path.stem == "__init__"


def test_help_is_instant_because_nothing_heavy_is_imported() -> None:
    heavy = ("streamlit", "litellm", "pandas", "sklearn", "plotly", "scipy", "pyarrow", "sqlalchemy")
    code = f"import sys, tracejury.app.cli; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_app_starts_without_what_takes_seconds_to_import() -> None:
    heavy = ("litellm", "sklearn", "scipy.optimize", "scipy.stats", "distributed", "tracejury.ingest.corpus")
    code = "import sys, tracejury.app.asgi, tracejury.app.session"
    code += f"; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
