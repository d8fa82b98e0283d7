import pytest
from grimp import ImportGraph

from scripts.import_contract import PartsContract, Row

TABLE = ["core -> | none", "storage -> core | rocksdict", "client -> | grpc", "cli -> client", "later -> core"]
NESTED = ["rules -> rules.pure core", "rules.pure -> | none", "core -> | none", "user -> rules.pure", "all -> rules"]


def problems(*imports, parts=TABLE, stdlib_forbidden=("core: asyncio time",)):
    """What the contract says of a package that holds these imports and nothing else."""
    graph = ImportGraph()
    graph.add_module("fila")
    for importer, imported in imports:
        for module in (importer, imported):
            if module not in graph.modules:
                graph.add_module(module, is_squashed=not module.startswith("fila"))
        graph.add_import(importer=importer, imported=imported, line_number=7, line_contents="")
    contract = PartsContract(
        name="Imports go one way",
        session_options={"root_packages": ["fila"]},
        contract_options={"parts": parts, "stdlib_forbidden": list(stdlib_forbidden)},
    )
    check = contract.check(graph, verbose=False)
    assert check.kept == (not check.metadata["problems"])
    return check.metadata["problems"]


@pytest.mark.parametrize(
    "importer, imported",
    [
        ("fila.core.drr", "fila.core.pending"),
        ("fila.core.drr", "heapq"),
        ("fila.storage.rocks", "fila.core.message"),
        ("fila.storage.rocks", "rocksdict"),
        ("fila.storage.rocks", "asyncio"),
        ("fila", "fila.client.sync"),
        ("fila.cli.main", "fila"),
        ("fila.cli.main", "anything"),
    ],
)
def test_what_a_row_allows_is_kept(importer, imported):
    assert problems((importer, imported)) == []


@pytest.mark.parametrize(
    "importer, imported",
    [
        ("fila.core.drr", "fila.storage.rocks"),
        ("fila.core.drr", "rocksdict"),
        ("fila.core.drr", "time"),
        ("fila.core.drr", "fila"),
        ("fila.storage.rocks", "grpc"),
        ("fila.storage.rocks", "fila.client.sync"),
        ("fila.cli.main", "fila.storage.rocks"),
        ("fila", "fila.core.drr"),
        ("fila", "grpc"),
    ],
)
def test_anything_else_is_broken_and_named_with_its_line(importer, imported):
    assert problems((importer, imported)) == [f"{importer} may not import {imported} (line 7)"]


def test_a_part_without_a_row_is_broken():
    assert problems(("fila.new.thing", "heapq")) == [
        "fila.new.thing: the part 'new' has no row in the table of imports"
    ]


def test_rows_of_parts_that_do_not_exist_yet_are_kept():
    assert problems() == []


def test_a_row_without_a_bar_leaves_third_party_packages_open():
    assert Row.parse("jobs -> client core") == ("jobs", Row(frozenset({"client", "core"}), None))
    assert Row.parse("core -> | none") == ("core", Row(frozenset(), frozenset()))


def test_a_row_without_an_arrow_is_refused():
    with pytest.raises(ValueError, match="no '->' in 'core'"):
        Row.parse("core")


@pytest.mark.parametrize(
    "importer, imported",
    [
        ("fila.rules.store", "fila.rules.pure.models"),
        ("fila.rules.pure.trust", "fila.rules.pure.models"),
        ("fila.user.job", "fila.rules.pure.models"),
        ("fila.all.job", "fila.rules.pure"),
        ("fila.all.job", "fila.rules.store"),
    ],
)
def test_a_package_inside_a_part_can_be_imported_by_its_own_name(importer, imported):
    assert problems((importer, imported), parts=NESTED) == []


@pytest.mark.parametrize(
    "importer, imported",
    [
        ("fila.rules.pure.trust", "fila.rules.store"),
        ("fila.rules.pure.trust", "fila.core.drr"),
        ("fila.rules.pure", "sqlalchemy"),
        ("fila.user.job", "fila.rules.store"),
        ("fila.user.job", "fila.rules.purely"),
    ],
)
def test_a_package_inside_a_part_does_not_inherit_what_the_part_may_do(importer, imported):
    assert problems((importer, imported), parts=NESTED) == [f"{importer} may not import {imported} (line 7)"]
