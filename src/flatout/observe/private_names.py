"""The one table of TensorFlow and Keras names that flatout patches in the observed program.

All of them are outside the public API or patched in place, so any release may move them. Each row says which view is
lost when the name is missing; flatout then tells so and goes on. A test asserts that each exists in the TensorFlow
under test.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import Internal
from flatout.observe import program_classes


@dataclass(frozen=True)
class PrivateName:
    module: str
    """A Python module, or the shared library of TensorFlow that has the symbol."""
    attribute: str
    view: str
    """What cannot be seen without it."""
    known: str
    """Releases it was read and tried in."""
    package: str = "tensorflow"
    earlier: tuple[tuple[str, str], ...] = ()
    """Module and attribute in older releases, the newest of them first."""


_TF = "TensorFlow 2.16–2.21"
_TF_LAST = "TensorFlow 2.21"
_KERAS = "Keras 3.0–3.15"
_TF_KERAS = "tf_keras 2.16–2.21"
_LIBRARY = "libtensorflow_framework.so.2"
_FUNCTION = "tensorflow.python.eager.polymorphic_function"
_SHIELD = "keeping a trial off the user's files"

RANDOM_OPS = (
    *("random_uniform", "random_standard_normal", "truncated_normal", "random_uniform_int", "random_shuffle"),
    *("multinomial", "parameterized_truncated_normal", "random_gamma", "random_poisson_v2"),
)
"""TensorFlow's stateful random ops."""
STATELESS_OPS = (
    *("stateless_random_uniform_v2", "stateless_random_normal_v2", "stateless_truncated_normal_v2"),
    *("stateless_random_uniform_int_v2", "stateless_shuffle"),
)
UNORDERED_OPS = {
    "parallel_map_dataset_v2": "dataset",
    "parallel_interleave_dataset_v4": "dataset",
    "parallel_batch_dataset": "dataset",
    "legacy_parallel_interleave_dataset_v2": "experimental_dataset",
}
"""Stages that may deliver in any order, and the module of each."""
CANDIDATE_SAMPLERS = (
    *("all_candidate_sampler", "fixed_unigram_candidate_sampler", "learned_unigram_candidate_sampler"),
    *("log_uniform_candidate_sampler", "thread_unsafe_unigram_candidate_sampler", "uniform_candidate_sampler"),
)
DATASET_METHODS = (
    "apply", "batch", "bucket_by_sequence_length", "cache", "concatenate", "enumerate", "filter", "flat_map",
    "group_by_window", "ignore_errors", "interleave", "map", "padded_batch", "prefetch", "ragged_batch", "rebatch",
    "repeat", "scan", "shard", "shuffle", "skip", "snapshot", "sparse_batch", "take", "take_while", "unbatch", "unique",
    "window", "with_options",
)  # fmt: skip
"""Public methods that make a dataset of another one; levers remember their calls."""

DEBUG_SWITCHES = (
    "config.run_functions_eagerly",
    "config.experimental_run_functions_eagerly",
    "debugging.enable_check_numerics",
    "debugging.set_log_device_placement",
    "debugging.experimental.enable_dump_debug_info",
    "data.experimental.enable_debug_mode",
)
"""Public functions of `tf` that a lever replaces where the program finds them."""

SWITCHES = (
    "config.run_functions_eagerly",
    "debugging.enable_check_numerics",
    "debugging.experimental.enable_dump_debug_info",
    "debugging.set_log_device_placement",
    "debugging.enable_traceback_filtering",
    "data.experimental.enable_debug_mode",
    "config.optimizer.set_experimental_options",
    "config.optimizer.set_jit",
    "config.threading.set_intra_op_parallelism_threads",
    "config.threading.set_inter_op_parallelism_threads",
    "config.experimental.enable_op_determinism",
    "config.experimental.set_memory_growth",
    "config.set_visible_devices",
    "config.set_soft_device_placement",
)
"""Public functions of `tf` whose calls are recorded."""

KERAS_SWITCHES = (
    "config.set_floatx",
    "config.set_dtype_policy",
    "mixed_precision.set_global_policy",
    "config.set_image_data_format",
)
"""Public functions of `keras` whose calls are recorded."""

