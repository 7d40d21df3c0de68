"""The pages, in the order of the navigation. A page is one file in `views` and one line here."""

from typing import NamedTuple

from tracejury.app.session import Role


class PageSpec(NamedTuple):
    """`file` in `views`, the title, an icon, and the least role that sees it."""

    file: str
    title: str
    icon: str
    role: Role


PAGES: tuple[PageSpec, ...] = (
    PageSpec("work", "Work", ":material/edit_note:", "annotator"),
    PageSpec("guideline", "Guideline", ":material/menu_book:", "annotator"),
    PageSpec("adjudicate", "Adjudicate", ":material/balance:", "adjudicator"),
    PageSpec("compare", "Compare", ":material/compare_arrows:", "adjudicator"),
    PageSpec("agreement", "Agreement", ":material/monitoring:", "researcher"),
    PageSpec("explore", "Explore", ":material/search:", "researcher"),
    PageSpec("runs", "Runs", ":material/gavel:", "researcher"),
    PageSpec("reports", "Reports", ":material/table_view:", "researcher"),
    PageSpec("ingest", "Ingest", ":material/upload_file:", "researcher"),
    PageSpec("help", "Help", ":material/help:", "annotator"),
    PageSpec("admin", "Admin", ":material/admin_panel_settings:", "admin"),
)

ACCOUNT = PageSpec("account", "Account", ":material/person:", "annotator")
"""Only where people sign in."""
