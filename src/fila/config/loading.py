"""Reads the server's settings from a file and from variables.

Precedence, the last wins: 1. defaults, 2. one file, 3. OpenTelemetry's variables (`OTEL_...`), 4. `FILA_SECTION__KEY`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from fila.config.sections import Config
from fila.settings import Layers, SettingsError, read_toml, section_types, unknown
from fila.settings.section import rules

#: Where a file is looked for when none is named; the first that exists is used.
SEARCH_PATHS = (Path("fila.toml"), Path("/etc/fila/fila.toml"))

_SECTIONS = section_types(Config)
_VARIABLES = {
    f"FILA_{name}__{key}".upper(): (name, key) for name, section in _SECTIONS.items() for key in rules(section)
}
_OTEL_VARIABLES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("telemetry", "otlp_endpoint"),
    "OTEL_METRIC_EXPORT_INTERVAL": ("telemetry", "metrics_interval_ms"),
    "OTEL_SERVICE_NAME": ("telemetry", "service_name"),
}


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Read the file at `path`, or the first of `SEARCH_PATHS` that exists, then the variables.

    Raises:
        SettingsError: a file that cannot be read, or a section, key, variable or value that is not understood.
    """
    layers = Layers(_SECTIONS)
    found = path or _first_existing()
    if found is not None:
        layers.add_tables(read_toml(found), str(found))
    _check_names(environ)
    # An empty OTEL_ variable counts as not set, as OpenTelemetry has it.
    layers.add_texts({name: value for name, value in environ.items() if value}, _OTEL_VARIABLES)
    layers.add_texts(environ, _VARIABLES)
    return Config(**layers.build_all())


def _first_existing() -> Path | None:
    try:
        return next((each for each in SEARCH_PATHS if each.exists()), None)
    except OSError as error:
        raise SettingsError(f"cannot read {error.filename}: {error.strerror}") from error


def _check_names(environ: Mapping[str, str]) -> None:
    # FILA_ names without a double underscore belong to others, such as the CLI's FILA_ADDR.
    for variable in sorted(environ):
        if re.match("FILA_.*__", variable) and variable not in _VARIABLES:
            raise SettingsError(unknown("variable", variable, sorted(_VARIABLES)))
