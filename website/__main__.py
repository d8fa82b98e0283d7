"""Build or serve the site.

python -m website build [--to FOLDER]     writes static pages; a warning is an error
python -m website release --to FOLDER     writes them to FOLDER/VERSION, beside those of other versions, with a menu
python -m website serve [--listen ADDR]   serves them and builds again when a page changes
"""

import argparse
import logging
import sys
from pathlib import Path

from mkdocs.commands import build, serve
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from website.versions import this_version, write_list

HERE = Path(__file__).parent
CONFIG = str(HERE / "mkdocs.yml")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m website", description="Build or serve the documentation site.")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("build", help="write static pages; a warning is an error")
    made.add_argument("--to", metavar="FOLDER", default=str(HERE.parent / "build" / "site"), help="default: build/site")
    released = commands.add_parser("release", help="write them beside those of other versions, with a menu of versions")
    released.add_argument("--to", metavar="FOLDER", required=True, help="the folder of all versions, to be served")
    served = commands.add_parser("serve", help="serve the pages, and build them again when one changes")
    served.add_argument("--listen", metavar="ADDR", default="127.0.0.1:8000", help="default: 127.0.0.1:8000")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="docs: %(message)s")
    try:
        if options.command == "serve":
            serve.serve(CONFIG, dev_addr=options.listen)
        else:
            _write(Path(options.to), versions=options.command == "release")
    except MkDocsException as error:
        sys.stderr.write(f"docs: {error}\n")
        return 1
    return 0


def _write(folder: Path, *, versions: bool) -> None:
    site = folder / this_version() if versions else folder
    config = load_config(CONFIG, site_dir=str(site), strict=True)
    if versions:
        config.extra["version"] = {"provider": "mike"}  # the theme's name for a menu that versions.json fills
    build.build(config)
    if versions:
        write_list(folder)
    sys.stdout.write(f"docs: {folder}/index.html\n")


if __name__ == "__main__":
    sys.exit(main())
