"""Go: exported names; functions and constants beside the type that they are of."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import tree_sitter_go
from tree_sitter import Language, Node

from website.reference.sdks.names import Name, Package, render
from website.reference.sdks.source import SDKS, child, children, comment, read, text, up_to

GO: Final = Language(tree_sitter_go.language())
PACKAGE: Final = Package("Go", "go", "github.com/fila-dev/fila-go", "go", ("Client", "Consumer", "ConsumeMessage"))


def page() -> str:
    """The package `fila`."""
    return render(PACKAGE, _names(SDKS / "go"))


def _names(folder: Path) -> list[Name]:
    roots = [read(GO, path) for path in sorted(folder.glob("*.go")) if not path.name.endswith("_test.go")]
    found = {each.name: each for root in roots for each in (*_types(root), *_values(root))}
    for root in roots:
        for function in children(root, "function_declaration", "method_declaration"):
            name = text(function.child_by_field_name("name"))
            owner = _owner(function)
            whole = f"{owner}.{name}" if function.type == "method_declaration" else name
            made = Name(whole, up_to(function, "block"), _said(function))
            if name[0].isupper() and owner in found:
                found[owner].members.append(made)
            elif name[0].isupper() and function.type == "function_declaration":
                found[name] = made
    return list(found.values())


def _types(root: Node) -> Iterator[Name]:
    for declaration in children(root, "type_declaration"):
        specs = list(children(declaration, "type_spec", "type_alias"))
        for spec in specs:
            name = text(spec.child_by_field_name("name"))
            if name[0].isupper():
                about = _said(spec) or (_said(declaration) if len(specs) == 1 else "")
                yield Name(name, f"type {_exported(spec)}", about)


def _values(root: Node) -> Iterator[Name]:
    for declaration in children(root, "const_declaration", "var_declaration"):
        word = "const" if declaration.type == "const_declaration" else "var"
        inner = child(declaration, "var_spec_list") or declaration
        specs = list(children(inner, "const_spec", "var_spec"))
        for spec in specs:
            name = text(spec.child_by_field_name("name"))
            if name[0].isupper():
                about = _said(spec) or (_said(declaration) if len(specs) == 1 else "")
                yield Name(name, f"{word} {text(spec)}", about)


def _exported(spec: Node) -> str:
    """A type without the fields that nobody else sees."""
    body = spec.child_by_field_name("type")
    if body is None or body.type != "struct_type":
        return text(spec)
    fields = []
    for each in children(child(body, "field_declaration_list"), "field_declaration"):
        if text(each.child_by_field_name("name"))[:1].isupper():
            above = comment(each, "//")
            fields += [f"\t{line.strip()}" for line in [*above.splitlines(), text(each)]]
    return f"{text(spec.child_by_field_name('name'))} struct {{\n" + "\n".join(
        [*fields, "\t// more that is not exported", "}"]
    )


def _owner(function: Node) -> str:
    """The type of a method, or what a function makes."""
    place = "receiver" if function.type == "method_declaration" else "result"
    return re.sub(
        r"\[.*",
        "",
        (re.findall(r"\*?([A-Za-z]\w*(?:\[\w+\])?)(?:[,)]|$)", text(function.child_by_field_name(place))) or [""])[0],
    )


def _said(node: Node) -> str:
    lines = [line.removeprefix("//").removeprefix(" ") for line in comment(node, "//").splitlines()]
    whole = re.sub(r"(?m)(?:^\t.*\n?)+", lambda block: f"```go\n{dedent(block[0]).rstrip()}\n```\n", "\n".join(lines))
    return re.sub(r"\[(\*?[A-Za-z][\w.]*)\](?!\()", r"`\1`", whole)
