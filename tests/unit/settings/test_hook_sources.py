"""A script that is given as two sources."""

from fila.settings.hook_sources import HookSources


def test_a_hook_that_is_alone_stands_as_it_was_written():
    for hooks in (HookSources(on_enqueue="a\nb"), HookSources(on_failure="a\nb"), HookSources("a\nb", "a\nb")):
        assert hooks.script == "a\nb"
    assert HookSources(on_failure="a\nb").located("script:2: why") == "on_failure:2: why"
    assert HookSources("a\nb", "a\nb").located("script:2: why") == "on_enqueue:2: why"


def test_lines_of_a_composed_script_are_those_of_its_sources():
    hooks = HookSources("e1\ne2\ne3", "f1\nf2")
    lines = hooks.script.split("\n")
    for number, line in enumerate(lines[:5], start=1):
        name = "on_enqueue" if "e" in line.replace("end", "") else "on_failure"
        assert hooks.located(f"script:{number}: why") == f"{name}:{line[-1]}: why"
