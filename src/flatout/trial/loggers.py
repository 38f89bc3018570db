"""Variables that keep known experiment loggers on this machine: a trial is no experiment of the user's.

They are set with and without a network. What these loggers write goes to a directory of the trial and ends with it.
"""

from __future__ import annotations

from pathlib import Path


def kept_local(directory: Path) -> dict[str, str]:
    place = str(directory / "loggers")
    local = f"file://{place}/mlruns"
    return {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        **dict.fromkeys(("WANDB_DIR", "WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_ARTIFACT_DIR"), str(directory)),
        "MLFLOW_TRACKING_URI": local,
        "MLFLOW_REGISTRY_URI": local,
        "MLFLOW_ALLOW_FILE_STORE": "true",  # MLflow 3 refuses to keep runs in files otherwise
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # of a program that names a server itself
        "COMET_START_ONLINE": "0",
        "COMET_OFFLINE_DIRECTORY": place,
        "NEPTUNE_MODE": "offline",
        **dict.fromkeys(("NEPTUNE_DATA_DIRECTORY", "NEPTUNE_LOG_DIRECTORY"), place),
        "CLEARML_OFFLINE_MODE": "1",
        "CLEARML_CACHE_DIR": place,
        "SWANLAB_MODE": "offline",
        "DVC_NO_ANALYTICS": "1",
    }
