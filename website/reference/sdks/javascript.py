"""JavaScript and TypeScript: what `index.ts` exports."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tree_sitter_typescript
from tree_sitter import Language, Node

from website.reference.sdks.names import Name, Package, render
from website.reference.sdks.source import SDKS, child, children, comment, read, text, up_to

TYPESCRIPT: Final = Language(tree_sitter_typescript.language_typescript())
PACKAGE: Final = Package(
    "JavaScript", "javascript", "@fila/client", "typescript", ("Client", "Consumer", "ConsumeMessage")
)
Declared = dict[str, tuple[Node, str]]
_MEMBERS: Final = ("method_definition", "public_field_definition", "method_signature")
_DECLARED: Final = (
    "class_declaration",
    "abstract_class_declaration",
    "interface_declaration",
    "type_alias_declaration",
    "enum_declaration",
    "function_declaration",
    "lexical_declaration",
)


def page() -> str:
    """What the package exports; messages of the contract are elsewhere."""
    return render(PACKAGE, _names(SDKS / "javascript" / "src"))


def _names(folder: Path) -> Iterator[Name]:
    declared = {name: found for path in folder.glob("*.ts") for name, found in _declared(read(TYPESCRIPT, path))}
    for export in children(read(TYPESCRIPT, folder / "index.ts"), "export_statement"):
        source = text(export.child_by_field_name("source"))
        for each in children(child(export, "export_clause"), "export_specifier"):
            if "/generated/" not in source:
                yield _name(text(each.child_by_field_name("name")), declared)


def _declared(root: Node) -> Iterator[tuple[str, tuple[Node, str]]]:
    """Each exported declaration by its name, with what is said of it."""
    for statement in children(root, "export_statement"):
        declaration = child(statement, *_DECLARED)
        if declaration:
            named = child(declaration, "variable_declarator") or declaration
            yield text(named.child_by_field_name("name")), (declaration, _said(statement))


def _name(name: str, declared: Declared) -> Name:
    declaration, about = declared[name]
    if child(declaration, "class_body") is None:
        return Name(name, up_to(declaration), about)
    return Name(name, up_to(declaration, "class_body"), about, list(_members(name, name, declared)))


def _members(owner: str, name: str, declared: Declared) -> Iterator[Name]:
    """Of a class, then of the abstract one that it extends, which nobody else sees."""
    declaration, _ = declared[name]
    for member in children(child(declaration, "class_body"), *_MEMBERS):
        called, about = text(member.child_by_field_name("name")), _said(member)
        hidden = text(child(member, "accessibility_modifier")) in ("private", "protected")
        if not hidden and called[0] != "#" and "@internal" not in about:
            code = up_to(member, "statement_block")
            yield Name(f"{owner}.{called.strip('[]')}", code.split(" = ")[0] if "field" in member.type else code, about)
    for base in re.findall(r"extends (\w+)", up_to(declaration, "class_body")):
        if base in declared and declared[base][0].type == "abstract_class_declaration":
            yield from _members(owner, base, declared)


def _said(node: Node) -> str:
    lines = re.sub(r"^/\*\*|\*/$", "", comment(node, "/**", between=("decorator",)).strip()).splitlines()
    whole = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in lines).strip()
    return re.sub(r"\{@link ([^}]+)\}", r"`\1`", whole)
