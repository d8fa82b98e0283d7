"""Whatever is changed, fails or crashes: the audit, replayed, gives the queues, settings and rights that there are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.auth.records import Role
from fila.auth.registry import Put, Remove
from fila.auth.rights import Grant
from fila.broker.audit_commands import BeginSweep, EndSweep, Origin
from fila.broker.commands import ChangeAccess, CreateQueue, DeleteQueue, Purge, SetConfig, UpdateQueue
from fila.core.errors import BrokerError
from fila.storage.audit import INTERRUPTED
from tests.helpers.broker import Driver, queue_record

names = st.sampled_from(["a", "b", "c"])
BOSS = Origin("Test", "boss", "boss-abc", "10.0.0.1:9")

commands = st.one_of(
    st.builds(lambda name: lambda reply: CreateQueue(queue_record(name), reply, BOSS), names),
    st.builds(lambda name: lambda reply: DeleteQueue(name, reply, True, BOSS), names),
    st.builds(
        lambda name, changes: lambda reply: UpdateQueue(name, changes, reply, BOSS),
        names,
        st.fixed_dictionaries({}, optional={"paused": st.booleans(), "quantum": st.integers(1, 9)}),
    ),
    st.builds(
        lambda name, value: lambda reply: SetConfig(f"throttle.{name}", value, reply, BOSS),
        names,
        st.sampled_from([None, "rate=1", "rate=2", "nonsense"]),
    ),
    st.builds(lambda name, value: lambda reply: SetConfig(name, value, reply, BOSS), names, st.none() | st.just("x")),
    st.builds(
        lambda name, grants: lambda reply: ChangeAccess([_role(name, grants)], reply, BOSS),
        names,
        st.none() | st.lists(st.sampled_from(["manage=a", "browse=b"]), max_size=2),
    ),
)
steps = st.one_of(
    st.tuples(st.just("ask"), commands),
    st.tuples(st.just("sweep"), st.tuples(names, st.integers(1, 4), st.booleans())),
    st.tuples(st.sampled_from(["restart", "fail", "heal"]), st.none()),
)


def _role(name, grants):
    return Remove(Role, name) if grants is None else Put(Role(name, tuple(map(Grant.parse, grants))))


def ask(driver, make):
    try:
        return driver.ask(make)
    except BrokerError:
        return None


def sweep(driver, name, count, ended):
    """Purge some messages, and perhaps tell that it has ended. Returns how many are gone."""
    if (
        name not in driver.state.queues
        or (number := ask(driver, lambda reply: BeginSweep(BOSS, name, {}, reply))) is None
    ):
        return 0
    done = 0
    for _ in range(2):
        places = driver.find(name)[:count]
        if places and (swept := ask(driver, lambda reply, places=places: Purge(name, places, reply, number))):
            done += swept.done
    if ended:
        ask(driver, lambda reply: EndSweep(number, reply))
    return done


def replayed(records):
    """Resources by kind and name, each with the values that it has after all entries."""
    known = {}
    for record in records:
        values = known.setdefault((record.kind, record.resource), {})
        for name, (before, after) in record.changes.items():
            assert values.get(name) in {before, None}, "the audit says what was there before"
            values[name] = after
    told = {
        about: {name: value for name, value in values.items() if value is not None} for about, values in known.items()
    }
    return {about: values for about, values in told.items() if values}


def there(state):
    """The same, as the broker has it."""
    found = {}
    for queue in state.queues.values():
        if not queue.record.source:
            told = {"quantum": str(queue.record.quantum), "paused": str(queue.record.paused).lower()}
            found["queue", queue.name] = told
    for key, value in state.config.items():
        if key.startswith("throttle."):
            found["throttle", key.removeprefix("throttle.")] = {"limit": value}
        else:
            found["config", key] = {"value": state.audit.digest(value)}
    for role in state.access.roles.values():
        found["role", role.name] = {"grants": ", ".join(map(str, role.grants))}
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=25))
def test_the_audit_replayed_is_what_there_is(plan):
    driver = Driver()
    purged = 0
    for name in ("a", "b"):
        ask(driver, lambda reply, name=name: CreateQueue(queue_record(name), reply, BOSS))
        for _ in range(6):
            driver.send(name)
    for kind, what in plan:
        if kind == "ask":
            ask(driver, what)
        elif kind == "sweep":
            purged += sweep(driver, *what)
        elif kind == "restart":
            driver.restart()
        else:
            driver.store.failing = kind == "fail"
    driver.store.failing = False
    driver.restart()
    for number in list(driver.state.audit.sweeps):
        ask(driver, lambda reply, number=number: EndSweep(number, reply, INTERRUPTED))
    records = driver.audit()
    assert len(records) == driver.state.audit.next_entry - 1
    assert sum(record.count for record in records if record.stage == "end") == purged
    told = {
        about: {
            name: value for name, value in values.items() if name in {"quantum", "paused", "limit", "value", "grants"}
        }
        for about, values in replayed(record for record in records if not record.stage).items()
    }
    expected = there(driver.state)
    for about, values in expected.items():
        if about[0] == "queue" and values["paused"] == "false":
            told[about].setdefault("paused", "false")  # as every queue is by default
        if values == {"grants": ""}:
            told.setdefault(about, values)
    assert told == expected
