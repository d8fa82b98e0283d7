"""The chart and the plain manifests: rendered by Helm, checked against the schemas that the validator brings along."""

import os
import shutil
import subprocess
import tomllib

import pytest
import yaml

from fila.config import load
from tests.release.conftest import ROOT, script

CHART = ROOT / "deploy/helm/fila"
PLAIN = ROOT / "deploy/kubernetes/fila.yaml"
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
VALIDATOR = "sigs.k8s.io/kubectl-validate@v0.0.4"
KUBERNETES = ("1.27", "1.30")  # the oldest and the newest that the validator knows and that we test

OPTIONS = {
    "defaults": [],
    "everything": [
        "--set=insecure=true,tls.secretName=cert,tls.clientCASecretName=ca,config=scheduler.quantum = 8",
        "--set=networkPolicy.clientLabels.app=shop,networkPolicy.metricsNamespaceLabels.team=ops",
        "--set=persistence.storageClassName=fast,imagePullSecrets[0].name=pull,nodeSelector.disk=ssd",
    ],
    "least": ["--set=networkPolicy.enabled=false,podDisruptionBudget.enabled=false"],
}


def go_program(module):
    """A program of Go, built once."""
    given = shutil.which(module.split("@")[0].rpartition("/")[2])
    if given:
        return given
    if not shutil.which("go"):
        pytest.skip("needs Go, or helm and kubectl-validate on PATH")
    folder = ROOT / "build" / "tools" / module.replace("/", "_")
    program = folder / module.split("@")[0].rpartition("/")[2]
    if not program.exists():
        env = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["go", "install", module], check=True, env=env, cwd=ROOT, capture_output=True)
    return str(program)


@pytest.fixture(scope="module")
def helm():
    return go_program(HELM)


def validate(file):
    validator = go_program(VALIDATOR)
    for version in KUBERNETES:
        done = subprocess.run([validator, "--version", version, file], check=False, capture_output=True, text=True)
        assert done.returncode == 0, (version, done.stdout, done.stderr)


@pytest.fixture(params=OPTIONS)
def rendered(helm, request, tmp_path):
    """The manifests with these options, in a file."""
    command = [helm, "template", "shop", str(CHART), *OPTIONS[request.param]]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "fila.yaml"
    file.write_text(done.stdout)
    return file


def kinds(file):
    return {each["kind"]: each for each in yaml.safe_load_all(file.read_text()) if each}


def test_manifests_are_valid(rendered):
    validate(rendered)


def test_settings_are_those_of_the_broker(rendered, tmp_path):
    """Both the file and the variables of the pod are read by the broker itself."""
    made = kinds(rendered)
    settings = tmp_path / "fila.toml"
    settings.write_text(made["ConfigMap"]["data"]["fila.toml"])
    [container] = made["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    config = load(settings, {each["name"]: each["value"] for each in container["env"] or ()})
    assert config.scheduler.quantum == tomllib.loads(settings.read_text()).get("scheduler", {}).get("quantum", 4)


def test_the_pod_has_no_rights_that_it_does_not_need(rendered):
    pod = kinds(rendered)["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


def test_a_wrong_field_is_found(helm, tmp_path):
    """The validator is one that can fail."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(PLAIN.read_text().replace("serviceName:", "servicename:"))
    with pytest.raises(AssertionError):
        validate(bad)


def test_the_plain_manifests_are_the_chart_with_its_defaults(helm):
    validate(PLAIN)
    made = script("release/manifests", env={**os.environ, "HELM": helm})
    rendered, plain = (list(yaml.safe_load_all(text)) for text in (made.stdout, PLAIN.read_text()))
    assert [each for each in rendered if each] == plain, "run: release/manifests >deploy/kubernetes/fila.yaml"


def test_the_chart_passes_the_lint_of_helm(helm):
    done = subprocess.run([helm, "lint", "--strict", str(CHART)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
