"""Sources as trees, and the comments above what they declare."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tree_sitter import Language, Node, Parser

SDKS: Final = Path(__file__).parents[3] / "sdks"


def read(language: Language, path: Path) -> Node:
    """The tree of a file. A file that cannot be parsed is an error, not a page that lacks something."""
    root = Parser(language).parse(path.read_bytes()).root_node
    if root.has_error:
        raise ValueError(f"cannot parse {path}")
    return root


def text(node: Node | None) -> str:
    """What the file says there; nothing where there is no node."""
    return node.text.decode() if node and node.text else ""


def child(node: Node, *kinds: str) -> Node | None:
    """The first child of these kinds."""
    return next(children(node, *kinds), None)


def children(node: Node | None, *kinds: str) -> Iterator[Node]:
    """The children of these kinds."""
    return (each for each in node.children if each.type in kinds) if node else iter(())


def up_to(node: Node, *kinds: str) -> str:
    """The text of a node up to its first child of these kinds: a declaration without its body, moved to the left."""
    end = child(node, *kinds)
    whole = node.text or b""
    declared = (whole[: end.start_byte - node.start_byte] if end else whole).decode().rstrip(" ={;\n")
    return re.sub(rf"\n {{{node.start_point.column}}}", "\n", declared)


def comment(node: Node, start: str, *, between: tuple[str, ...] = ()) -> str:
    """The comments right above a declaration that begin with `start`. Nodes of the kinds `between` are passed over."""
    found: list[str] = []
    row, above = node.start_point.row, node.prev_sibling
    if above is None and node.parent and node.parent.type == "body_statement":  # Ruby's begins behind the comment
        above = node.parent.prev_sibling
    while above and (above.type in between or text(above).startswith(start)):
        # A comment that includes its line break ends at the beginning of the next line.
        if row - above.end_point.row > (0 if above.end_point.column == 0 else 1):
            break
        if above.type not in between:
            found.append(text(above))
        row, above = above.start_point.row, above.prev_sibling
    return "\n".join(line.rstrip("\n") for line in reversed(found))
