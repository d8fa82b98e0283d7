"""What MkDocs asks while it builds: the pages made from code, where links out of docs/ lead, and llms-full.txt."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from website.reference import api, cli, configuration, metrics, python_sdk, sdks

ROOT: Final = Path(__file__).parents[1]
WRITTEN: Final = Path(__file__).parent / "pages"
#: Files outside of docs/ that are pages of the site.
PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSING.md": "licensing.md",
    "SECURITY.md": "security-policy.md",
    **{f"sdks/{sdk}/README.md": f"sdks/{sdk}.md" for sdk in sdks.PAGES},
}
MADE: Final[dict[str, Callable[[], str]]] = {
    "reference/api.md": api.page,
    "reference/cli.md": cli.page,
    "reference/configuration.md": configuration.page,
    "reference/metrics.md": metrics.page,
    "reference/python.md": python_sdk.page,
    **{f"reference/{sdk}.md": page for sdk, page in sdks.PAGES.items()},
    **{page: (ROOT / file).read_text for file, page in PAGES.items()},
}
_FOLDERS: Final = {page: PurePosixPath(file).parent for file, page in PAGES.items()}
_shown: list[Page] = []
_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in docs/."""
    for name, make in MADE.items():
        files.append(File.generated(config, name, content=make()))
    for path in sorted(WRITTEN.rglob("*")):
        if path.is_file():
            files.append(File(str(path.relative_to(WRITTEN)), str(WRITTEN), config.site_dir, config.use_directory_urls))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001 - MkDocs names them
    """Remember which pages there are, and in which order."""
    _shown[:] = nav.pages
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Put the map for programs beside the pages, and all pages as one text."""
    site, whole = Path(config.site_dir), (ROOT / "llms.txt").read_text()
    (site / "llms.txt").write_text(whole)
    pages = [f"<!-- {page.file.src_uri} -->\n\n{page.markdown}" for page in _shown]
    (site / "llms-full.txt").write_text("\n\n".join([whole, *pages]))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names them
    """A link to a file of the repository becomes its name, unless the file is a page of the site."""
    here = PurePosixPath(page.file.src_uri).parent
    in_docs = (ROOT / "docs" / page.file.src_uri).exists()
    source = PurePosixPath("docs") / here if in_docs else _FOLDERS.get(page.file.src_uri, PurePosixPath())

    def lead(found: re.Match[str]) -> str:
        text, target = found.groups()
        if re.match(r"[a-z]+:|#|/", target):
            return found.group()
        path, _, anchor = target.partition("#")
        there = _normal(source / path)
        if there.parts[:1] == ("docs",) and files.get_file_from_path(str(there.relative_to("docs"))):
            inside = str(there.relative_to("docs"))
        elif str(there) in PAGES:
            inside = PAGES[str(there)]
        elif (ROOT / there).exists():
            return text if "`" in text else f"{text} (`{there}`)" if text != str(there) else f"`{text}`"
        else:
            return found.group()  # MkDocs says what is wrong with it
        up = "../" * len(here.parts)
        return f"[{text}]({up}{inside}{'#' + anchor if anchor else ''})"

    return "".join(_block(part) if part.startswith("```") else _LINK.sub(lead, part) for part in _parts(markdown))


def _block(text: str) -> str:
    """A diagram of states becomes a table: drawing it would need a program from elsewhere."""
    if not text.startswith("```mermaid"):
        return text
    rows = re.findall(r"^\s*(\S+) --> (\S+?)(?:: (.*))?$", text, re.MULTILINE)
    named = {"[*]": ""}
    cells = [f"| {named.get(old, old)} | {event} | {named.get(new, new)} |" for old, new, event in rows]
    return "\n".join(["| from | what happens | to |", "|---|---|---|", *cells])


def _normal(path: PurePosixPath) -> PurePosixPath:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def _parts(markdown: str) -> list[str]:
    """Fenced code, and what stands between."""
    return re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
