import json
import tomllib
from contextlib import suppress
from dataclasses import FrozenInstanceError, asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.config import ClusterConfig, Config, JwtConfig, LimitsConfig, ServerConfig, load, loading
from fila.settings import SettingsError

EXAMPLE = Path(__file__).parents[2] / "deploy" / "fila.toml.example"
DEFAULTS = asdict(Config())
KEYS = [(section, key) for section, values in DEFAULTS.items() for key in values]
NUMBERS = [(section, key) for section, key in KEYS if isinstance(DEFAULTS[section][key], int)]


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No test reads a configuration that happens to lie about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "SEARCH_PATHS", (Path("fila.toml"), tmp_path / "etc" / "fila.toml"))


def written(text: str, path: str = "some.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def refusal(text: str | None = None, **environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(None if text is None else written(text), environ)
    return str(caught.value)


def test_the_example_file_is_every_key_with_its_default():
    assert tomllib.loads(EXAMPLE.read_text(encoding="utf-8")) == json.loads(json.dumps(DEFAULTS))  # tuples are lists
    assert load(EXAMPLE, {}) == Config()


def test_without_file_and_variables_the_defaults_hold():
    assert load(None, {}) == Config()


def test_a_named_file_wins_over_the_searched_ones():
    written('[log]\nlevel = "error"\n', "fila.toml")
    assert load(written('[log]\nlevel = "debug"\n'), {}).log.level == "debug"


def test_the_working_folder_comes_before_etc():
    written("[scheduler]\nquantum = 2\n", "etc/fila.toml")
    assert load(None, {}).scheduler.quantum == 2
    written("[scheduler]\nquantum = 3\n", "fila.toml")
    assert load(None, {}).scheduler.quantum == 3


def test_a_variable_overrides_the_file_and_leaves_the_rest_of_its_section():
    file = written('[server]\nlisten_addr = "127.0.0.1:1"\nshutdown_grace_ms = 5\n')
    loaded = load(file, {"FILA_SERVER__LISTEN_ADDR": "[::1]:2"})
    assert loaded.server == ServerConfig(listen_addr="[::1]:2", shutdown_grace_ms=5)


@pytest.mark.parametrize("section, key", KEYS)
def test_every_key_can_be_set_by_its_variable(section, key):
    default = DEFAULTS[section][key]
    text = ",".join(default) if isinstance(default, tuple) else str(default)
    assert load(None, {f"FILA_{section}__{key}".upper(): text}) == Config()


@given(st.sampled_from(NUMBERS), st.integers(-10, 2**50))
def test_a_number_is_taken_or_refused_the_same_way_from_file_variable_and_code(where, number):
    section, key = where

    def outcome(make):
        try:
            return getattr(getattr(make(), section), key)
        except SettingsError:
            return "refused"

    def in_code():
        return replace(Config(), **{section: replace(getattr(Config(), section), **{key: number})})

    file = written(f"[{section}]\n{key} = {number}\n")
    outcomes = {
        outcome(lambda: load(file, {})),
        outcome(lambda: load(None, {f"FILA_{section}__{key}".upper(): str(number)})),
        outcome(in_code),
    }
    assert outcomes in ({number}, {"refused"})


@pytest.mark.parametrize(
    "toml",
    [
        "[scheduler]\nquantum = true",
        "[scheduler]\nquantum = 4.0",
        '[scheduler]\nquantum = "4"',
        "[scheduler]\nquantum = 0",
        "[scheduler]\nquantum = [4]",
        '[storage]\ndurability = "maybe"',
        "[storage]\ndurability = []",
        '[storage]\ndata_dir = ""',
        "[storage]\ndata_dir = 3",
        '[log]\nlevel = "INFO"',
        "[log]\nformat = {}",
        "[limits]\nmax_payload_bytes = 0",
    ],
)
def test_a_bad_value_is_refused_with_its_key_file_and_what_was_expected(toml):
    section, key = toml.split("]")[0][1:], toml.split("\n")[1].split(" ")[0]
    message = refusal(toml)
    assert message.startswith(f"some.toml: {section}.{key} = ")
    assert ": expected " in message


@pytest.mark.parametrize(
    "address",
    [
        *("", "5555", ":5555", "localhost", "localhost:", "localhost:x", "localhost:65536", "localhost:-1", "a b:1"),
        *("http://localhost:1", "::1:5555", "[::1]", "[nope]:1", "[]:1", "999.0.0.1:1", "1.2.3:1", "localhost:1\n"),
    ],
)
def test_a_bad_address_is_refused(address):
    message = refusal(FILA_SERVER__LISTEN_ADDR=address)
    assert message.startswith(f"FILA_SERVER__LISTEN_ADDR: server.listen_addr = {address!r}: expected an address")


@pytest.mark.parametrize("address", ["0.0.0.0:5555", "localhost:0", "my-host.example:65535", "[::]:1", "[fe80::1]:1"])
def test_a_good_address_is_taken(address):
    assert load(None, {"FILA_SERVER__LISTEN_ADDR": address}).server.listen_addr == address


def test_a_bad_variable_is_refused_with_its_name_and_what_was_expected():
    message = refusal(FILA_SCHEDULER__QUANTUM="four")
    assert message == "FILA_SCHEDULER__QUANTUM: scheduler.quantum = 'four': expected a whole number from 1 to 1000000"


def test_a_bad_value_in_the_file_is_refused_even_where_a_variable_overrides_it():
    assert "some.toml" in refusal("[scheduler]\nquantum = 0", FILA_SCHEDULER__QUANTUM="4")


def test_an_unknown_key_is_refused_by_name_with_the_known_ones():
    message = refusal('[server]\nlisten = "x"')
    known = "listen_addr, insecure, shutdown_grace_ms, stay_awake_us, max_connections, max_peer_connections"
    known += ", max_held_bytes, slow_turn_ms, workers, worker_port"
    assert message == f"some.toml: unknown key server.listen: expected one of {known} (did you mean listen_addr?)"


def test_an_unknown_section_is_refused_by_name():
    assert refusal("[servers]").startswith(
        "some.toml: unknown section 'servers': expected one of server, tls, jwt, storage"
    )


def test_a_section_must_be_a_table():
    assert refusal("server = 3") == "some.toml: server = 3: expected a section, [server]"


@pytest.mark.parametrize(
    "variable",
    ["FILA_SERVER__LISTEN", "FILA_NOPE__KEY", "FILA_SERVER__listen_addr", "FILA___", "FILA_SERVER__LISTEN_ADDR__X"],
)
def test_an_unknown_variable_with_a_double_underscore_is_refused_by_name(variable):
    assert refusal(**{variable: "x"}).startswith(f"unknown variable {variable}: expected one of ")


def test_variables_of_opentelemetry_are_understood_and_ours_come_after_them():
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317",
        "OTEL_METRIC_EXPORT_INTERVAL": "5000",
        "OTEL_SERVICE_NAME": "theirs",
        "FILA_TELEMETRY__SERVICE_NAME": "ours",
    }
    telemetry = load(written('[telemetry]\notlp_endpoint = "http://file:4317"'), environ).telemetry
    assert (telemetry.otlp_endpoint, telemetry.metrics_interval_ms) == ("http://collector:4317", 5000)
    assert telemetry.service_name == "ours"
    assert load(None, {"OTEL_SERVICE_NAME": ""}).telemetry.service_name == "fila"
    assert "OTEL_METRIC_EXPORT_INTERVAL" in refusal(OTEL_METRIC_EXPORT_INTERVAL="often")


