"""What switches XLA's cache on: called where the lever is injected, written into the source from the mark on."""

# mypy: disable-error-code="no-untyped-def"

# ── from here on ─────────────────────────────────────────────────────────────────────────────────────────────────────


def keep_compiled():
    """XLA reads at the next start what it compiles at this one: for this TensorFlow, on this kind of machine."""
    import hashlib
    import os
    import shutil
    from importlib import metadata
    from pathlib import Path

    flags = os.environ.get("TF_XLA_FLAGS", "")
    if "persistent_cache" in flags:
        return
    found = {f"{one.name} {one.version}" for one in metadata.distributions()}
    told = {text for text in found if text.startswith(("tensorflow", "tf-", "tf_"))}
    told.add(os.environ.get("XLA_FLAGS", ""))
    files = [Path("/proc/cpuinfo"), *Path("/proc/driver/nvidia/gpus").glob("*/information")]
    try:
        lines = {line for file in files for line in file.read_text().splitlines()}
        told |= {line for line in lines if line.startswith(("flags", "Features", "Model:"))}
        name = hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()[:16]
        directory = Path(os.environ.get("XLA_CACHE_DIRECTORY", "~/.cache/xla")).expanduser().absolute() / name
        directory.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(directory).free
    except (OSError, RuntimeError):
        return  # everything is compiled as before
    if os.access(directory, os.W_OK) and room > 2**30 and len(str(directory).split()) == 1:
        os.environ["TF_XLA_FLAGS"] = f"{flags} --tf_xla_persistent_cache_directory={directory}".strip()
