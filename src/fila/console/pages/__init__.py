"""One module for each page. `PAGES` is the table of all routes; `urls.NAVIGATION` says which of them the menu has."""

from fila.console.pages import (
    audit,
    dead_letters,
    home,
    hooks,
    jobs,
    message,
    pipelines,
    queue,
    queue_settings,
    settings,
    sign_in,
    throttles,
)
from fila.console.pages.base import Page

_MODULES = (
    sign_in,
    home,
    queue,
    queue_settings,
    message,
    throttles,
    dead_letters,
    hooks,
    jobs,
    pipelines,
    settings,
    audit,
)

PAGES: tuple[Page, ...] = tuple(page for module in _MODULES for page in module.PAGES)