SUMMARIES = ("scalar", "histogram", "image", "audio", "text", "write", "flush")
"""Public functions of `tf.summary` that write something."""

PRIVATE_NAMES: dict[str, PrivateName] = {
    # steps
    "fit-begin": PrivateName(
        "keras.src.callbacks.callback_list",
        "CallbackList.on_train_batch_begin",
        "steps of fit",
        _KERAS,
        "keras",
    ),
    "fit-end": PrivateName(
        "keras.src.callbacks.callback_list",
        "CallbackList.on_train_batch_end",
        "steps of fit",
        _KERAS,
        "keras",
    ),
    "predict-end": PrivateName(
        "keras.src.callbacks.callback_list",
        "CallbackList.on_predict_batch_end",
        "steps of predict",
        _KERAS,
        "keras",
    ),
    "evaluate-end": PrivateName(
        "keras.src.callbacks.callback_list",
        "CallbackList.on_test_batch_end",
        "steps of evaluate",
        _KERAS,
        "keras",
    ),
    "evaluation-end": PrivateName(
        "keras.src.callbacks.callback_list", "CallbackList.on_test_end", "results of validation", _KERAS, "keras"
    ),
    "epoch-begin": PrivateName(
        "keras.src.callbacks.callback_list", "CallbackList.on_epoch_begin", "epochs of fit", _KERAS, "keras"
    ),
    "apply": PrivateName(
        "keras.src.optimizers.base_optimizer", "BaseOptimizer.apply", "steps of custom loops", _KERAS, "keras"
    ),
    "apply-scaled": PrivateName(
        "keras.src.optimizers.loss_scale_optimizer",
        "LossScaleOptimizer.apply",
        "steps of custom loops",
        _KERAS,
        "keras",
    ),
    "fit": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.fit",
        "the line that calls fit",
        _KERAS,
        "keras",
    ),
    "predict": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.predict",
        "the line that calls predict",
        _KERAS,
        "keras",
    ),
    "predict-on-batch": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.predict_on_batch",
        "what predict_on_batch answers",
        _KERAS,
        "keras",
    ),
    "train-on-batch": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.train_on_batch",
        "the line that calls train_on_batch, and its loss",
        _KERAS,
        "keras",
    ),
    "test-on-batch": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.test_on_batch",
        "the line that calls test_on_batch",
        _KERAS,
        "keras",
    ),
    "evaluate": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.evaluate",
        "the line that calls evaluate",
        _KERAS,
        "keras",
    ),
    "get-weights": PrivateName(
        "keras.src.layers.layer", "Layer.get_weights", "weights that are copied by get_weights", _KERAS, "keras"
    ),
    "set-weights": PrivateName(
        "keras.src.layers.layer", "Layer.set_weights", "weights that are copied by set_weights", _KERAS, "keras"
    ),
    "keras-assign": PrivateName(
        "keras.src.backend.common.variables", "Variable.assign", "weights that are assigned one by one", _KERAS, "keras"
    ),
    "compile": PrivateName(
        "keras.src.trainers.trainer", "Trainer.compile", "how the model was compiled", _KERAS, "keras"
    ),
    "rnn-init": PrivateName(
        "keras.src.layers.rnn.rnn", "RNN.__init__", "where recurrent layers are made", _KERAS, "keras"
    ),
    "rnn-call": PrivateName(
        "keras.src.layers.rnn.rnn", "RNN.call", "how long the sequences of recurrent layers are", _KERAS, "keras"
    ),
    "model-call": PrivateName(
        "keras.src.models.model", "Model.__call__", "steps of inference by a call", _KERAS, "keras"
    ),
    "legacy-fit-begin": PrivateName(
        "tf_keras.src.callbacks",
        "CallbackList.on_train_batch_begin",
        "steps of tf_keras fit",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-fit-end": PrivateName(
        "tf_keras.src.callbacks",
        "CallbackList.on_train_batch_end",
        "steps of tf_keras fit",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-predict-end": PrivateName(
        "tf_keras.src.callbacks",
        "CallbackList.on_predict_batch_end",
        "steps of tf_keras predict",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-epoch-begin": PrivateName(
        "tf_keras.src.callbacks",
        "CallbackList.on_epoch_begin",
        "epochs of tf_keras fit",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-batch-counters": PrivateName(
        "tf_keras.src.engine.training",
        "Model._init_batch_counters",
        "which variables of tf_keras count batches of validation",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-fit": PrivateName(
        "tf_keras.src.engine.training", "Model.fit", "the line that calls tf_keras fit", _TF_KERAS, "tf_keras"
    ),
    "legacy-predict": PrivateName(
        "tf_keras.src.engine.training",
        "Model.predict",
        "the line that calls tf_keras predict",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-predict-on-batch": PrivateName(
        "tf_keras.src.engine.training",
        "Model.predict_on_batch",
        "what predict_on_batch of tf_keras answers",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-compile": PrivateName(
        "tf_keras.src.engine.training",
        "Model.compile",
        "how the tf_keras model was compiled",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-model-call": PrivateName(
        "tf_keras.src.engine.training",
        "Model.__call__",
        "steps of tf_keras inference by a call",
        _TF_KERAS,
        "tf_keras",
    ),
    "legacy-apply": PrivateName(
        "tf_keras.src.optimizers.optimizer",
        "Optimizer.apply_gradients",
        "steps of tf_keras loops",
        _TF_KERAS,
        "tf_keras",
    ),
    "image-generator": PrivateName(
        "tf_keras.src.preprocessing.image",
        "ImageDataGenerator.__init__",
        "legacy-pipeline",
        _TF_KERAS,
        "tf_keras",
    ),
    "keras-image-generator": PrivateName(
        "keras.src.legacy.preprocessing.image",
        "ImageDataGenerator.__init__",
        "legacy-pipeline",
        _KERAS,
        "keras",
    ),
    "apply-v1": PrivateName(
        "tensorflow.python.training.optimizer", "Optimizer.apply_gradients", "steps of TF1 optimizers", _TF
    ),
    "tape-gradient": PrivateName(
        "tensorflow.python.eager.backprop", "GradientTape.gradient", "the eager step's place", _TF
    ),
    "session-run": PrivateName("tensorflow.python.client.session", "BaseSession.run", "steps of TF1 sessions", _TF),
    "session-graph-run": PrivateName(
        "tensorflow.python.client.session", "BaseSession._call_tf_sessionrun", "cost of feeding", _TF_LAST
    ),
    "session-inner-run": PrivateName("tensorflow.python.client.session", "BaseSession._run", "prepared-runs", _TF_LAST),
    "session-init": PrivateName("tensorflow.python.client.session", "BaseSession.__init__", "caller-thread", _TF_LAST),
    # functions
    "function-init": PrivateName(
        f"{_FUNCTION}.polymorphic_function", "Function.__init__", "functions made per call", _TF
    ),
    "function-call": PrivateName(
        f"{_FUNCTION}.polymorphic_function", "Function.__call__", "calls of tf.functions", _TF
    ),
    "concrete-call": PrivateName(
        f"{_FUNCTION}.concrete_function",
        "ConcreteFunction.__call__",
        "calls of SavedModel signatures",
        _TF,
        earlier=((f"{_FUNCTION}.monomorphic_function", "ConcreteFunction.__call__"),),
    ),
    "trace": PrivateName(
        f"{_FUNCTION}.tracing_compilation",
        "_create_concrete_function",
        "traces and what caused them",
        _TF,
        earlier=((f"{_FUNCTION}.tracing_compiler", "TracingCompiler._create_concrete_function"),),
    ),
    "graph-init": PrivateName(
        "tensorflow.python.framework.func_graph", "FuncGraph.__init__", "source lines of ops", _TF
    ),
    # input
    "iterator-next": PrivateName(
        "tensorflow.python.data.ops.iterator_ops", "OwnedIterator._next_internal", "waiting for input", _TF
    ),
    "iterator-optional": PrivateName(
        "tensorflow.python.data.ops.iterator_ops",
        "OwnedIterator.get_next_as_optional",
        "waiting for input",
        _TF,
    ),
    "iterator-make": PrivateName(
        "tensorflow.python.data.ops.iterator_ops", "OwnedIterator._create_iterator", "tf.data pipelines", _TF
    ),
    "dataset-init": PrivateName(
        "tensorflow.python.data.ops.dataset_ops", "DatasetV2.__init__", "the line of each pipeline stage", _TF
    ),
    "dataset-reduce": PrivateName(
        "tensorflow.python.data.ops.dataset_ops",
        "DatasetV2.reduce",
        "pipelines consumed inside a tf.function",
        _TF,
    ),
    "dataset-one-shot": PrivateName(
        "tensorflow.python.data.ops.dataset_ops", "DatasetV1._make_one_shot_iterator", "TF1 pipelines", _TF
    ),
    "dataset-initializable": PrivateName(
        "tensorflow.python.data.ops.dataset_ops",
        "DatasetV1._make_initializable_iterator",
        "TF1 pipelines",
        _TF,
    ),
    # datasets of a strategy
    "distribute-dataset": PrivateName(
        "tensorflow.python.distribute.distribute_lib",
        "StrategyBase.experimental_distribute_dataset",
        "how datasets are divided between ranks",
        _TF,
    ),
    "distribute-function": PrivateName(
        "tensorflow.python.distribute.distribute_lib",
        "StrategyBase.distribute_datasets_from_function",
        "how datasets are divided between ranks",
        _TF,
    ),
    # rewriting of input pipelines (levers)
    **{
        f"dataset-{method.replace('_', '-')}": PrivateName(
            "tensorflow.python.data.ops.dataset_ops", f"DatasetV2.{method}", "levers of the input", _TF
        )
        for method in DATASET_METHODS
    },
    "dataset-loop": PrivateName(
        "tensorflow.python.data.ops.dataset_autograph",
        "_general_purpose_scan",
        "levers of the input where a tf.function iterates it",
        _TF,
    ),
    "dataset-function": PrivateName(
        "tensorflow.python.data.ops.structured_function",
        "StructuredFunctionWrapper.__init__",
        "levers of the input",
        _TF,
    ),
    "dataset-seed": PrivateName("tensorflow.python.data.util.random_seed", "get_seed", "levers of the input", _TF),
    # the whole run
    "callback-list": PrivateName(
        "keras.src.callbacks.callback_list", "CallbackList.__init__", "time in callbacks", _KERAS, "keras"
    ),
    "epoch-end": PrivateName(
        "keras.src.callbacks.callback_list", "CallbackList.on_epoch_end", "time between epochs", _KERAS, "keras"
    ),
    "model-checkpoint-set-model": PrivateName(
        "keras.src.callbacks.model_checkpoint",
        "ModelCheckpoint.set_model",
        "checkpoints in the background",
        _KERAS,
        "keras",
    ),
    "model-checkpoint-train-end": PrivateName(
        "keras.src.callbacks.model_checkpoint",
        "ModelCheckpoint.on_train_end",
        "checkpoints in the background",
        _KERAS,
        "keras",
    ),
    "tensorboard-set-model": PrivateName(
        "keras.src.callbacks.tensorboard", "TensorBoard.set_model", "summaries less often", _KERAS, "keras"
    ),
    "legacy-tensorboard-set-model": PrivateName(
        "tf_keras.src.callbacks", "TensorBoard.set_model", "summaries less often in tf_keras", _TF_KERAS, "tf_keras"
    ),
    "legacy-callback-list": PrivateName(
        "tf_keras.src.callbacks", "CallbackList.__init__", "time in callbacks of tf_keras", _TF_KERAS, "tf_keras"
    ),
    "legacy-epoch-end": PrivateName(
        "tf_keras.src.callbacks", "CallbackList.on_epoch_end", "time between epochs of tf_keras", _TF_KERAS, "tf_keras"
    ),
    "legacy-evaluate": PrivateName(
        "tf_keras.src.engine.training", "Model.evaluate", "time in validation of tf_keras", _TF_KERAS, "tf_keras"
    ),
    **{
        f"model-{name}": PrivateName("keras.src.models.model", f"Model.{name}", "time in checkpoints", _KERAS, "keras")
        for name in ("save", "save_weights", "export")
    },
    **{
        f"legacy-model-{name}": PrivateName(
            "tf_keras.src.engine.training", f"Model.{name}", "time in checkpoints of tf_keras", _TF_KERAS, "tf_keras"
        )
        for name in ("save", "save_weights", "export")
    },
    **{
        f"checkpoint-{holder}-{name}": PrivateName(
            "tensorflow.python.checkpoint.checkpoint", f"{holder}.{name}", "time in checkpoints", _TF
        )
        for holder in ("Checkpoint", "CheckpointV1")
        for name in ("write", "save")
    },
    "checkpoint-manager": PrivateName(
        "tensorflow.python.checkpoint.checkpoint_management", "CheckpointManager.save", "time in checkpoints", _TF
    ),
    "saved-model": PrivateName("tensorflow.python.saved_model.save", "save_and_return_nodes", "time in exports", _TF),
    "saver-save": PrivateName("tensorflow.python.training.saver", "Saver.save", "time in checkpoints of TF1", _TF),
    "summary-of-tf1": PrivateName(
        "tensorflow.python.summary.writer.writer",
        "SummaryToEventTransformer.add_summary",
        "time in summaries of TF1",
        _TF,
    ),
    "monitored-session": PrivateName(
        "tensorflow.python.training.monitored_session", "_MonitoredSession.__init__", "time in hooks of sessions", _TF
    ),
    **{f"summary-{name}": PrivateName("tensorflow", f"summary.{name}", "time in summaries", _TF) for name in SUMMARIES},
    # host and values
    "tensor-numpy": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.numpy", "host-sync", _TF),
    "tensor-float": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__float__", "host-sync", _TF),
    "tensor-int": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__int__", "host-sync", _TF),
    "tensor-bool": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__bool__", "host-sync", _TF),
    "tensor-array": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__array__", "host-sync", _TF),
    "tensor-str": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__str__", "host-sync", _TF),
    "tensor-format": PrivateName("tensorflow.python.framework.ops", "_EagerTensorBase.__format__", "host-sync", _TF),
    "variable-numpy": PrivateName(
        "tensorflow.python.ops.resource_variable_ops", "BaseResourceVariable.numpy", "host-sync", _TF
    ),
    "keras-variable-numpy": PrivateName(
        "keras.src.backend.common.variables", "Variable.numpy", "host-sync", _KERAS, "keras"
    ),
    "convert": PrivateName(
        "tensorflow.python.framework.constant_op", "convert_to_eager_tensor", "tensor-reconversion", _TF
    ),
    # switches
    "run-eagerly": PrivateName(
        f"{_FUNCTION}.eager_function_run",
        "run_functions_eagerly",
        "debug-left-on",
        _TF,
        earlier=((f"{_FUNCTION}.polymorphic_function", "run_functions_eagerly"),),
    ),
    "check-numerics": PrivateName(
        "tensorflow.python.debug.lib.check_numerics_callback", "enable_check_numerics", "debug-left-on", _TF
    ),
    "profiler-session": PrivateName(
        "tensorflow.python.profiler.internal._pywrap_profiler", "ProfilerSession", "the trace", _TF
    ),
    "trace-me": PrivateName("tensorflow.python.profiler.internal._pywrap_traceme", "TraceMe", "step marks", _TF),
    "trace-enabled": PrivateName(
        "tensorflow.python.profiler.trace", "enabled", "the trace, as cheap as it could be", _TF
    ),
    "trace-scope": PrivateName(
        "tensorflow.python.profiler.trace", "Trace.__init__", "the trace, as cheap as it could be", _TF
    ),
    "thread-pool-tracing": PrivateName(
        _LIBRARY, "_ZN3tsl8profiler19threadpool_listener10DeactivateEv", "the trace, as cheap as it could be", _TF
    ),
    "thread-pool-collector": PrivateName(
        _LIBRARY,
        "_ZN3tsl7tracing17SetEventCollectorENS0_13EventCategoryEPKNS0_14EventCollectorE",
        "the trace, as cheap as it could be",
        _TF,
    ),
    # the shield of trials: TensorFlow's ways to files
    **{
        f"file-{name}": PrivateName("tensorflow.python.lib.io._pywrap_file_io", name, _SHIELD, _TF)
        for name in [
            "FileExists",
            "IsDirectory",
            "Stat",
            "ReadFileToString",
            "GetChildren",
            "BufferedInputStream",
            "CreateDir",
            "RecursivelyCreateDir",
            "WriteStringToFile",
            "WritableFile",
            "DeleteFile",
            "DeleteRecursively",
            "RenameFile",
            "CopyFile",
            "GetMatchingFiles",
        ]
    },
    **{
        f"op-{name}": PrivateName(f"tensorflow.python.ops.gen_{module}_ops", name, _SHIELD, _TF)
        for module, names in {
            "io": "read_file restore restore_slice restore_v2 write_file save save_slices save_v2 "
            "merge_v2_checkpoints matching_files",
            "dataset": "tf_record_dataset tf_record_dataset_v2 text_line_dataset fixed_length_record_dataset "
            "fixed_length_record_dataset_v2 cache_dataset cache_dataset_v2",
            "experimental_dataset": "csv_dataset csv_dataset_v2 lmdb_dataset load_dataset matching_files_dataset "
            "save_dataset save_dataset_v2 snapshot_dataset snapshot_dataset_v2 dataset_to_tf_record",
            "lookup": "initialize_table_from_text_file initialize_table_from_text_file_v2",
            "summary": "create_summary_file_writer",
        }.items()
        for name in names.split()
    },
    "records-write": PrivateName("tensorflow.python.lib.io.tf_record", "TFRecordWriter.__init__", _SHIELD, _TF),
    "records-iterate": PrivateName("tensorflow.python.lib.io._pywrap_record_io", "RecordIterator", _SHIELD, _TF),
    "records-random": PrivateName("tensorflow.python.lib.io._pywrap_record_io", "RandomRecordReader", _SHIELD, _TF),
    "checkpoint-reader": PrivateName(
        "tensorflow.python.training.py_checkpoint_reader", "NewCheckpointReader", _SHIELD, _TF
    ),
    "checkpoint-save": PrivateName(
        "tensorflow.python.checkpoint.functional_saver", "MultiDeviceSaver.save", _SHIELD, _TF
    ),
    "saver-v1-save": PrivateName("tensorflow.python.training.saver", "Saver.save", _SHIELD, _TF),
    "saver-v1-restore": PrivateName("tensorflow.python.training.saver", "Saver.restore", _SHIELD, _TF),
    "saved-model-save": PrivateName("tensorflow.python.saved_model.pywrap_saved_model", "Save", _SHIELD, _TF),
    "events-writer": PrivateName("tensorflow.python.client._pywrap_events_writer", "EventsWriter", _SHIELD, _TF),
    "profiler-start": PrivateName("tensorflow.python.profiler.profiler_v2", "start", _SHIELD, _TF),
    **{
        f"fingerprint-{key}": PrivateName(
            "tensorflow.python.saved_model.pywrap_saved_model", f"fingerprinting.{name}", _SHIELD, _TF
        )
        for key, name in (
            ("create", "CreateFingerprintDef"),
            ("read", "ReadSavedModelFingerprint"),
            ("of-model", "SingleprintFromSM"),
            ("of-print", "SingleprintFromFP"),
        )
    },
    # the numbers of trials
    "variable-init": PrivateName(
        "tensorflow.python.ops.resource_variable_ops", "BaseResourceVariable.__init__", "equal weights", _TF
    ),
    "ref-variable-init": PrivateName(
        "tensorflow.python.ops.ref_variable",
        "RefVariable.__init__",
        "equal weights of TF1",
        _TF,
        earlier=(("tensorflow.python.ops.variables", "RefVariable.__init__"),),
    ),
    "graph-seed": PrivateName("tensorflow.python.framework.ops", "Graph.__init__", "equal random numbers", _TF),
    "random-state": PrivateName(
        "tensorflow.python.ops.stateful_random_ops", "non_deterministic_ints", "equal random numbers", _TF
    ),
    **{
        f"draw-{name}": PrivateName(f"tensorflow.python.ops.gen_{module}", name, "equal random numbers", _TF)
        for module, names in {
            "random_ops": RANDOM_OPS,
            "stateless_random_ops_v2": STATELESS_OPS,
            "stateless_random_ops": ("stateless_multinomial",),
            "candidate_sampling_ops": CANDIDATE_SAMPLERS,
        }.items()
        for name in names
    },
    **{
        f"order-{name}": PrivateName(f"tensorflow.python.ops.gen_{module}_ops", name, "equal elements", _TF)
        for name, module in UNORDERED_OPS.items()
    },
    "op-seed": PrivateName("tensorflow.python.framework.random_seed", "get_seed", "equal random numbers", _TF),
    "global-seed": PrivateName("tensorflow.python.eager.context", "set_global_seed", "equal random numbers", _TF),
    "generator-skip": PrivateName(
        "tensorflow.python.ops.gen_stateful_random_ops", "rng_read_and_skip", "equal random numbers", _TF
    ),
    "seed-generator": PrivateName(
        "keras.src.random.seed_generator", "SeedGenerator.next", "equal random numbers", _KERAS, "keras"
    ),
    # levers of the host, of computing and of the runtime
    "loss-call": PrivateName("keras.src.losses.loss", "Loss.__call__", "function", _KERAS, "keras"),
    "run-eagerly-of-model": PrivateName(
        "keras.src.trainers.trainer", "Trainer.run_eagerly", "no-run-eagerly", _KERAS, "keras"
    ),
    "legacy-run-eagerly-of-model": PrivateName(
        "tf_keras.src.engine.training", "Model.run_eagerly", "no-run-eagerly", _TF_KERAS, "tf_keras"
    ),
    "layer-init": PrivateName("keras.src.layers.layer", "Layer.__init__", "bf16, float32", _KERAS, "keras"),
    "legacy-layer-init": PrivateName(
        "tf_keras.src.engine.base_layer", "Layer.__init__", "bf16, float32", _TF_KERAS, "tf_keras"
    ),
    "clear-session": PrivateName("keras.src.backend.common.global_state", "clear_session", "bf16", _KERAS, "keras"),
    "legacy-clear-session": PrivateName("tf_keras.src.backend", "clear_session", "bf16", _TF_KERAS, "tf_keras"),
    "floatx": PrivateName("keras.src.backend.config", "set_floatx", "float32", _KERAS, "keras"),
    "legacy-floatx": PrivateName("tf_keras.src.backend_config", "set_floatx", "float32", _TF_KERAS, "tf_keras"),
    "dtype-policy": PrivateName(
        "keras.src.dtype_policies.dtype_policy", "set_dtype_policy", "float32", _KERAS, "keras"
    ),
    "legacy-dtype-policy": PrivateName(
        "tf_keras.src.mixed_precision.policy", "set_global_policy", "float32", _TF_KERAS, "tf_keras"
    ),
    **{f"debug-{name}": PrivateName("tensorflow", name, "no-debug", _TF) for name in DEBUG_SWITCHES},
    **{f"switch-{name}": PrivateName("tensorflow", name, f"calls of tf.{name}", _TF) for name in SWITCHES},
    **{
        f"keras-switch-{name}": PrivateName("keras", name, f"calls of keras.{name}", _KERAS, "keras")
        for name in KERAS_SWITCHES
    },
    "transpose": PrivateName("tensorflow.python.ops.gen_array_ops", "transpose", "cancel-transposes", _TF),
    **{
        f"reduce-{name.strip('_')}": PrivateName("tensorflow.python.ops.gen_math_ops", name, "cancel-transposes", _TF)
        for name in ("mean", "_sum", "_max")
    },
    "tape-push": PrivateName("tensorflow.python.eager.backprop", "GradientTape._push_tape", "cancel-transposes", _TF),
    "tape-watch": PrivateName("tensorflow.python.eager.backprop", "GradientTape.watch", "cancel-transposes", _TF),
    "make-train-function": PrivateName(
        "keras.src.backend.tensorflow.trainer",
        "TensorFlowTrainer.make_train_function",
        "free-compute, xla",
        _KERAS,
        "keras",
    ),
    "legacy-make-train-function": PrivateName(
        "tf_keras.src.engine.training", "Model.make_train_function", "free-compute, xla", _TF_KERAS, "tf_keras"
    ),
}


