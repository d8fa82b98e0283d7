"""The public names of the SDKs in other languages, read from their sources.

Tree-sitter parses them, so that the pages need no toolchain of these languages and are the same everywhere.
"""

from collections.abc import Callable
from typing import Final

from website.reference.sdks import go, java, javascript, ruby, rust

#: What makes the page of each SDK, by its folder in sdks/.
PAGES: Final[dict[str, Callable[[], str]]] = {
    "go": go.page,
    "javascript": javascript.page,
    "rust": rust.page,
    "java": java.page,
    "ruby": ruby.page,
}
