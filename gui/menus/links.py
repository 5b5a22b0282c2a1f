"""View: shows what is selected on one page on another page: a kernel of the timeline as a layer, or as a
rung."""

from __future__ import annotations

import functools

from gui.pages.page import Page
from gui.shell.main_window import Actions, MainWindow

ORDER = 12


def add_to(window: MainWindow, actions: Actions) -> None:
    for number, page in enumerate(window.pages, start=1):
        if not page.link:
            continue
        action = actions.add(
            "view",
            f"link-{page.title.lower()}",
            page.link,
            functools.partial(follow, window, page),
            f"Ctrl+Alt+{number}",
            tip=f"What is selected here, on the page {page.title}",
        )
        for other in window.pages:
            if other is not page and page.title not in other.own_links:
                other.links.append(action)


def follow(window: MainWindow, target: Page) -> None:
    """Show on `target` what is selected on the page in front. What prevents it is shown in the banner."""
    spot = window.page.spot()
    if spot is None:
        window.tell("Select a layer, a rung or a kernel first: then its other pages can be shown.")
        return
    if reason := target.show_spot(spot):
        window.tell(reason)
        return
    window.tabs.setCurrentWidget(target)
