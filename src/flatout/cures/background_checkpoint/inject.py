"""`background-checkpoint` in a running program: every plain ModelCheckpoint saves beside the training."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_keras(injection: Injection, module: ModuleType) -> None:
    def in_set_model(original: Any) -> Any:
        def set_model(self: Any, model: Any) -> Any:
            if type(self).__name__ != "ModelCheckpoint" or not type(self).__module__.startswith("keras."):
                injection.note(f"{type(self).__name__} is a class of the program's own")
                return original(self, model)
            if _strategy():
                injection.note("under a distribution strategy checkpoints are written as before")
                return original(self, model)
            from flatout.cures.background_checkpoint.saving import BackgroundSaving

            saving: Any = BackgroundSaving(model)  # type: ignore[no-untyped-call]
            where, made = caller_location(), saving._copied

            def copied() -> Any:
                copy = made()
                if copy is False:
                    injection.note("no copy of the model can be made, so checkpoints are written as before")
                else:
                    injection.changed(f"checkpoints are written beside the training{where}")
                return copy

            saving._copied = copied
            return original(self, saving)

        return set_model

    def in_train_end(original: Any) -> Any:
        def on_train_end(self: Any, logs: Any = None) -> Any:
            result = original(self, logs)
            wait = getattr(type(self.model), "wait", None)
            if wait is not None and type(self.model).__name__ == "BackgroundSaving":
                wait(self.model)
            return result

        return on_train_end

    patch("model-checkpoint-set-model", in_set_model)
    patch("model-checkpoint-train-end", in_train_end)


def _strategy() -> bool:
    import tensorflow as tf

    return bool(tf.distribute.has_strategy())


HOOKS = Hooks(keras=on_keras)
