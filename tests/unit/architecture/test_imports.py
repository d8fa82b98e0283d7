"""No module needs another that needs it."""

import grimp
import pytest


def cycles(graph: grimp.ImportGraph, package: str) -> list[set[str]]:
    """Groups of modules of a package that reach each other: strongly connected components, after Tarjan."""
    modules = {package} | graph.find_descendants(package)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        path.append(module)
        for other in graph.find_modules_directly_imported_by(module) & modules:
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in path:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            at = path.index(module)
            if len(path) - at > 1:
                found.append(set(path[at:]))
            del path[at:]

    for module in sorted(modules):
        if module not in order:
            visit(module)
    return found


@pytest.fixture(scope="module")
def at_run_time() -> grimp.ImportGraph:
    return grimp.build_graph("fila", exclude_type_checking_imports=True, cache_dir=None)


def test_no_cycle_at_run_time(at_run_time):
    assert cycles(at_run_time, "fila") == []


def test_no_cycle_in_the_broker_for_types_either():
    graph = grimp.build_graph("fila", cache_dir=None)
    assert cycles(graph, "fila.broker") == []


def test_a_cycle_would_be_found():
    graph = grimp.ImportGraph()
    for importer, imported in (("p.a", "p.b"), ("p.b", "p.c"), ("p.c", "p.a"), ("p.c", "p.d")):
        graph.add_import(importer=importer, imported=imported)
    graph.add_module("p")
    assert cycles(graph, "p") == [{"p.a", "p.b", "p.c"}]
