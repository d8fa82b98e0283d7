"""Settings for all tests."""

from hypothesis import HealthCheck, Phase, settings

# A shared or busy machine must not fail a property: time is bounded per test by pytest-timeout instead. Explaining a
# failure traces every line, which makes the large state machines run into that bound before they show it.
settings.register_profile(
    "fila",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.load_profile("fila")
