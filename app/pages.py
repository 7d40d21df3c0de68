"""The pages, in the order of the navigation. A page is one line here and one file, or folder, in `views`."""

from pathlib import Path
from typing import NamedTuple

from tracejury.app.session import Role

VIEWS = Path(__file__).parent / "views"


class PageSpec(NamedTuple):
    """`file` or folder in `views`, the title, and the least role that sees it."""

    file: str
    title: str
    role: Role

    @property
    def script(self) -> Path:
        """Return the file that draws the page: of a folder the one of its name, by which Streamlit knows the page."""
        folder = VIEWS / self.file
        return (folder / self.file if folder.is_dir() else folder).with_suffix(".py")


PAGES: tuple[PageSpec, ...] = (
    PageSpec("work", "Work", "annotator"),
    PageSpec("my_work", "My work", "annotator"),
    PageSpec("guideline", "Guideline", "annotator"),
    PageSpec("adjudicate", "Adjudicate", "adjudicator"),
    PageSpec("compare", "Compare", "adjudicator"),
    PageSpec("agreement", "Agreement", "researcher"),
    PageSpec("explore", "Explore", "researcher"),
    PageSpec("runs", "Runs", "researcher"),
    PageSpec("reports", "Reports", "researcher"),
    PageSpec("corpus", "Corpus", "researcher"),
    PageSpec("plan", "Plan", "researcher"),
    PageSpec("ingest", "Ingest", "researcher"),
    PageSpec("help", "Help", "annotator"),
    PageSpec("admin", "Admin", "admin"),
)

ACCOUNT = PageSpec("account", "Account", "annotator")
"""Only where people sign in."""
