"""TensorFlow Serving: `NAME/1/saved_model.pb`, with the signature `serving_default` in the model's own names."""

from __future__ import annotations

from pathlib import Path

from flatout.optimize.layouts._layout import VERSION, Layout, Served, place_all
from flatout.routes._route import Route
from flatout.routes.tensorflow import FOLDER


class TensorFlowServing(Layout):
    name = "tensorflow-serving"
    server = "TensorFlow Serving"

    def unsuited(self, route: Route) -> str:
        if route.format != "SavedModel":
            return f"{self.server} runs SavedModels, not {route.format} in {route.family}"
        if route.name in ("tf-function", "tf-frozen"):
            return ""
        return (
            f"{self.server} does not compile or rewrite the model when it loads it, which this route is measured with"
        )

    def write(self, one: Served, target: Path) -> Path:
        version = target / one.name / VERSION
        place_all(one.files / FOLDER, version)
        return version

    def command(self, one: Served, target: Path) -> str:
        base = (target / one.name).absolute()
        return f"tensorflow_model_server --rest_api_port=8501 --model_name={one.name} --model_base_path={base}"
