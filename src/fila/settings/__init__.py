"""Settings: declared as frozen dataclasses, loaded from TOML files and variables, refused with one kind of message.

Declare a section:

    @dataclass(frozen=True, slots=True)
    class WorkerSettings(Section):
        concurrency: int = whole_number(4, 1, 1000)
        grace_seconds: float = seconds(30.0, low=0)

Load it:

    layers = Layers({"worker": WorkerSettings})
    layers.add_tables(read_toml(path), origin=str(path))
    layers.add_texts(os.environ, {"WORKER_CONCURRENCY": ("worker", "concurrency")})
    settings = layers.build("worker")

Rules:
- A section cannot exist with a bad value, whether it was made in code, from a file or from a variable.
- Later layers win over earlier ones. A bad value is refused even if a later layer replaces it.
- Unknown sections and keys are refused, never ignored.
- The value of a field with `repr=False` may be a password: no message shows it.

Every message is one line: where it was set, its name, the value, what is allowed.

    fila.toml: scheduler.quantum = 0: expected a whole number from 1 to 1000000
    fila.toml: unknown key server.listen: expected one of listen_addr, ... (did you mean listen_addr?)
"""

from fila.settings.errors import SettingsError, unknown
from fila.settings.fields import address, choice, flag, mapping, number, seconds, setting, text, text_list, whole_number
from fila.settings.layers import Layers, read_toml, section_types
from fila.settings.section import Rule, Section

__all__ = [
    "Layers",
    "Rule",
    "Section",
    "SettingsError",
    "address",
    "choice",
    "flag",
    "mapping",
    "number",
    "read_toml",
    "seconds",
    "section_types",
    "setting",
    "text",
    "text_list",
    "unknown",
    "whole_number",
]
