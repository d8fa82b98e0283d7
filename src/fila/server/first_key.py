"""The first key on the data directory of a stopped server, or one more when all admin keys are lost.

Whoever may write the directory owns the broker, so no key is asked for.
"""

import os
from pathlib import Path
from time import time_ns
from typing import Final

from fila.auth.keys import new_key
from fila.auth.records import Assignment, Principal
from fila.auth.registry import Change, Put, Registry
from fila.broker.access import PREFIX, load_record, write_changes
from fila.broker.audit import Audit
from fila.broker.audit_commands import Origin
from fila.broker.audit_entries import access_entries
from fila.cluster.folder import store_of_rights
from fila.core.errors import BrokerError
from fila.replicas.folder import check_none
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage
from fila.storage.opening import open_found

ADMIN: Final = "admin"


def create_admin_key(data_dir: Path) -> tuple[str, str]:
    """Make a key of the principal `admin`. Returns its id and its text, which is shown once.

    Raises OSError with what is wrong, such as that a server has the directory open.
    """
    umask = os.umask(0o077)
    try:
        check_none(data_dir)
        store = open_found(store_of_rights(data_dir))
        try:
            return _create(store)
        finally:
            store.close()
    except (BrokerError, ValueError, PermissionError) as cause:
        raise OSError(str(cause)) from cause
    finally:
        os.umask(umask)


def rights_of(store: Storage) -> Registry:
    """Keys, principals and roles, as a store has them."""
    registry = Registry()
    for key, value in store.scan(Family.STATE):
        name, _ = keys.read_name(key, 0)
        if name.startswith(PREFIX):
            load_record(registry, name, codec.read_setting(value))
    return registry


def _create(store: Storage) -> tuple[str, str]:
    registry = rights_of(store)
    now = time_ns()
    made, token = new_key(ADMIN, now)
    changes: list[Change] = [Put(made)]
    if ADMIN not in registry.principals:
        changes.append(Put(Principal(ADMIN, (Assignment(ADMIN),), now)))
    registry.check(changes, now)
    batch = Batch()
    write_changes(batch, changes)
    audit = Audit()
    audit.load(store)
    audit.write(batch, store, access_entries(registry, changes, Origin("InitKey", peer="data directory"), now))
    store.write(batch)
    return made.id, token
