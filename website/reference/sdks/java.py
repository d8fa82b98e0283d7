"""Java: public classes with their public members, and what Javadoc says of them as Markdown."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tree_sitter_java
from tree_sitter import Language, Node

from website.reference.sdks.names import Name, Package, render
from website.reference.sdks.source import SDKS, child, children, comment, read, text, up_to

JAVA: Final = Language(tree_sitter_java.language())
PACKAGE: Final = Package("Java", "java", "io.fila.client", "java", ("FilaClient", "FilaConsumer", "ConsumeMessage"))
_TYPES: Final = ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration")
_BODIES: Final = ("class_body", "interface_body", "enum_body")
_MEMBERS: Final = ("method_declaration", "constructor_declaration", "field_declaration")
_LINK: Final = re.compile(r"\{@link(?:plain)?\s+#?([^\s}(]+(?:\([^)]*\))?)(?:\s+([^}]+))?\}")


def page() -> str:
    """The package of the client; generated code is elsewhere."""
    return render(PACKAGE, _names(SDKS / "java" / "src" / "main" / "java" / "io" / "fila" / "client"))


def _names(folder: Path) -> Iterator[Name]:
    for path in sorted(folder.glob("*.java")):
        for each in children(read(JAVA, path), *_TYPES):
            yield from _type(each, "")


def _type(node: Node, outer: str) -> Iterator[Name]:
    """A public type, then those that it holds."""
    if not _public(node):
        return
    name = f"{outer}{text(node.child_by_field_name('name'))}"
    body = child(node, *_BODIES)
    members = [_member(each, name) for each in children(body, *_MEMBERS) if _public(each, node)]
    yield Name(name, up_to(node, *_BODIES), _said(node), members)
    for each in children(body, *_TYPES):
        yield from _type(each, f"{name}.")


def _public(node: Node, inside: Node | None = None) -> bool:
    """Members of an interface are public without a word."""
    modifiers = text(child(node, "modifiers"))
    return "public" in modifiers.split() or bool(
        inside and inside.type == "interface_declaration" and "private" not in modifiers
    )


def _member(node: Node, owner: str) -> Name:
    named = child(node, "variable_declarator") or node
    code = up_to(node, "block", "constructor_body").replace("@Override", "").strip()
    return Name(f"{owner}.{text(named.child_by_field_name('name'))}", code, _said(node))


def _said(node: Node) -> str:
    lines = re.sub(r"^/\*\*|\*/$", "", comment(node, "/**").strip()).splitlines()
    whole = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in lines).strip()
    prose, *tags = re.split(r"(?m)^@(?=param|return|throws)", whole)
    return "\n\n".join(filter(None, [_markdown(prose), "\n".join(map(_tag, tags))])).strip()


def _tag(tag: str) -> str:
    word, _, rest = " ".join(_markdown(tag).split()).partition(" ")
    if word == "return":
        return f"- Returns {rest}"
    name, _, about = rest.partition(" ")
    return f"- `{name}`: {about}" if word == "param" else f"- Throws `{name}` {about}"


def _markdown(javadoc: str) -> str:
    block = re.sub(r"<pre>\{@code\s*\n(.*?)\s*\}</pre>", r"```java\n\1\n```", javadoc, flags=re.DOTALL)
    linked = _LINK.sub(
        lambda found: f"`{(found[2] or found[1]).replace('#', '.')}`", re.sub(r"\{@code ([^}]*)\}", r"`\1`", block)
    )
    return re.sub(r"</?(?:p|ul)>", "", re.sub(r"\s*<li>", "\n- ", linked)).strip()
