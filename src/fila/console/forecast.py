"""What a limit means for those who wait. Pure."""


def empty_in(waiting: int, rate: float, tokens: float = 0.0) -> float:
    """Seconds until so many messages of cost 1 have passed a rate, if no more come."""
    return max(0.0, waiting - max(0.0, tokens)) / rate


def ladder(rate: float, asked: float | None) -> list[float]:
    """Rates to compare: the present one, others around it, and the one that somebody asks about."""
    rates = {rate, rate / 2, rate * 2, rate * 5}
    return sorted(rates | ({asked} if asked is not None and 0 < asked < 1e12 else set()))
