"""`gang-extender doctor`: is the extender wired right into this cluster? Gathers the facts and prints what is wrong.

It changes nothing, and needs no right of its own: it reads what the user may read, and says what it could not see.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import yaml
from msgspec import Struct
from pydantic import ValidationError

from extender.app import connected
from extender.cli.asking import Asker, UnseenError
from extender.cli.cluster_facts import ask_fleet, ask_policies, ask_rights, ask_served, ask_version
from extender.cli.extender_facts import ask_beside, ask_mounted_settings, ask_pods, own_url
from extender.cli.scheduler_facts import Schedulers, ask_configz, look_around, read_files
from extender.config import GangExtenderConfiguration, describe, load_config, read_yaml
from extender.doctor.diagnosis import GIVE_A_FILE, diagnose
from extender.doctor.entries import Wiring
from extender.doctor.facts import Extender, Facts
from extender.doctor.finding import Problem, Unseen
from extender.doctor.installation import POLICIES, READ_VERSIONS
from extender.doctor.permissions import Who
from extender.doctor.report import NOTHING_SEEN, as_json, as_text, exit_status

_KIND = "GangExtenderConfiguration"
_DEFAULTS = GangExtenderConfiguration.model_validate({"apiVersion": "gang-extender.io/v1alpha1", "kind": _KIND})


class Settings(Struct, frozen=True):
    """The extender's settings, where they are from, and what is wrong with those that there are."""

    config: GangExtenderConfiguration
    source: str
    problem: Problem | None = None


def add_doctor(commands: Any) -> None:
    """Add the command to the parser's."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor", help="say whether kube-scheduler, rights and policies are as the extender needs them, and the mend"
    )
    parser.set_defaults(run=run_doctor)
    add = parser.add_argument
    add("--kubeconfig", default="", metavar="FILE", help="default: $KUBECONFIG, the pod's own, or ~/.kube/config")
    add("--config", type=Path, metavar="FILE", help="the GangExtenderConfiguration; default: the one in the cluster")
    add(
        "--scheduler-config",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a KubeSchedulerConfiguration",
    )
    add("--configz", action="append", default=[], metavar="URL", help="ask this kube-scheduler what it runs with")
    add("--namespace", default="gang-extender", help="where the extender is installed")
    add("--service-account", default="gang-extender", help="the extender's")
    add("--scheduler-account", default="gang-scheduler", help="the ServiceAccount of a kube-scheduler of its own")
    add("--beside-extender", action="store_true", help="this is the extender's host; in its pod that is known")
    add("--output", choices=("text", "json"), default="text")


def run_doctor(options: argparse.Namespace) -> int:
    """Look, print and return the exit status; raises KubeconfigError, ConfigError and OSError."""
    facts = asyncio.run(_gather(options))
    if isinstance(facts, Unseen):
        print(f"gang-extender: nothing could be seen: {facts.why}", file=sys.stderr)  # noqa: T201 - the caller's terminal
        return NOTHING_SEEN
    findings = diagnose(facts)
    print(as_json(findings) if options.output == "json" else as_text(findings))  # noqa: T201 - what the command is for
    return exit_status(findings)


async def _gather(options: argparse.Namespace) -> Facts | Unseen:
    given = load_config(options.config) if options.config else None
    kubeconfig = _kubeconfig(options.kubeconfig, given)
    async with connected(kubeconfig) as api:
        asker = Asker(api)
        version = await ask_version(asker)
        if isinstance(version, Unseen):
            return version
        settings = Settings(given, str(options.config)) if given else await _find_settings(asker, options.namespace)
        schedulers = await _schedulers(asker, options, kubeconfig)
        accounts: dict[Who, str] = {"extender": options.service_account, "scheduler": options.scheduler_account}
        identities = {who: f"system:serviceaccount:{options.namespace}:{name}" for who, name in accounts.items()}
        beside = options.beside_extender or not kubeconfig
        return Facts(
            settings=settings.config,
            settings_source=settings.source,
            identities=identities,
            now_s=time.time(),
            schedulers=schedulers if isinstance(schedulers, Unseen) else tuple(schedulers.schedulers),
            settings_problem=settings.problem,
            unread=() if isinstance(schedulers, Unseen) else tuple(schedulers.unread),
            processes=schedulers if isinstance(schedulers, Unseen) else tuple(schedulers.processes),
            version=version,
            rights=await ask_rights(asker, identities),
            served=await ask_served(asker, READ_VERSIONS),
            policies=await ask_policies(asker, POLICIES),
            fleet=await ask_fleet(asker, settings.config.scheduler_names),
            extenders=await _extenders(asker, options.namespace, settings.config, schedulers, beside=beside),
        )


def _kubeconfig(chosen: str, config: GangExtenderConfiguration | None) -> str:
    """Return the path of a kubeconfig; empty for the pod's ServiceAccount."""
    named = chosen or os.environ.get("KUBECONFIG", "") or (config.kubeconfig if config else "")
    if named or "KUBERNETES_SERVICE_HOST" in os.environ:
        return named
    return str(Path("~/.kube/config").expanduser())


