"""What containers are given: settings that the broker knows, files that exist, names that fit together."""

import json
import re
from pathlib import Path

import pytest
import yaml

from fila.config import load
from tests.support.dockerfile import context_files, instructions

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "deploy" / "docker"
COMPOSE = [DOCKER / "compose.yml", DOCKER / "compose.observability.yml"]
IMAGE = instructions(DOCKER / "Dockerfile")
VARIABLES = dict(arguments.split("=", 1) for name, arguments in IMAGE if name == "ENV")


def services():
    return {name: each for path in COMPOSE for name, each in yaml.safe_load(path.read_text())["services"].items()}


def test_the_image_sets_what_the_broker_knows():
    config = load(None, VARIABLES)
    assert config.storage.data_dir == "/var/lib/fila"
    assert config.server.listen_addr.endswith(":5555")
    assert not config.server.insecure, "keys are the default, opening it is a decision"


def test_a_wrong_setting_of_the_image_would_be_seen():
    with pytest.raises(ValueError):
        load(None, {**VARIABLES, "FILA_STORAGE__FOLDER": "/data"})


def test_the_context_of_the_image_is_what_it_is_built_from():
    names = {str(path) for path in context_files(ROOT)}
    assert {"pyproject.toml", "release/programs", "src/fila/server/main.py", "packages/fila-client/LICENSE"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", ".git", ".venv", "build/"))]


def test_compose_mounts_what_exists():
    for name, service in services().items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (DOCKER / source).exists(), (name, source)


def test_the_broker_of_compose_is_open_to_this_machine_alone():
    """It runs without keys, so no port may be on another address."""
    ports = [port for service in services().values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert load(None, {**VARIABLES, **services()["fila"]["environment"]}).server.insecure


def test_prometheus_scrapes_the_broker_and_grafana_asks_prometheus():
    scrape = yaml.safe_load((DOCKER / "prometheus.yml").read_text())
    [target] = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"fila:{VARIABLES['FILA_TELEMETRY__PROMETHEUS_LISTEN'].rpartition(':')[2]}"
    [source] = yaml.safe_load((DOCKER / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert re.fullmatch(r"http://prometheus:\d+", source["url"])
    [provider] = yaml.safe_load((DOCKER / "grafana/provisioning/dashboards/fila.yml").read_text())["providers"]
    grafana = services()["grafana"]
    mounts = {volume.split(":")[1]: volume.split(":")[0] for volume in grafana["volumes"]}
    dashboards = DOCKER / mounts[provider["options"]["path"]]
    assert [json.loads(path.read_text())["title"] for path in dashboards.glob("*.json")]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (dashboards / Path(home).name).exists()


def test_the_rules_are_those_of_prometheus_by_itself():
    """Both scrape in the same way, by the same rules."""
    own, compose = (
        yaml.safe_load(path.read_text())
        for path in (ROOT / "deploy/prometheus/prometheus.yml", DOCKER / "prometheus.yml")
    )
    assert own["global"] == compose["global"]
    assert own["rule_files"] == compose["rule_files"]