@pytest.mark.parametrize(
    "endpoint", ["localhost:4317", "ftp://localhost:4317", "http://localhost", "http://:1", "http://a b:1"]
)
def test_a_bad_endpoint_is_refused(endpoint):
    assert "telemetry.otlp_endpoint" in refusal(f'[telemetry]\notlp_endpoint = "{endpoint}"')


def test_variables_of_another_form_are_left_alone():
    assert load(None, {"FILA_ADDR": "x", "FILA_TEST_HOME": "x", "OTHER_FILA_A__B": "x", "PATH": "x"}) == Config()


def test_malformed_toml_is_refused_with_file_and_line():
    message = refusal("[server]\nlisten_addr =\n")
    assert message.startswith("some.toml: malformed TOML: ")
    assert "line 2" in message


def test_a_file_that_is_not_text_is_refused():
    Path("binary.toml").write_bytes(b"[log]\n\xff\xfe")
    with pytest.raises(SettingsError, match=r"binary\.toml: not UTF-8 text \(at byte 6\)"):
        load(Path("binary.toml"), {})


def test_a_named_file_that_is_missing_is_refused_not_replaced_by_defaults():
    with pytest.raises(SettingsError, match=r"cannot read nope\.toml: No such file"):
        load(Path("nope.toml"), {})


