"""Who may do what on the control plane?

Every user has a random token, in files that only we can read. kube-apiserver makes its own certificate in its
`--cert-dir`; the same key signs the tokens of ServiceAccounts and the same certificate serves the kube-schedulers and
kube-controller-manager, so that nothing here needs to make keys.
"""

import secrets
from pathlib import Path

import orjson

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
NODES = "nodes-stand-in"

# kube-apiserver itself binds the roles of the two components to these names. The stand-ins act for every kubelet.
_GROUPS = {ADMIN: "system:masters", CONTROLLER_MANAGER: "", SCHEDULER: "", NODES: "system:masters"}


class Credentials:
    """The tokens and files of one cluster, below its folder."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self.server = server
        self.cert_dir = folder / "certificates"
        self.certificate = self.cert_dir / "apiserver.crt"
        self.key = self.cert_dir / "apiserver.key"
        self.tokens_file = folder / "tokens.csv"
        self.tokens = {user: secrets.token_urlsafe(32) for user in _GROUPS}
        lines = [f'{self.tokens[user]},{user},{user},"{groups}"' for user, groups in _GROUPS.items()]
        self.tokens_file.write_text("\n".join(lines), encoding="utf-8")

    def user_kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig of one of the users above."""
        return self.kubeconfig(user.replace(":", "-"), self.tokens[user])

    def kubeconfig(self, name: str, token: str, server: str = "") -> Path:
        """Write a kubeconfig (JSON, which is YAML) that holds this token, for this server if not our own."""
        path = self._folder / f"{name}.kubeconfig"
        cluster = {"server": server or self.server, "certificate-authority": str(self.certificate)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
            "current-context": "e2e",
        }
        path.write_bytes(orjson.dumps(content))
        return path
