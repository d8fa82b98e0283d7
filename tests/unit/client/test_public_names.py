"""The public API: a name that comes, goes or moves is a decision, so it is written down here too."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fila
from fila import client, testing
from fila.client.message import Settles
from tests.helpers.contract import METHODS as CALLS

NAMES = """
    TLS AckManyError AckedClaims AsyncClient AsyncConsumeMessage AsyncConsumer AsyncGroup AsyncJournalReader
    AsyncTransaction AuditChange AuditEntry AuditOptions Auth BlockingAuth CapacityStats CertificateRuleInfo
    ClaimInfo ClaimLostError Client ClientClosedError ConfigNotFoundError
    ConsumeMessage Consumer ConsumerStats DeadLetter Description DuplicateId EnqueueDecision EnqueueManyError
    Explanation
    ExtendedClaims FailedAttempt FailedPreconditionError FailureDecision FencedError FilaError FilaTimeoutError Group
    GroupFloor
    GroupStats HookStats HookTrial Identity InternalError InvalidArgumentError JournalBatch JournalEntry
    JournalOptions JournalReader KeyInfo KeyStats LimitExceededError MessageFilter MessageNotFoundError NewKey
    NotStagedError OutgoingMessage OverloadedError PeekPage PeekedMessage PermissionDeniedError PrincipalInfo
    QueueAlreadyExistsError QueueConfig QueueCounters QueueFullError QueueInfo QueueNotFoundError QueueSettings
    QueueStats
    ReadMessage ReadOptions RoleInfo SchedulerStats ServerInfo ServerStore ServerTls StagedPart TLSError
    ThrottleStats Transaction UnavailableError
    WaitReason WaitStats
"""

METHODS = """
    ack ack_many auth consume consume_batches create_queue delete_config delete_queue describe describe_server enqueue
    enqueue_many ensure_queue
    explain extend get_config group list_config list_queues nack pause_queue peek purge queue_stats read_audit
    read_journal
    read_journal_batches read_queue redrive reject release resume_queue set_config transaction try_hook update_queue
"""


def public(of):
    return {name for name in dir(of) if not name.startswith("_")}


def test_the_public_names_are_these():
    """`fila.client` owns the list; `fila` has the same names, and its version."""
    assert client.__all__ == NAMES.split()
    assert dir(fila) == fila.__all__ == sorted([*NAMES.split(), "__version__"])
    assert all(getattr(fila, name) is getattr(client, name) for name in NAMES.split())


def test_both_clients_have_the_same_methods():
    assert public(fila.Client) == {*METHODS.split(), "close", "read_queue_packed"}
    assert public(fila.AsyncClient) == {*METHODS.split(), "close"}


def test_a_message_settles_itself_in_every_way_that_a_client_settles_one():
    """A client's method that takes the lease of a message settles it, or tells that it takes longer."""

    def settles(client_class):
        methods = {name: getattr(client_class, name) for name in METHODS.split()}
        taking = {name: inspect.signature(method).parameters for name, method in methods.items() if callable(method)}
        return {name for name, parameters in taking.items() if "lease_id" in parameters}

    assert settles(fila.AsyncClient) == settles(fila.Client) == public(Settles)
    for message in (fila.ConsumeMessage, fila.AsyncConsumeMessage):
        assert public(Settles) <= public(message)


UNUSED = {"GetClusterMap", "EnqueueBatch", "Lease", "Nack", "ExtendLease"}
"""Calls of plain clients: the SDK uses a stream instead, or learns of other members by what they refuse."""


def test_every_call_of_the_contract_is_made_by_the_sdk():
    source = "\n".join(path.read_text() for path in Path(client.__path__[0]).glob("*.py"))
    assert {name for name in CALLS if not re.search(rf'[."/]{name}\b', source)} == UNUSED


def test_another_name_is_an_attribute_error():
    for name in ("Nonsense", "nonsense", "aio"):
        with pytest.raises(AttributeError, match=f"module 'fila' has no attribute '{name}'"):
            getattr(fila, name)


def test_all_names_can_be_imported_at_once():
    done = subprocess.run(
        [sys.executable, "-c", "from fila import *; print(Client.__name__)"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Client\n"


def test_the_sdk_is_loaded_on_first_use():
    """A module of the broker, or the help of the command, does not pay for it."""
    program = "import sys, fila.core, fila.cli.main; print('fila.client' in sys.modules); fila.Client; print('ok')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nok\n"


def test_the_tools_for_tests_are_these():
    names = ["MemoryStorage", "RedisProcess", "ServerFailed", "ServerProcess", "VirtualClock", "VirtualJobs"]
    assert testing.__all__ == names
    assert [getattr(testing, name).__name__ for name in names] == names
