"""Every call has a way."""

from fila.cluster.gathering import GATHER
from fila.cluster.routes import ROUTES, Way
from fila.server.access_table import RULES


def test_every_rpc_has_a_way():
    assert ROUTES.keys() == RULES.keys()


def test_what_all_answer_is_put_together():
    assert GATHER.keys() == {path for path, route in ROUTES.items() if route.way is Way.EACH}


def test_what_is_refused_says_why():
    assert all(route.why_not for route in ROUTES.values() if route.way is Way.REFUSED)


def test_changes_of_rights_and_configuration_are_led():
    """What the audit calls a change, and no queue has, is made by worker 0."""
    for path, rule in RULES.items():
        if rule.changes is not None and "FilaAuth" in path:
            assert ROUTES[path].way is Way.LEADER, path
    assert ROUTES["/fila.v1.FilaAdmin/SetConfig"].way is ROUTES["/fila.v1.FilaAdmin/DeleteConfig"].way is Way.LEADER