class Missing(Internal):
    """A private name is not in this TensorFlow."""


_LEGACY = "tf_keras.src"
_home = [_LEGACY]
"""Where Keras 2 has its modules: those of tf_keras, or of the package `keras` beside TensorFlow 2.15 and older."""


def keras_2_is_in(package: str) -> None:
    """From now on, names of tf_keras are looked up in this package: `keras.src`, in Keras 2.12 `keras` itself."""
    _home[0] = package


def keras_2() -> str:
    """The package that is Keras 2 here: `tf_keras` or `keras`."""
    return _home[0].partition(".")[0]


def package_of(key: str) -> str:
    """The package in which the name is looked up."""
    package = PRIVATE_NAMES[key].package
    return keras_2() if package == "tf_keras" else package


def _moved(name: PrivateName) -> str:
    return name.module.replace(_LEGACY, _home[0], 1) if name.package == "tf_keras" else name.module


def resolve(key: str) -> tuple[Any, str, Any]:
    """The holder (module or class), the attribute's name and its value."""
    name = PRIVATE_NAMES[key]
    try:
        if name.module == _LIBRARY:
            library = ctypes.CDLL(name.module, mode=os.RTLD_NOLOAD)  # TensorFlow has loaded it
            return library, name.attribute, getattr(library, name.attribute)
        return _found(_moved(name), name.attribute)
    except (ImportError, AttributeError, OSError) as error:
        for module, attribute in name.earlier:
            with contextlib.suppress(ImportError, AttributeError):
                return _found(module, attribute)
        raise Missing(f"{_moved(name)}.{name.attribute}: {error}") from None


