"""What a caller wrote wrong is named, before anything is sent."""

import asyncio
from types import SimpleNamespace

import pytest

from fila.client.auth import Auth
from fila.client.errors import InvalidArgumentError
from fila.client.peek import peek_request
from fila.client.queues import queue_config


def test_a_setting_that_does_not_exist_is_answered_with_the_one_that_was_meant():
    with pytest.raises(InvalidArgumentError, match=r"^unknown setting fairnes_header: did you mean fairness_header\?$"):
        queue_config({"fairnes_header": "tenant"})
    with pytest.raises(InvalidArgumentError, match=r"^unknown setting colour: valid names are visibility_timeout_ms, "):
        queue_config({"colour": "red"})


def test_a_filter_that_does_not_exist_is_answered_with_the_one_that_was_meant():
    with pytest.raises(InvalidArgumentError, match=r"^unknown filter fairnes_key: did you mean fairness_key\?$"):
        peek_request("q", False, 0, "", {"fairnes_key": "acme"})


@pytest.mark.parametrize("wrong", ["provider", b"provider", 7])
def test_one_name_is_not_taken_for_its_letters(wrong):
    with pytest.raises(InvalidArgumentError, match="throttle_headers must be a list"):
        queue_config({"throttle_headers": wrong})
    with pytest.raises(InvalidArgumentError, match="message_ids must be a list"):
        peek_request("q", False, 0, "", {"message_ids": wrong})


def test_a_value_of_another_type_is_named_with_its_setting():
    with pytest.raises(InvalidArgumentError, match=r"^quantum = 'four': "):
        queue_config({"quantum": "four"})
    with pytest.raises(InvalidArgumentError, match=r"^throttle_headers: "):
        queue_config({"throttle_headers": ["provider", 7]})
    with pytest.raises(InvalidArgumentError, match=r"^on_enqueue = 7: "):
        queue_config({"on_enqueue": 7})


def test_a_limit_that_does_not_exist_is_named():
    with pytest.raises(InvalidArgumentError, match=r"unknown limit open_cals: did you mean open_calls\?"):
        asyncio.run(Auth.set_principal(SimpleNamespace(), "p", [], limits={"open_cals": 2}))
