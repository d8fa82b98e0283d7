"""The small language of scenarios: `$variables`, values that are made, and what an answer must look like.

In what a scenario sends, and in what it expects:

| | |
|---|---|
| "$name" | the variable; inside a longer text too |
| {"@text" = "x"}, {"@bytes" = [0, 255]}, {"@zeros" = n, "@more" = m} (n + m zeros) | a payload in base64 |
| {"@repeat" = n, "@value" = {...}} | a list of n times the value, where "#" is the number from 0 |

In what it expects only: a table matches if each of its fields does (others may be there), a list if its items do,
one by one. {"@any" = true}, {"@at_least" = n}, {"@at_most" = n}, {"@at_most_more" = [n, m]} (n + m), {"@len" = n},
{"@in" = [..]}, {"@not" = m}, {"@contains" = m} (one item, or a part of a text), {"@set" = [..]} (in any order),
{"@unique" = true}, {"@each" = m},
{"@numbers" = n} (texts that begin with the numbers 0 to n-1, in this order), {"@numbers_any_order" = n} (each once).
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

Variables = Mapping[str, Any]


class Mismatch(Exception):
    """An answer is not what the scenario expects."""


def expand(value: Any, variables: Variables) -> Any:
    """Put variables and made values into what a scenario says. Raises KeyError for an unknown variable."""
    match value:
        case str():
            return _text(value, variables)
        case list():
            return [expand(item, variables) for item in value]
        case {"@text": str(text)}:
            return _base64(str(expand(text, variables)).encode())
        case {"@bytes": list(numbers)}:
            return _base64(bytes(numbers))
        case {"@zeros": size}:
            return _base64(bytes(int(expand(size, variables)) + int(value.get("@more", 0))))
        case {"@repeat": count, "@value": item}:
            return [expand(_numbered(item, number), variables) for number in range(int(expand(count, variables)))]
        case dict():
            return {expand(key, variables): expand(item, variables) for key, item in value.items()}
    return value


def _text(text: str, variables: Variables) -> Any:
    if text.startswith("$") and text[1:] in variables:
        return variables[text[1:]]
    for name in sorted(variables, key=len, reverse=True):
        if f"${name}" in text:
            text = text.replace(f"${name}", str(variables[name]))
    if "$" in text:
        raise KeyError(f"{text!r} names a variable that does not exist")
    return text


def _numbered(value: Any, number: int) -> Any:
    match value:
        case str():
            return value.replace("#", str(number))
        case list():
            return [_numbered(item, number) for item in value]
        case dict():
            return {key: _numbered(item, number) for key, item in value.items()}
    return value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def check(expected: Any, found: Any, where: str = "answer") -> None:
    """Raises Mismatch."""
    match expected:
        case dict() if any(str(key).startswith("@") for key in expected):
            for rule, wanted in expected.items():
                if rule not in _RULES:
                    raise ValueError(f"no such rule: {rule}")
                _RULES[rule](wanted, found, where)
        case dict():
            _require(isinstance(found, dict), where, "a table", found)
            for key, wanted in expected.items():
                _require(key in found, where, f"a field {key}", found)
                check(wanted, found[key], f"{where}.{key}")
        case list():
            _require(isinstance(found, list) and len(found) == len(expected), where, f"{len(expected)} items", found)
            for index, wanted in enumerate(expected):
                check(wanted, found[index], f"{where}[{index}]")
        case _:
            same = found == expected and isinstance(found, bool) == isinstance(expected, bool)
            _require(same, where, repr(expected), found)


def pick(found: Any, path: str) -> Any:
    """The value at a path such as "messages.0.id"; "messages.*.id" gives a list. Raises Mismatch."""
    name, _, rest = path.partition(".")
    if not name:
        return found
    if name == "*":
        _require(isinstance(found, list), path, "a list", found)
        return [pick(item, rest) for item in found]
    try:
        return pick(found[int(name)] if isinstance(found, list) else found[name], rest)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise Mismatch(f"no {path} in {shown(found)}") from error


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _require(holds: bool, where: str, wanted: str, found: Any) -> None:
    if not holds:
        raise Mismatch(f"{where}: expected {wanted}, found {shown(found)}")


def _matches(expected: Any, found: Any) -> bool:
    try:
        check(expected, found)
    except Mismatch:
        return False
    return True


def _contains(wanted: Any, found: Any, where: str) -> None:
    if isinstance(found, str):
        _require(str(wanted) in found, where, f"a text with {wanted!r}", found)
    else:
        held = isinstance(found, list) and any(_matches(wanted, item) for item in found)
        _require(held, where, f"an item like {shown(wanted)}", found)


def _as_set(wanted: list[Any], found: Any, where: str) -> None:
    _require(isinstance(found, list) and len(found) == len(wanted), where, f"{len(wanted)} items", found)
    left = list(found)
    for each in wanted:
        at = next((index for index, item in enumerate(left) if _matches(each, item)), None)
        _require(at is not None, where, f"an item like {shown(each)}", found)
        assert at is not None
        del left[at]


def _each(wanted: Any, found: Any, where: str) -> None:
    _require(isinstance(found, list), where, "a list", found)
    for index, item in enumerate(found):
        check(wanted, item, f"{where}[{index}]")


def _unique(_: Any, found: Any, where: str) -> None:
    _require(isinstance(found, list), where, "a list", found)
    double = len(found) - len({repr(item) for item in found})
    _require(double == 0, where, "no item twice", f"{double} of {len(found)} items again")


def _numbers(found: Any, where: str) -> list[int]:
    _require(isinstance(found, list), where, "a list of texts", found)
    try:
        return [int(str(item).split(maxsplit=1)[0]) for item in found]
    except (ValueError, IndexError) as error:
        raise Mismatch(f"{where}: expected texts that begin with a number, found {shown(found)}") from error


def _in_order(count: int, found: Any, where: str) -> None:
    numbers = _numbers(found, where)
    if numbers != list(range(count)):
        wrong = next((i for i, (a, b) in enumerate(zip(numbers, range(count), strict=False)) if a != b), len(numbers))
        raise Mismatch(
            f"{where}: expected 0 to {count - 1} in order, found {len(numbers)}, wrong from place {wrong} on"
        )


def _any_order(count: int, found: Any, where: str) -> None:
    numbers = _numbers(found, where)
    lost = set(range(count)) - set(numbers)
    if sorted(numbers) != list(range(count)):
        double = len(numbers) - len(set(numbers))
        raise Mismatch(f"{where}: expected 0 to {count - 1} once each; {len(lost)} are missing, {double} came twice")


def _length(wanted: Any, found: Any, where: str) -> None:
    _require(isinstance(found, list | dict | str), where, "something with a length", found)
    check(wanted, len(found), f"length of {where}")


def _number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool)


_RULES: Mapping[str, Callable[[Any, Any, str], None]] = {
    "@any": lambda _, found, where: _require(found is not None, where, "anything", found),
    "@at_least": lambda low, found, where: _require(_number(found) and found >= low, where, f"at least {low}", found),
    "@at_most": lambda high, found, where: _require(_number(found) and found <= high, where, f"at most {high}", found),
    "@at_most_more": lambda parts, found, where: check({"@at_most": sum(parts)}, found, where),
    "@len": _length,
    "@in": lambda some, found, where: _require(found in some, where, f"one of {shown(some)}", found),
    "@not": lambda other, found, where: _require(not _matches(other, found), where, f"not {shown(other)}", found),
    "@contains": _contains,
    "@set": _as_set,
    "@unique": _unique,
    "@each": _each,
    "@numbers": _in_order,
    "@numbers_any_order": _any_order,
}