def _found(module: str, attribute: str) -> tuple[Any, str, Any]:
    holder: Any = importlib.import_module(module)
    *path, last = attribute.split(".")
    for part in path:
        holder = getattr(holder, part)
    return holder, last, getattr(holder, last)


Wrap = Callable[[Any], Any]
"""Takes the original and returns what stands in its place."""


def patch(key: str, wrap: Wrap) -> None:
    """Replace a name by `wrap(original)`. Raises `Missing` where this TensorFlow lacks it."""
    holder, attribute, original = resolve(key)
    replace(holder, attribute, wrapped(original, wrap(original)))


def wrapped(original: Any, wrapper: Any) -> Any:
    """The wrapper, with the names and the signature of the original."""
    for copied in ("__name__", "__qualname__", "__doc__", "__module__", "__signature__"):
        if hasattr(original, copied):
            with contextlib.suppress(AttributeError, TypeError):
                setattr(wrapper, copied, getattr(original, copied))
    wrapper.__wrapped__ = original
    return wrapper


_replaced: list[tuple[Any, str, Any]] = []


def replace(holder: Any, attribute: str, value: Any) -> None:
    """Set an attribute so that `restore` can undo it. What a class merely inherits is taken off again, not set."""
    _replaced.append((holder, attribute, vars(holder).get(attribute, _INHERITED)))
    setattr(holder, attribute, value)


def restore() -> None:
    """Undo all replacements of this process, the last one first."""
    while _replaced:
        holder, attribute, before = _replaced.pop()
        with contextlib.suppress(Exception):  # the program has taken it off itself; the others are undone all the same
            delattr(holder, attribute) if before is _INHERITED else setattr(holder, attribute, before)
    program_classes.restore()


_INHERITED = object()
