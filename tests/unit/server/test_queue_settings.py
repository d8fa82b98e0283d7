"""A queue setting is known in all the places that have to know it."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from fila import QueueConfig, QueueSettings
from fila.cli import views
from fila.cli.main import cli
from fila.console.pages.queue_settings import GROUPS
from fila.core.errors import InvalidArgument
from fila.server.queue_settings import HEADERS, NUMBERS, read_settings
from fila.storage import codec
from fila.storage.records import QueueRecord
from fila.v1 import admin_pb2

DOCS = Path(__file__).parents[3] / "docs"
ON_THE_WIRE = {field.name for field in admin_pb2.QueueConfig.DESCRIPTOR.fields}
OTHERS = {"throttle_headers", "script", "overflow"}
"""Which have checks of their own"""
HOOKS = {"on_enqueue", "on_failure"}
"""Of which the server makes the script"""


def test_every_setting_of_the_contract_is_read():
    """One that is not would be accepted and ignored."""
    assert {*NUMBERS, *HEADERS, *OTHERS, *HOOKS} == ON_THE_WIRE


def test_every_setting_of_the_contract_is_stored():
    assert {field.name for field in fields(QueueRecord)} >= ON_THE_WIRE - HOOKS


def test_the_sdk_has_every_setting():
    assert set(QueueSettings.__annotations__) == ON_THE_WIRE
    assert {field.name for field in fields(QueueConfig)} >= ON_THE_WIRE - HOOKS


def test_the_command_sets_and_shows_every_setting():
    for name in ("create", "update"):
        assert {option.name for option in cli.commands["queue"].commands[name].params} >= ON_THE_WIRE
    assert set(views._CONFIG) == ON_THE_WIRE - HOOKS


def test_the_console_edits_every_setting():
    """Scripts have a page of their own."""
    edited = {each.name for group in GROUPS.values() for each in group}
    assert edited == ON_THE_WIRE - HOOKS - {"script"}


def test_every_option_of_a_setting_is_on_the_page_of_the_command():
    page = (DOCS / "cli.md").read_text()
    options = [option for option in cli.commands["queue"].commands["create"].params if option.name in ON_THE_WIRE]
    assert [option.opts[0] for option in options if f"`{option.opts[0]}" not in page] == []


@pytest.mark.parametrize(
    "config, told",
    [
        *[
            (admin_pb2.QueueConfig(overflow=one), f"overflow is {one}, which is no Overflow of a request")
            for one in (0, 99)
        ],
        (admin_pb2.QueueConfig(max_depth=1 << 60), "max_depth must be from 0 to 9007199254740992"),
        (admin_pb2.QueueConfig(max_bytes=1 << 60), "max_bytes must be from 0 to 9007199254740992"),
    ],
)
def test_limits_that_mean_nothing_are_refused(config, told):
    with pytest.raises(InvalidArgument, match=told):
        read_settings(config)


def test_a_queue_of_before_there_were_limits_has_none():
    """Its record has no such fields."""
    record = QueueRecord("q", 1, 2, 3, 4)
    fields_before = {"name": "q", "created_at": 1, "visibility_timeout_ms": 2, "quantum": 3, "dedup_window_ms": 4}
    assert codec.read_queue(b"\x01" + json.dumps(fields_before).encode()) == record
    assert (record.max_depth, record.max_bytes, record.overflow, record.owner) == (0, 0, "reject", "")
