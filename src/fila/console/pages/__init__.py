"""One module for each page. `PAGES` is the table of all routes; `urls.NAVIGATION` says which of them the menu has."""

from fila.console.pages import home, message, queue, sign_in
from fila.console.pages.base import Page

PAGES: tuple[Page, ...] = (*sign_in.PAGES, *home.PAGES, *queue.PAGES, *message.PAGES)
