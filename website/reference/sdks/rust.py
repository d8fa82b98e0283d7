"""Rust: what `lib.rs` re-exports, with its public methods."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tree_sitter_rust
from tree_sitter import Language, Node

from website.reference.sdks.names import Name, Package, render
from website.reference.sdks.source import SDKS, child, children, comment, read, text, up_to

RUST: Final = Language(tree_sitter_rust.language())
PACKAGE: Final = Package("Rust", "rust", "fila_client", "rust", ("Client", "ClientBuilder", "Consumer", "Message"))
_ITEMS: Final = ("struct_item", "enum_item", "type_item", "const_item")


def page() -> str:
    """The crate; the messages of the contract, its module `proto`, are elsewhere."""
    return render(PACKAGE, _names(SDKS / "rust" / "src"))


def _names(folder: Path) -> list[Name]:
    exported = {name for use in children(read(RUST, folder / "lib.rs"), "use_declaration") for name in _used(use)}
    roots = [read(RUST, path) for path in sorted(folder.glob("*.rs")) if path.name != "lib.rs"]
    found = {}
    for item in (item for root in roots for item in children(root, *_ITEMS)):
        name = text(item.child_by_field_name("name"))
        if name in exported and _public(item):
            found[name] = Name(name, _declared(item), _said(item))
    for block in (block for root in roots for block in children(root, "impl_item")):
        owner = text(block.child_by_field_name("type"))
        if owner in found and not block.child_by_field_name("trait"):
            found[owner].members += _methods(block, owner)
    return list(found.values())


def _used(use: Node) -> list[str]:
    return re.findall(r"\b[A-Z]\w*", text(use)) if _public(use) else []


def _public(node: Node) -> bool:
    return text(child(node, "visibility_modifier")) == "pub"


def _methods(block: Node, owner: str) -> Iterator[Name]:
    for method in children(child(block, "declaration_list"), "function_item"):
        if _public(method):
            yield Name(f"{owner}::{text(method.child_by_field_name('name'))}", up_to(method, "block"), _said(method))


def _declared(item: Node) -> str:
    """An item without the fields that nobody else sees."""
    fields = child(item, "field_declaration_list")
    if item.type != "struct_item" or fields is None:
        return text(item)
    public = [each for each in children(fields, "field_declaration") if _public(each)]
    lines = [line for each in public for line in (*_above(each), f"{text(each)},")]
    hidden = ["// more that is not public"] if len(public) < len(list(children(fields, "field_declaration"))) else []
    inside = "\n".join(f"    {line.strip()}" for line in [*lines, *hidden])
    return f"{up_to(item, 'field_declaration_list')} {{\n{inside}\n}}"


def _above(node: Node) -> list[str]:
    return comment(node, "///", between=("attribute_item",)).splitlines()


def _said(node: Node) -> str:
    lines = [line.removeprefix("///").removeprefix(" ") for line in _above(node)]
    return re.sub(r"\[(`[^`]+`)\](?:\([\w:]+\))?", r"\1", "\n".join(_examples(lines)))


def _examples(lines: list[str]) -> Iterator[str]:
    """Examples are Rust, and show no line that only their test needs."""
    inside = False
    for line in lines:
        if line.startswith("```"):
            inside = not inside
            yield "```rust" if inside else line
        elif not (inside and re.match(r"#( |$)", line)):
            yield line
