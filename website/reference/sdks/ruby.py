"""Ruby: what is not marked `@api private`, with what YARD's tags say."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import tree_sitter_ruby
from tree_sitter import Language, Node

from website.reference.sdks.names import Name, Package, render
from website.reference.sdks.source import SDKS, child, children, comment, read, text, up_to

RUBY: Final = Language(tree_sitter_ruby.language())
PACKAGE: Final = Package("Ruby", "ruby", "Fila", "ruby", ("Client", "Admin", "Consumer", "ConsumeMessage"))
_PRIVATE: Final = "@api private"


def page() -> str:
    """The module; its messages of the contract, `Fila::V1`, are elsewhere."""
    return render(PACKAGE, _names(SDKS / "ruby" / "lib" / "fila"))


def _names(folder: Path) -> Iterator[Name]:
    for path in sorted(folder.glob("*.rb")):
        for module in children(read(RUBY, path), "module"):
            for each in children(child(module, "body_statement"), "class", "module", "assignment"):
                inside_another = "::" in text(each.child_by_field_name("left"))
                if _PRIVATE not in comment(each, "#") and not inside_another:
                    yield _name(each)


def _name(node: Node) -> Name:
    if node.type == "assignment":  # of a Struct, whose block has its methods
        struct = node.child_by_field_name("right")
        block = child(struct, "do_block") if struct else None
        name, code = text(node.child_by_field_name("left")), text(node).split(" do")[0]
        body = child(block, "body_statement") if block else None
    else:
        name = text(node.child_by_field_name("name"))
        code = " ".join(filter(None, [node.type, name, text(child(node, "superclass"))]))
        body = child(node, "body_statement")
    return Name(name, code, _said(node), list(_members(body, name)))


def _members(body: Node | None, owner: str) -> Iterator[Name]:
    """Up to the word `private`."""
    for each in body.children if body else ():
        if text(each) == "private":
            return
        about = comment(each, "#")
        if _PRIVATE in about:
            continue
        if each.type in ("method", "singleton_method"):
            name = text(each.child_by_field_name("name"))
            mark = "#" if each.type == "method" and name != "initialize" else "."
            yield Name(f"{owner}{mark}{name.replace('initialize', 'new')}", _signature(each), _said(each))
        elif each.type == "call" and text(each).startswith("attr_"):
            yield Name(f"{owner}#{text(each.child_by_field_name('arguments')).lstrip(':')}", text(each), _said(each))


def _signature(method: Node) -> str:
    return up_to(method, "body_statement").replace("def initialize", "def new")


def _said(node: Node) -> str:
    lines = [line.removeprefix("#").removeprefix(" ") for line in comment(node, "#").splitlines()]
    prose, *tags = re.split(r"(?m)^@(?!api)", "\n".join(lines))
    prose = re.sub(r"(?m)(?:^  .*\n?)+", lambda block: f"```ruby\n{dedent(block[0]).rstrip()}\n```\n", prose)
    return _linked("\n\n".join(filter(None, [prose.strip(), "\n".join(filter(None, map(_tag, tags)))])))


def _tag(tag: str) -> str:
    """`param name [Type] what it is`, `return [Type] what it is` and the like, as an item of a list."""
    word, _, rest = " ".join(tag.split()).partition(" ")
    named = word in ("param", "yieldparam", "option", "!attribute")
    name, _, rest = rest.partition(" ") if named else (word, "", rest)
    kinds = re.search(r"\[([^\]]*)\]", rest)
    about = re.sub(r"^(?:@return )?\[[^\]]*\] ?", "", rest)
    said = ": ".join(filter(None, [f"`{kinds[1]}`" if kinds else "", about]))
    begin = f"`{name}`:" if named else {"return": "Returns", "raise": "Raises"}.get(word, f"{word}:")
    return f"- {begin} {said}".rstrip(" :")


def _linked(markdown: str) -> str:
    return re.sub(r"\{(#?[A-Z\w][\w#:?!.]*)\}", lambda found: f"`{found[1].lstrip('#')}`", markdown)
