"""API keys in every database."""

import pytest
from sqlalchemy import text

from fila.reconcile.access.rights import Role
from fila.reconcile.store.keys import USE_NOTED_EVERY_MS, KeyNotFound
from tests.helpers.reconcile import NOW

HOUR = 3_600_000


def test_a_key_is_known_by_its_text_and_no_secret_is_kept(store):
    assert not store.keys.exist()
    made, token = store.keys.create(Role.AFFILIATE, "ada", NOW)
    assert store.keys.exist()
    found = store.keys.check(token, NOW)
    assert (found.id, found.role, found.affiliate_id) == (made.id, Role.AFFILIATE, "ada")
    with store._database.reading() as session:
        row = session.execute(text("SELECT * FROM api_keys")).one()
    assert token[-64:] not in repr(row)
    assert store.keys.check(token[:-1] + ("0" if token[-1] != "0" else "1"), NOW) is None


def test_two_keys_of_the_same_owner_are_different(store):
    first, second = (store.keys.create(Role.OPERATOR, None, NOW) for _ in range(2))
    assert len({first[0].id, second[0].id, first[0].salt, second[0].salt, first[1][-64:], second[1][-64:]}) == 6


@pytest.mark.parametrize("role, affiliate", [(Role.AFFILIATE, None), (Role.OPERATOR, "ada"), (Role.VIEWER, "ada")])
def test_an_affiliates_key_names_one_and_others_do_not(store, role, affiliate):
    with pytest.raises(ValueError, match="names an affiliate"):
        store.keys.create(role, affiliate, NOW)


def test_at_a_rotation_both_are_good_for_a_while(store):
    old, old_token = store.keys.create(Role.AFFILIATE, "ada", NOW)
    new, token = store.keys.rotate(old.id, NOW, overlap_ms=HOUR)
    assert (new.role, new.affiliate_id) == (old.role, old.affiliate_id)
    assert all(store.keys.check(each, NOW + HOUR - 1) for each in (old_token, token))
    assert store.keys.check(old_token, NOW + HOUR) is None
    assert store.keys.check(token, NOW + 1_000 * HOUR)


def test_a_rotation_does_not_make_the_old_one_last_longer(store):
    old, old_token = store.keys.create(Role.VIEWER, None, NOW, NOW + 10)
    store.keys.rotate(old.id, NOW, overlap_ms=HOUR)
    assert store.keys.check(old_token, NOW + 10) is None


def test_what_is_over_is_neither_rotated_nor_revoked_again(store):
    made, token = store.keys.create(Role.VIEWER, None, NOW)
    store.keys.revoke(made.id, NOW + 1)
    assert store.keys.check(token, NOW + 1) is None
    assert [each.state(NOW + 1) for each in store.keys.all()] == ["revoked"]
    for change in (lambda: store.keys.revoke(made.id, NOW), lambda: store.keys.rotate(made.id, NOW, overlap_ms=0)):
        with pytest.raises(KeyNotFound, match=made.id):
            change()
    assert store.keys.exist(), "a revoked key does not open the API again"


def test_the_last_use_is_noted_once_a_minute(store):
    _, token = store.keys.create(Role.VIEWER, None, NOW)
    seen = []
    for later in (0, USE_NOTED_EVERY_MS - 1, USE_NOTED_EVERY_MS):
        store.keys.check(token, NOW + later)
        seen.append(store.keys.all()[0].last_used_at_ms - NOW)
    assert seen == [0, 0, USE_NOTED_EVERY_MS]
