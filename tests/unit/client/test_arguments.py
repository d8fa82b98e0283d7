"""What a caller wrote wrong is named, before anything is sent."""

import pytest

from fila.client.errors import InvalidArgumentError
from fila.client.hooks import Hooks
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


def test_hooks_are_given_as_one_script_or_as_two():
    with pytest.raises(InvalidArgumentError, match="script and on_failure cannot both be given"):
        queue_config({"script": "-- both", "on_failure": "-- one"})
    with pytest.raises(InvalidArgumentError, match="on_enqueue must be Lua source text"):
        queue_config({"on_enqueue": 7})


def test_a_hook_that_is_alone_stands_as_it_was_written():
    for hooks in (Hooks(on_enqueue="a\nb"), Hooks(on_failure="a\nb"), Hooks("a\nb", "a\nb")):
        assert hooks.script == "a\nb"
    assert Hooks(on_failure="a\nb").located("script:2: why") == "on_failure:2: why"
    assert Hooks("a\nb", "a\nb").located("script:2: why") == "on_enqueue:2: why"


def test_lines_of_a_composed_script_are_those_of_its_sources():
    hooks = Hooks("e1\ne2\ne3", "f1\nf2")
    lines = hooks.script.split("\n")
    for number, line in enumerate(lines[:5], start=1):
        name = "on_enqueue" if "e" in line.replace("end", "") else "on_failure"
        assert hooks.located(f"script:{number}: why") == f"{name}:{line[-1]}: why"
