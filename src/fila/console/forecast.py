"""What a limit means for those who wait. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a throttle key, as it is set: `rate=50,burst=100,max_in_flight=20`, or `50,100`."""

    rate: float | None = None
    burst: float | None = None
    max_in_flight: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Limit":
        """What can be read of it; the broker has checked it."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        if "=" not in text:
            words = [f"{name}={word}" for name, word in zip(("rate", "burst"), words, strict=False)]
        parts: dict[str, float] = {}
        for word in words:
            name, _, number = word.partition("=")
            try:
                parts[name.strip()] = float(number)
            except ValueError:
                continue
        cap = parts.get("max_in_flight")
        return cls(parts.get("rate"), parts.get("burst"), None if cap is None else int(cap))

    def __str__(self) -> str:
        parts = {"rate": self.rate, "burst": self.burst, "max_in_flight": self.max_in_flight}
        return ",".join(f"{name}={_plain(number)}" for name, number in parts.items() if number is not None)

    @property
    def bucket(self) -> float | None:
        """The most tokens: the burst, or those of one second, and at least one."""
        return None if self.rate is None else max(1.0, self.rate if self.burst is None else self.burst)


def empty_in(waiting: int, rate: float, tokens: float = 0.0) -> float:
    """Seconds until so many messages of cost 1 have passed a rate, if no more come."""
    return max(0.0, waiting - max(0.0, tokens)) / rate


def ladder(rate: float, asked: float | None) -> list[float]:
    """Rates to compare: the present one, others around it, and the one that somebody asks about."""
    rates = {rate, rate / 2, rate * 2, rate * 5}
    return sorted(rates | ({asked} if asked is not None and 0 < asked < 1e12 else set()))


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
