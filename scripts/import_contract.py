"""The direction of imports as a table of what each part may use, checked by import-linter.

Rules:
- A part is a direct child of the root package. One without a row fails: adding it means deciding what it imports.
- A row may also name a package inside a part (`reconcile.domain`). It is then a part of its own, with its own row, that
  the part around it may import; others import it only by its full name, or along with the whole part.
- A row may name parts that do not exist yet.
- The root's own `__init__` offers the SDK's public names, so it may import `client` and nothing else,
  and whoever may import `client` may import the root.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT_MAY_IMPORT = frozenset({"client"})


@dataclass(frozen=True, slots=True)
class Row:
    """What one part may import; `external` is None where third-party packages are left open."""

    ours: frozenset[str]
    external: frozenset[str] | None

    @classmethod
    def parse(cls, text: str) -> tuple[str, Row]:
        """Read `part -> ours | external`."""
        part, arrow, right = text.partition("->")
        if not arrow:
            raise ValueError(f"no '->' in {text!r}")
        ours, bar, external = right.partition("|")
        packages = frozenset(external.split()) - {"none"} if bar else None
        return part.strip(), cls(frozenset(ours.split()), packages)


class PartsContract(Contract):
    """Each part imports only what its row allows."""

    type_name = "parts"

    parts = fields.ListField(subfield=fields.StringField())
    stdlib_forbidden = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - the signature is import-linter's
        rows = dict(Row.parse(str(text)) for text in self.parts)
        forbidden = {
            part.strip(): frozenset(names.split())
            for part, _, names in (str(text).partition(":") for text in self.stdlib_forbidden or ())
        }
        root = self.session_options["root_packages"][0]
        problems = sorted(_problems(graph, root, rows, forbidden))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem, bold=False)


def _problems(
    graph: ImportGraph, root: str, rows: dict[str, Row], forbidden: dict[str, frozenset[str]]
) -> Iterator[str]:
    for module in sorted({root} | graph.find_descendants(root)):
        part = _part_of(module, root, rows)
        row = rows.get(part) if part else Row(ROOT_MAY_IMPORT, frozenset())
        if row is None:
            yield f"{module}: the part {part!r} has no row in the table of imports"
            continue
        for imported in graph.find_modules_directly_imported_by(module):
            target = _part_of(imported, root, rows) or "client"
            if not _allowed(imported, root, part, target, row, forbidden.get(part, frozenset())):
                lines = {d["line_number"] for d in graph.get_import_details(importer=module, imported=imported)}
                yield f"{module} may not import {imported} (line {', '.join(map(str, sorted(lines)))})"


def _allowed(imported: str, root: str, part: str, target: str, row: Row, forbidden: frozenset[str]) -> bool:
    top = imported.partition(".")[0]
    if top == root:
        allowed = row.ours | {part}
        return target in allowed or target.partition(".")[0] in allowed
    if top in sys.stdlib_module_names:
        return top not in forbidden
    return row.external is None or top in row.external


def _part_of(module: str, root: str, rows: dict[str, Row]) -> str:
    inside = module.removeprefix(root).removeprefix(".")
    nested = [part for part in rows if "." in part and f"{inside}.".startswith(f"{part}.")]
    return max(nested, key=len, default=inside.partition(".")[0])
