"""Training and testing around MMEngine's runner. Importing this registers hooks and wrappers."""

from mmsoftmor.engine.atomic import AtomicLocalBackend
from mmsoftmor.engine.checkpoints import BackboneCheckpointHook
from mmsoftmor.engine.hooks import (
    AtomicCheckpointHook,
    FiniteLossHook,
    ReproducibleRNGHook,
    seed_worker_from_torch,
)
from mmsoftmor.engine.layer_decay import RecursiveLayerDecayConstructor
from mmsoftmor.engine.precision import CPUAmpOptimWrapper, Float32BoxHook
from mmsoftmor.engine.progressive_depth import ProgressiveDepthHook

__all__ = [
    "AtomicCheckpointHook",
    "AtomicLocalBackend",
    "BackboneCheckpointHook",
    "CPUAmpOptimWrapper",
    "FiniteLossHook",
    "Float32BoxHook",
    "ProgressiveDepthHook",
    "RecursiveLayerDecayConstructor",
    "ReproducibleRNGHook",
    "seed_worker_from_torch",
]
