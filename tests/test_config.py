"""The configuration file: strict, and errors that name the field."""

from pathlib import Path

import pytest

from extender.cli.gang_extender import main
from extender.config import ConfigError, load_config
from extender.model.device import CardPolicy
from extender.model.topology import Level
from tests.conftest import write_kubeconfig

pytestmark = pytest.mark.usefixtures("logs_as_before")

RACK = "{name: rack, labels: [example.com/rack, rack]}"
HEAD = "apiVersion: gang-extender.io/v1alpha1\nkind: GangExtenderConfiguration\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_the_shortest_file_has_every_default(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, HEAD))
    assert (config.server.address, config.server.port) == ("127.0.0.1", 8888)
    assert config.scheduler_names == ["gang-scheduler"]


TLS = "tls: {certFile: /c/tls.crt, keyFile: /c/tls.key, clientCaFile: /c/ca.crt}"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "'::1'"])
def test_the_verbs_are_served_without_tls_on_the_loopback_interface(tmp_path: Path, address: str) -> None:
    assert load_config(write(tmp_path, f"{HEAD}server: {{address: {address}}}\n")).server.tls is None


@pytest.mark.parametrize("address", ["0.0.0.0", "'::'", "''", "10.0.0.1", "localhost", "'::ffff:127.0.0.1'", "'127.1'"])  # noqa: S104 - none is bound
def test_anywhere_else_they_need_tls(tmp_path: Path, address: str) -> None:
    with pytest.raises(
        ConfigError, match=r"server: .*Set tls \(certFile, keyFile, clientCaFile\), or take 127\.0\.0\.1"
    ):
        load_config(write(tmp_path, f"{HEAD}server: {{address: {address}}}\n"))
    config = load_config(write(tmp_path, f"{HEAD}server: {{address: {address}, {TLS}}}\n"))
    assert config.server.tls


def test_tls_lets_in_kube_scheduler_unless_others_are_named(tmp_path: Path) -> None:
    tls = load_config(write(tmp_path, f"{HEAD}server: {{{TLS}}}\n")).server.tls
    assert tls
    assert tls.client_names == ["system:kube-scheduler"]
    named = TLS.replace("}", ", clientNames: [a, spiffe://b]}")
    tls = load_config(write(tmp_path, f"{HEAD}server: {{{named}}}\n")).server.tls
    assert tls
    assert tls.client_names == ["a", "spiffe://b"]


def test_in_service_mode_the_lease_is_named_since_the_default_is_a_schedulers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"leaderElection: .*mode service needs a resourceName"):
        load_config(write(tmp_path, f"{HEAD}leaderElection: {{mode: service}}\n"))
    named = load_config(write(tmp_path, f"{HEAD}leaderElection: {{mode: service, resourceName: gangs}}\n"))
    assert named.leader_election.resource_name == "gangs"


def test_nodes_are_read_by_what_is_said_of_gpus(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, HEAD)).gpus.policy_of_cards == CardPolicy(
        frozenset({"nvidia.com/gpu", "amd.com/gpu"})
    )
    said = "gpus: {wholeResources: [nvidia.com/gpu], memoryOfModels: {Tesla-T4: 15Gi}, policy: spread}\n"
    assert load_config(write(tmp_path, HEAD + said)).gpus.policy_of_cards == CardPolicy(
        frozenset({"nvidia.com/gpu"}), {"Tesla-T4": 15 * 2**30}, spread=True
    )


