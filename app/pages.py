"""The pages, in the order of the navigation. A page is one line here and one file, or folder, in `views`."""

from pathlib import Path
from typing import NamedTuple

from tracejury.app.session import Role

VIEWS = Path(__file__).parent / "views"


class PageSpec(NamedTuple):
    """`file` or folder in `views`, the title, an icon, and the least role that sees it."""

    file: str
    title: str
    icon: str
    role: Role

    @property
    def script(self) -> Path:
        """Return the file that draws the page: of a folder the one of its name, by which Streamlit knows the page."""
        folder = VIEWS / self.file
        return (folder / self.file if folder.is_dir() else folder).with_suffix(".py")


PAGES: tuple[PageSpec, ...] = (
    PageSpec("work", "Work", ":material/edit_note:", "annotator"),
    PageSpec("guideline", "Guideline", ":material/menu_book:", "annotator"),
    PageSpec("adjudicate", "Adjudicate", ":material/balance:", "adjudicator"),
    PageSpec("compare", "Compare", ":material/compare_arrows:", "adjudicator"),
    PageSpec("agreement", "Agreement", ":material/monitoring:", "researcher"),
    PageSpec("explore", "Explore", ":material/search:", "researcher"),
    PageSpec("runs", "Runs", ":material/gavel:", "researcher"),
    PageSpec("reports", "Reports", ":material/table_view:", "researcher"),
    PageSpec("corpus", "Corpus", ":material/database:", "researcher"),
    PageSpec("plan", "Plan", ":material/straighten:", "researcher"),
    PageSpec("ingest", "Ingest", ":material/upload_file:", "researcher"),
    PageSpec("help", "Help", ":material/help:", "annotator"),
    PageSpec("admin", "Admin", ":material/admin_panel_settings:", "admin"),
)

ACCOUNT = PageSpec("account", "Account", ":material/person:", "annotator")
"""Only where people sign in."""
