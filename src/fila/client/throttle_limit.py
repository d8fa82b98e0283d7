"""The limit of a throttle key as users write it and the broker tells it: `rate=50,burst=100,max_in_flight=20`.

It is the value of the entry `throttle.KEY` of the runtime configuration, and `ThrottleStats.limit`.
"""

from dataclasses import dataclass, fields
from typing import Self

#: What the entries of limits begin with, before the throttle key.
PREFIX = "throttle."

_BARE = ("rate", "burst")


@dataclass(frozen=True, slots=True)
class ThrottleLimit:
    """What a throttle key allows: the same parts as the broker knows, in the same order."""

    #: Tokens a second.
    rate: float | None = None
    #: Tokens that can be saved up.
    burst: float | None = None
    #: Messages that consumers hold at one time.
    max_in_flight: int | None = None
    #: What else is in the text, as it stands there: parts that only a later broker knows.
    others: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a limit, or `50,100`, which is rate and burst. What cannot be read is kept in `others`."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        if "=" not in text and len(words) == len(_BARE):
            words = [f"{name}={word}" for name, word in zip(_BARE, words, strict=True)]
        parts: dict[str, float | int] = {}
        others = []
        for word in words:
            name, _, value = (each.strip() for each in word.partition("="))
            try:
                parts[name] = _READERS[name](value)
            except (KeyError, ValueError):
                others.append(word)
        return cls(**parts, others=",".join(others))  # type: ignore[arg-type]  # each is read as its type

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.texts().items()]
        return ",".join([*parts, self.others] if self.others else parts)

    def texts(self) -> dict[str, str]:
        """The parts that are given, by their names, as they are written."""
        given = {name: getattr(self, name) for name in _READERS}
        return {name: repr(value).removesuffix(".0") for name, value in given.items() if value is not None}

    @property
    def bucket(self) -> float | None:
        """The most tokens: the burst, or those of one second, and at least one. None without a rate."""
        return None if self.rate is None else max(1.0, self.rate if self.burst is None else self.burst)


_READERS = {
    part.name: int if part.type == int | None else float for part in fields(ThrottleLimit) if part.name != "others"
}
