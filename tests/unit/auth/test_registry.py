"""Keys, principals and roles together."""

import hmac
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth import keys, records
from fila.auth.keys import Key, new_key, read_token
from fila.auth.records import Assignment, LastUse, Principal, Role, read, write
from fila.auth.registry import Put, Registry, Remove
from fila.auth.rights import Grant, Kind, Permission

NOW = 1_000


def registry(*roles: str) -> tuple[Registry, str, str]:
    """One admin, and one principal with these roles; the tokens of both."""
    known = Registry()
    tokens = []
    for name, its in (("root", ["admin"]), ("team", roles)):
        key, token = new_key(name, NOW)
        tokens.append(token)
        changes = [Put(Principal(name, tuple(map(Assignment.parse, its)), NOW)), Put(key)]
        known.check(changes, NOW)
        known.apply(changes)
    return known, *tokens


KNOWN, ROOT, TEAM = registry("producer")


def test_a_token_names_its_key():
    known, root, _ = registry("producer")
    assert known.authenticate(root, NOW).principal == "root"


@given(st.text(max_size=300))
def test_any_other_text_is_nobody(text):
    assert KNOWN.authenticate(text, NOW) is None


@given(st.data())
def test_a_token_with_one_changed_character_is_nobody(data):
    at = data.draw(st.integers(0, len(ROOT) - 1))
    other = data.draw(st.sampled_from("0123456789abcdef_-F \x00é"))
    changed = ROOT[:at] + other + ROOT[at + 1 :]
    assert changed == ROOT or KNOWN.authenticate(changed, NOW) is None


def test_a_huge_token_is_refused_unread():
    assert read_token("fila_a_" + "0" * 10_000_000) is None


def test_the_secret_is_not_kept():
    known, root, _ = registry()
    secret = root.rpartition("_")[2]
    assert secret not in repr(vars(known)) + "".join(map(write, known.keys.values()))


def test_how_long_it_takes_tells_neither_a_secret_nor_whether_a_key_exists(monkeypatch):
    """Each token is hashed, and compared in constant time with something of the same length."""
    compared = []

    def compare(one, other):
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    known, root, _ = registry()
    monkeypatch.setattr(keys, "hmac", SimpleNamespace(compare_digest=compare))
    wrong, unknown = root[:-1] + ("0" if root[-1] != "0" else "1"), f"fila_nobody-aaaaaa_{root.rpartition('_')[2]}"
    assert [known.authenticate(token, NOW) for token in (wrong, unknown)] == [None, None]
    assert known.authenticate(root, NOW)
    assert compared == [(64, 64)] * 3


def test_two_keys_have_nothing_in_common():
    made = [new_key("team", NOW) for _ in range(100)]
    assert len({key.id for key, _ in made}) == len({key.salt for key, _ in made}) == len({t for _, t in made}) == 100


def test_the_hash_depends_on_the_salt():
    assert keys.hash_of("a", "secret") != keys.hash_of("b", "secret")


def test_an_expired_key_is_nobody():
    known, _, team = registry("producer")
    [key] = [key for key in known.keys.values() if key.principal == "team"]
    known.apply([Put(replace(key, expires_at=NOW + 10))])
    assert known.authenticate(team, NOW + 9)
    assert known.holds(key.id, NOW + 9)
    assert known.authenticate(team, NOW + 10) is None
    assert not known.holds(key.id, NOW + 10)
    assert known.next_expiry(NOW) == NOW + 10
    assert known.next_expiry(NOW + 10) is None


def test_a_removed_key_is_nobody():
    known, _, team = registry("producer")
    key = known.authenticate(team, NOW)
    known.apply([Remove(Key, key.id)])
    assert known.authenticate(team, NOW) is None
    assert not known.holds(key.id, NOW)


def test_changed_roles_apply_at_once():
    known, _, _ = registry("producer")
    known.apply([Put(Role("writers", ())), Put(Principal("team", (Assignment("writers"),), NOW))])
    assert not known.rights("team").allow(Permission.ENQUEUE, Kind.QUEUE, "a")
    known.apply([Put(Role("writers", (Grant.parse("enqueue=a"),)))])
    assert known.rights("team").allow(Permission.ENQUEUE, Kind.QUEUE, "a")


def test_somebody_unknown_may_do_nothing():
    assert not Registry().rights("nobody").allow(Permission.BROWSE, Kind.QUEUE, "a")


@pytest.mark.parametrize(
    "change",
    [
        Put(Principal("x", (Assignment("nowhere"),), NOW)),
        Put(Key("k", "nobody", "", "", NOW)),
        Put(Role("admin", ())),
        Put(Role("a:b", ())),
        Put(Role("", ())),
        Put(Principal("a\nb", (), NOW)),
        Remove(Principal, "team"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change):
    known, _, _ = registry("producer")
    with pytest.raises(ValueError):
        known.check([change], NOW)


def test_the_last_admin_key_cannot_be_taken_away():
    known, root, _ = registry("producer")
    key = known.authenticate(root, NOW)
    for change in (
        Remove(Key, key.id),
        Put(replace(key, expires_at=NOW)),
        Put(Principal("root", (Assignment("producer"),), NOW)),
        Put(Principal("root", (Assignment("admin", "orders.**"),), NOW)),
    ):
        with pytest.raises(PermissionError):
            known.check([change], NOW)
    known.check([Put(Principal("team", (Assignment("admin"),), NOW)), Remove(Key, key.id)], NOW)


def test_the_first_key_must_be_able_to_administer():
    key, _ = new_key("team", NOW)
    with pytest.raises(PermissionError):
        Registry().check([Put(Principal("team", (Assignment("producer"),), NOW)), Put(key)], NOW)


def test_the_last_key_of_all_cannot_be_removed():
    known = Registry()
    key, _ = new_key("root", NOW)
    known.apply([Put(Principal("root", (Assignment("admin"),), NOW)), Put(key)])
    with pytest.raises(PermissionError):
        known.check([Remove(Key, key.id)], NOW)


RECORDS = st.one_of(
    st.builds(
        Role,
        st.just("r"),
        st.lists(st.sampled_from(["enqueue=a", "admin=server"])).map(lambda given: tuple(map(Grant.parse, given))),
    ),
    st.builds(
        Principal,
        st.just("p"),
        st.lists(st.sampled_from(["admin", "producer:a.**"])).map(lambda given: tuple(map(Assignment.parse, given))),
        st.integers(0),
        st.dictionaries(st.text(), st.integers()),
    ),
    st.builds(Key, st.just("k"), st.text(), st.text(), st.text(), st.integers(0), st.integers(0)),
    st.builds(LastUse, st.just("k"), st.integers(0)),
)


@given(RECORDS)
def test_a_record_reads_back(record):
    assert read(records.kind_of(type(record)), records.name_of(record), write(record)) == record


@pytest.mark.parametrize("kind, text", [("key", "{}"), ("role", '{"grants": ["fly=x"]}'), ("role", "no"), ("x", "{}")])
def test_a_damaged_record_is_refused(kind, text):
    with pytest.raises(ValueError):
        read(kind, "name", text)


def test_use_alone_tells_nobody():
    known, _, _ = registry()
    told = []
    known.on_change = lambda: told.append(1)
    known.apply([Put(LastUse("k", NOW))])
    assert told == []
    known.apply([Put(Role("r", ()))])
    assert told == [1]
    assert json.loads(write(known.last_use["k"])) == {"at": NOW}