async def _find_settings(asker: Asker, namespace: str) -> Settings:
    """Read the ConfigMap that the extender mounts, or else the newest that holds settings, or else take the defaults.

    An older one is mounted after a roll-back: it has the same content, so that kustomize gives it the same name.
    """
    found: list[tuple[str, str, str]] = []
    try:
        async for item in asker.items(f"/api/v1/namespaces/{namespace}/configmaps"):
            content: dict[str, Any] = orjson.loads(item)
            name, created = content["metadata"]["name"], content["metadata"]["creationTimestamp"]
            texts = (content.get("data") or {}).items()
            found += [
                (created, f"ConfigMap {namespace}/{name}, key {key}", text) for key, text in texts if _KIND in text
            ]
    except UnseenError as error:
        what = f"{error.unseen.why}, so the defaults are taken for granted"
        return Settings(_DEFAULTS, "defaults", Problem(what, "gang-extender doctor --config FILE", level="unknown"))
    if not found:
        return Settings(_DEFAULTS, "none found, so the defaults")
    in_use = await ask_mounted_settings(asker, namespace)
    _, source, text = max([each for each in found if each[1] in in_use] or found)
    try:
        return Settings(GangExtenderConfiguration.model_validate(read_yaml(text)), source)
    except (ValidationError, yaml.YAMLError) as error:
        said = "; ".join(describe(error)) if isinstance(error, ValidationError) else error
        problem = Problem(
            f"the extender does not start with it: {said}", "extender/config.py says what each field takes"
        )
        return Settings(_DEFAULTS, source, problem)


async def _schedulers(asker: Asker, options: argparse.Namespace, kubeconfig: str) -> Schedulers | Unseen:
    if not options.scheduler_config and not options.configz:
        found = await look_around(asker, options.namespace)
        return Unseen(found.why, found.mend or GIVE_A_FILE) if isinstance(found, Unseen) else found
    known = read_files(options.scheduler_config)
    for url in options.configz:
        async with connected(kubeconfig) as api:  # kube-scheduler takes the same credentials as the API server
            told = await ask_configz(Asker(api), url)
        known = Schedulers(
            known.schedulers + told.schedulers, known.unread + told.unread, known.processes + told.processes
        )
    return known


async def _extenders(
    asker: Asker,
    namespace: str,
    config: GangExtenderConfiguration,
    schedulers: Schedulers | Unseen,
    *,
    beside: bool,
) -> tuple[Extender, ...] | Unseen:
    if not beside:
        return await ask_pods(asker, namespace, config.server)
    known = [] if isinstance(schedulers, Unseen) else schedulers.schedulers
    urls = [place.entry.url_prefix for each in known for place in Wiring(each.config, config).ours]
    return (await ask_beside(config.server, tuple(dict.fromkeys(urls or [own_url(config.server)]))),)
