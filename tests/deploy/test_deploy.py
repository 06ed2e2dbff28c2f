"""The compose file and the chart say what a proxy understands, and wait as long as it takes."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from tests.cli.terminal import ullage
from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.doors.proxy.config import ProxyLimits, config_of
from ullage.doors.proxy.guard import Guard

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "ullage"
HELM = shutil.which(
    "helm", path=f"{DEPLOY.parent}/.venv-deploy/bin:{os.environ['PATH']}"
)
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = jsonschema_rs.validator_for(
    json.loads((CHART / "values.schema.json").read_text())
)
GIVEN = {
    **VALUES,
    "image": {
        **VALUES["image"],
        "repository": "registry.example/ullage-proxy",
    },
    "store": {"secret": "ullage-store", "key": "url"},
    "env": {"ULLAGE_BLOBS": "s3://bucket/ullage"},
    "config": '[limits]\ndrain_s = 30\n[upstreams]\nmine = "https://gateway.example"\n',
}


def rendered(values):
    """The chart's objects by kind, as helm renders them, or Go's templates where it is not."""
    if HELM:
        command = [HELM, "template", "try", str(CHART), "--values", "-"]
        given = values
    elif shutil.which("go"):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        command = [
            "go",
            "run",
            str(Path(__file__).with_name("render.go")),
            str(CHART),
        ]
        named = {"AppVersion": chart["appVersion"]}
        given = {
            "Values": values,
            "Chart": named,
            "Release": {"Name": "try", "Namespace": "default"},
        }
    else:
        pytest.skip("neither helm nor go is installed")
    ran = subprocess.run(
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        env={"GO111MODULE": "off", "GOFLAGS": "-p=1", **os.environ},
    )
    assert ran.returncode == 0, ran.stderr
    found = [each for each in yaml.safe_load_all(ran.stdout) if each]
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


@pytest.fixture(scope="module")
def chart():
    return rendered(GIVEN)


def settings_of(environment):
    """As a proxy understands these variables; one that it does not know fails."""
    known = {
        f"ULLAGE_PROXY_{name.upper()}"
        for name in config_of().__struct_fields__
    }
    known |= {
        "ULLAGE_PROXY_CONFIG",
        "ULLAGE_STORE",
        "ULLAGE_BLOBS",
        "ULLAGE_CACHE",
    }
    assert set(environment) <= known
    return config_of(environment=environment)


def is_known(*words):
    """Whether a command understands these words: it only finds no file to work on."""
    return "no store at this path" in ullage(*words, "--store", "none.db").err


def test_the_compose_file_starts_proxies_on_one_store():
    proxy = COMPOSE["services"]["proxy"]
    config = settings_of(proxy["environment"])
    assert (config.listen, config.workers, config.log) == (
        "0.0.0.0:8787",
        2,
        True,
    )
    assert config.store.startswith("postgresql://ullage:")
    assert (
        int(proxy["stop_grace_period"].removesuffix("s"))
        > ProxyLimits().drain_s
    )
    assert proxy["deploy"]["replicas"] > 1
    gc = COMPOSE["services"]["gc"]
    assert gc["environment"]["ULLAGE_STORE"] == config.store
    (words,) = re.findall(r"ullage gc ([^;]+)", gc["entrypoint"][-1])
    assert is_known("gc", *words.split())


def test_no_port_of_the_compose_file_is_open_to_other_machines():
    ports = [
        port
        for each in COMPOSE["services"].values()
        for port in each.get("ports", ())
    ]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_extra_of_the_image_is_one_of_ours():
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())[
        "project"
    ]
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", DOCKERFILE)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_what_is_asked_for_health_answers(tmp_path):
    deployment = (CHART / "templates" / "proxy.yaml").read_text()
    probes = set(re.findall(r"path: (/\S+?),", deployment))
    (by_compose,) = re.findall(
        r"8787(/[\w/]+)", str(COMPOSE["services"]["proxy"]["healthcheck"])
    )
    assert probes == {"/_ullage/health", "/_ullage/ready"}
    with (
        upstream() as there,
        started(there, f"--store={tmp_path}/kept.db") as proxy,
    ):
        for path in {*probes, by_compose}:
            assert ask(proxy.url, "GET", path)[0] == 200


def test_every_value_that_a_template_asks_for_is_there_and_none_is_for_nothing():
    templates = "\n".join(
        path.read_text() for path in CHART.glob("templates/*")
    )
    asked = set(re.findall(r"\.Values\.([\w.]+)", templates))
    there = {
        f"{name}.{inner}"
        if isinstance(value, dict) and value and name != "resources"
        else name
        for name, value in VALUES.items()
        for inner in (value if isinstance(value, dict) and value else (None,))
    }
    assert asked == there


def test_the_chart_refuses_what_it_cannot_run_with():
    assert not SCHEMA.is_valid(VALUES), "without an image and a store"
    assert SCHEMA.is_valid(GIVEN)
    assert not SCHEMA.is_valid({**GIVEN, "replica": 3})
    assert not SCHEMA.is_valid({**GIVEN, "env": {"ULLAGE_PROXY_WORKERS": 2}})


def test_the_chart_starts_proxies_that_end_their_replies(chart):
    spec = chart["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (proxy,) = pod["containers"]
    plain = {
        each["name"]: each["value"] for each in proxy["env"] if "value" in each
    }
    secret = {
        each["name"]: each["valueFrom"]
        for each in proxy["env"]
        if "valueFrom" in each
    }
    config = settings_of(plain)
    assert (config.listen, config.workers) == ("0.0.0.0:8787", 2)
    assert config.blobs == "s3://bucket/ullage"
    assert secret == {
        "ULLAGE_STORE": {
            "secretKeyRef": {"name": "ullage-store", "key": "url"}
        }
    }
    pause = int(proxy["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > pause + ProxyLimits().drain_s
    assert proxy["image"] == "registry.example/ullage-proxy:0.1.0"
    assert (
        spec["selector"]["matchLabels"] == chart["Service"]["spec"]["selector"]
    )
    assert (
        spec["template"]["metadata"]["labels"]
        == spec["selector"]["matchLabels"]
    )


def test_the_file_of_the_chart_is_one_that_a_proxy_reads(chart, tmp_path):
    (tmp_path / "proxy.toml").write_text(
        chart["ConfigMap"]["data"]["proxy.toml"]
    )
    config = config_of(tmp_path / "proxy.toml")
    assert config.limits.drain_s == GIVEN["drainSeconds"]
    assert config.upstreams["mine"] == "https://gateway.example"
    (volume,) = (v for v in chart["Deployment"]["spec"]["template"]["spec"]["volumes"]
                 if "configMap" in v)  # fmt: skip
    assert (
        volume["configMap"]["name"] == chart["ConfigMap"]["metadata"]["name"]
    )


def test_the_chart_cleans_up_with_words_that_are_known(chart):
    pod = chart["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    words = pod["containers"][0]["args"]
    assert words == ["gc", "--older-than", "30d"]
    assert is_known(*words)


@pytest.mark.parametrize(
    "host",
    [
        "try-proxy",
        "try-proxy.default",
        "try-proxy.default.svc",
        "try-proxy.default.svc.cluster.local",
    ],
)
def test_every_name_of_the_service_is_the_proxys(chart, host):
    (container,) = chart["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ]
    plain = {
        each["name"]: each["value"]
        for each in container["env"]
        if "value" in each
    }
    guard = Guard(settings_of(plain))
    assert guard.is_ours([f"{host}:80"])
    assert not guard.is_ours(["evil.default"])


def test_hosts_of_ones_own_are_not_laid_over():
    config = 'allowed_hosts = ["llm.example"]\n'
    own = rendered({**GIVEN, "config": config})
    (proxy,) = own["Deployment"]["spec"]["template"]["spec"]["containers"]
    names = {each["name"] for each in proxy["env"]}
    assert "ULLAGE_PROXY_ALLOWED_HOSTS" not in names


def test_a_pod_monitor_has_the_job_that_the_alerts_ask_for(chart):
    assert "PodMonitor" not in chart
    asked = {"enabled": True, "tokenSecret": "ullage-token"}
    monitored = rendered({**GIVEN, "podMonitor": asked})
    spec = monitored["PodMonitor"]["spec"]
    labels = monitored["Deployment"]["spec"]["template"]["metadata"]["labels"]
    alerts = (DEPLOY / "prometheus" / "alerts.yaml").read_text()
    assert f'job="{labels[spec["jobLabel"]]}"' in alerts
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"]["name"] == "ullage-token"


def test_the_compose_file_mounts_settings_that_a_proxy_reads():
    proxy = COMPOSE["services"]["proxy"]
    (mount,) = proxy["volumes"]
    source, target, _ = mount.split(":")
    assert target == proxy["environment"]["ULLAGE_PROXY_CONFIG"]
    text = (DEPLOY / source).read_text()
    (line,) = text.splitlines()
    assert config_of(DEPLOY / source) == config_of()
    tomllib.loads(line.removeprefix("# "))  # its example is one


def test_without_a_file_of_settings_none_is_mounted():
    without = rendered(
        {**GIVEN, "config": "", "envFrom": [{"secretRef": {"name": "keys"}}]}
    )
    (proxy,) = without["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert "ConfigMap" not in without
    assert "ULLAGE_PROXY_CONFIG" not in {each["name"] for each in proxy["env"]}
    assert proxy["envFrom"] == [{"secretRef": {"name": "keys"}}]
