"""OpenVINO Model Server: `NAME/1/model.xml` and `.bin`, and `config.json` with the setting that won the race."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flatout.optimize.layouts._layout import VERSION, Layout, Served, place
from flatout.routes import openvino
from flatout.routes._route import Route

MOUNTED = "/models"
"""Where the directory is inside the container, as in the server's own documentation."""


class OpenVinoModelServer(Layout):
    name = "openvino-model-server"
    server = "OpenVINO Model Server"

    def unsuited(self, route: Route) -> str:
        if route.format == "OpenVINO IR":
            return ""
        return f"{self.server} would run {route.format} files with OpenVINO, and not with {route.family}"

    def write(self, one: Served, target: Path) -> Path:
        version = target / one.name / VERSION
        for suffix in (".xml", ".bin"):
            place((one.files / openvino.FILE).with_suffix(suffix), version / f"model{suffix}")
        config = {"name": one.name, "base_path": f"{MOUNTED}/{one.name}", "plugin_config": plugin_config(one)}
        (target / "config.json").write_text(json.dumps({"model_config_list": [{"config": config}]}, indent=1))
        return version

    def command(self, one: Served, target: Path) -> str:
        return (
            f"docker run --rm -p 9000:9000 -v {target.absolute()}:{MOUNTED}:ro openvino/model_server:latest "
            f"--config_path {MOUNTED}/config.json --port 9000"
        )


def plugin_config(one: Served) -> dict[str, Any]:
    """Threads, streams and precision, as they were raced."""
    setting = one.setting
    return openvino.configuration(int(setting["threads"]), str(setting["rest"]), int(setting.get("streams", 1)))
