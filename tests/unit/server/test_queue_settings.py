"""A queue setting is known in all the places that have to know it."""

from dataclasses import fields

from fila import QueueConfig, QueueSettings
from fila.server.queue_settings import HEADERS, NUMBERS
from fila.storage.records import QueueRecord
from fila.v1 import admin_pb2

ON_THE_WIRE = {field.name for field in admin_pb2.QueueConfig.DESCRIPTOR.fields}
OTHERS = {"throttle_headers", "script", "overflow"}
"""Which have checks of their own"""


def test_every_setting_of_the_contract_is_read():
    """One that is not would be accepted and ignored."""
    assert {*NUMBERS, *HEADERS, *OTHERS} == ON_THE_WIRE


def test_every_setting_of_the_contract_is_stored():
    assert {field.name for field in fields(QueueRecord)} >= ON_THE_WIRE


def test_the_sdk_has_every_setting():
    hooks = {"on_enqueue", "on_failure"}  # from which the SDK makes the script
    assert set(QueueSettings.__annotations__) == ON_THE_WIRE | hooks
    assert {field.name for field in fields(QueueConfig)} >= ON_THE_WIRE
