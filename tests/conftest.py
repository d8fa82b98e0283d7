"""Settings for all tests."""

from hypothesis import settings

# A shared or busy machine must not fail a property: time is bounded per test by pytest-timeout instead.
settings.register_profile("fila", deadline=None)
settings.load_profile("fila")