def test_a_searched_file_that_cannot_be_read_is_refused_not_skipped():
    Path("fila.toml").mkdir()
    with pytest.raises(SettingsError, match=r"cannot read fila\.toml: Is a directory"):
        load(None, {})


def test_the_tree_is_frozen_and_takes_no_new_names():
    for part in (Config(), *(getattr(Config(), f.name) for f in fields(Config))):
        assert not hasattr(part, "__dict__")
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, None)


def test_a_bad_value_set_in_code_is_refused():
    with pytest.raises(SettingsError, match=r"LimitsConfig\.max_headers = -1: expected a whole number from 0"):
        LimitsConfig(max_headers=-1)


@given(st.text() | st.binary() | st.integers() | st.none() | st.floats())
def test_anything_as_an_address_is_either_taken_or_refused_clearly(value):
    with suppress(SettingsError):
        assert ServerConfig(listen_addr=value).listen_addr == value


JWT = {"issuer": "https://login.example", "audience": "fila", "jwks_file": "jwks.json"}


@pytest.mark.parametrize(
    "changed",
    [
        {"algorithms": ("HS256",)}, {"algorithms": ("none",)}, {"algorithms": ("RS256", "HS512")}, {"algorithms": ()},
        {"audience": ""}, {"issuer": ""}, {"jwks_file": ""}, {"jwks_url": "https://login.example/jwks"},
        {"jwks_file": "", "jwks_url": "http://login.example/jwks"}, {"jwks_file": "", "jwks_url": "file:///jwks"},
        {"jwks_file": "", "jwks_url": "http://localhost.example/"}, {"jwks_file": "", "jwks_url": "http://[::1"},
        {"roles": ("admin",), "roles_claim": "groups"}, {"roles": ("=admin",), "roles_claim": "groups"},
        {"roles": ("x=admin",)}, {"leeway_ms": 300_001}, {"max_token_bytes": 100_000}, {"principal_claim": ""},
    ],
)  # fmt: skip
def test_tokens_that_could_not_be_trusted_cannot_be_configured(changed):
    with pytest.raises(SettingsError):
        JwtConfig(**(JWT | changed))


@pytest.mark.parametrize(
    "url", ["https://login.example/jwks", "http://127.0.0.1:8080/", "http://localhost", "http://[::1]:9/"]
)
def test_keys_are_fetched_by_https_or_from_this_machine(url):
    assert JwtConfig(**(JWT | {"jwks_file": "", "jwks_url": url})).enabled


def test_roles_of_tokens_by_variable():
    given = {f"FILA_JWT__{name.upper()}": value for name, value in JWT.items()}
    given |= {"FILA_JWT__ROLES_CLAIM": "groups", "FILA_JWT__ROLES": "ops=operator, cn=x=viewer"}
    assert load(None, given).jwt.roles == ("ops=operator", "cn=x=viewer")


MEMBERS = ("a=10.0.0.1:5555", "b=[::1]:5555")
CLUSTER = {"name": "orders", "member": "b", "members": MEMBERS, "log": "postgres://db/fila"}


def test_a_cluster_has_members_with_addresses():
    cluster = ClusterConfig(**CLUSTER)
    assert cluster.enabled
    assert (cluster.names, cluster.addresses) == (["a", "b"], ["10.0.0.1:5555", "[::1]:5555"])
    assert not ClusterConfig().enabled


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({"log": ""}, "name, member, members and log together"),
        ({"name": ""}, "name, member, members and log together"),
        ({"member": "c"}, "member to be one of members"),
        ({"members": ("a=10.0.0.1:5555", "a=10.0.0.2:5555", "b=10.0.0.3:5555")}, "members with different names"),
        ({"members": ("b", "a=10.0.0.1:5555")}, "a list such as"),
        ({"members": ("b=10.0.0.1", "a=10.0.0.1:5555")}, "a list such as"),
        ({"name": "or ders"}, "letters, digits"),
        ({"snapshots": CLUSTER["log"]}, "snapshots in another log than log"),
    ],
)
def test_a_cluster_that_is_not_whole_is_refused(changed, expected):
    with pytest.raises(SettingsError, match=expected):
        ClusterConfig(**(CLUSTER | changed))


def test_the_log_of_a_cluster_is_not_shown():
    """A URL may say where credentials are."""
    assert "postgres" not in repr(ClusterConfig(**CLUSTER))