def test_levels_are_near_to_far_as_the_file_has_them(tmp_path: Path) -> None:
    names = [level.name for level in load_config(write(tmp_path, HEAD)).topology.levels_of_network]
    assert names == ["accelerator", "block", "spine", "datacenter", "zone"]
    config = load_config(write(tmp_path, f"{HEAD}topology: {{levels: [{RACK}]}}\n"))
    assert config.topology.levels_of_network == (Level("rack", ("example.com/rack", "rack")),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEAD}gangs: {{waitSeconds: 3}}\n", "gangs.waitSeconds"),
        (f"{HEAD}gangs: {{bindingSeconds: 0}}\n", "gangs.bindingSeconds"),
        (f"{HEAD}server: {{port: '8888'}}\n", "server.port"),
        (f"{HEAD}server: {{max_body_mib: 3}}\n", "server.max_body_mib"),
        (f"{HEAD}server: {{tls: {{certFile: c, keyFile: k}}}}\n", "server.tls.clientCaFile"),
        (f"{HEAD}server: {{tls: {{certFile: c, keyFile: '', clientCaFile: a}}}}\n", "server.tls.keyFile"),
        (f"{HEAD}server: {{{TLS.replace('}', ', clientNames: []}')}}}\n", "server.tls.clientNames"),
        (f"{HEAD}schedulerNames: []\n", "schedulerNames"),
        (f"{HEAD}schedulerNames: [a, '']\n", "schedulerNames.1"),
        (f"{HEAD}leaderElection: {{resourceName: ''}}\n", "leaderElection.resourceName"),
        (f"{HEAD}leaderElection: {{resourceName: kube-system/kube-scheduler}}\n", "leaderElection.resourceName"),
        (f"{HEAD}leaderElection: {{resourceNamespace: ''}}\n", "leaderElection.resourceNamespace"),
        (f"{HEAD}log: {{level: loud}}\n", "log.level"),
        (f"{HEAD}gpus: {{policy: scatter}}\n", "gpus.policy"),
        (f"{HEAD}gpus: {{memoryOfModels: {{T4: lots}}}}\n", "gpus.memoryOfModels.T4"),
        (f"{HEAD}topology: {{levels: [{{name: rack}}]}}\n", "topology.levels.0.labels"),
        (f"{HEAD}topology: {{levels: [{{name: rack, labels: []}}]}}\n", "topology.levels.0.labels"),
        (f"{HEAD}topology: {{levels: [{{name: rack, labels: [a b]}}]}}\n", "topology.levels.0.labels.0"),
        (f"{HEAD}topology: {{levels: [{{name: a/b, labels: [rack]}}]}}\n", "topology.levels.0.name"),
        (f"{HEAD}topology: {{levels: [{RACK}, {RACK}]}}\n", "topology"),
        ("kind: GangExtenderConfiguration\n", "apiVersion"),
        ("apiVersion: v2\nkind: Pod\n", "kind"),
        (f"{HEAD}gangs:\n", "gangs: fields are wanted here"),
        (f"{HEAD}gangs: {{gatheringSeconds: 90}}\n", "gangs: gatheringSeconds must not be above bindingSeconds"),
        ("- a list\n", "the whole file"),
        ("", "the whole file"),
        ("a: b: c", "not YAML"),
        (
            f"{HEAD}gangs: {{bindingSeconds: 40}}\ngangs: {{patienceSeconds: 5}}\n",
            'gangs is there twice\n  in "<unicode string>", line 4',
        ),
        (f"{HEAD}log: {{level: info, level: debug}}\n", "level is there twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace(".", r"\.")):
        load_config(write(tmp_path, text))


def test_a_bad_file_ends_the_command_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, f"{HEAD}colour: blue\n")
    assert main(["serve", "--config", str(path)]) == 2
    assert f"{path}: colour: " in capsys.readouterr().err


def test_tls_files_that_cannot_be_used_end_the_command_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "http://127.0.0.1:1", {"token": "secret"})
    tls = TLS.replace("/c/", f"{tmp_path}/")
    path = write(tmp_path, f"{HEAD}kubeconfig: {kubeconfig}\nserver: {{{tls}}}\n")
    assert main(["serve", "--config", str(path)]) == 2
    assert f"server.tls.certFile: {tmp_path}/tls.crt: No such file or directory" in capsys.readouterr().err


def test_a_missing_file_or_kubeconfig_ends_the_command_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--config", str(tmp_path / "none.yaml")]) == 2
    path = write(tmp_path, f"{HEAD}kubeconfig: {tmp_path}/nowhere\n")
    assert main(["serve", "--config", str(path)]) == 2
    errors = capsys.readouterr().err
    assert "none.yaml: cannot be read" in errors
    assert f"kubeconfig {tmp_path}/nowhere: no such file" in errors
