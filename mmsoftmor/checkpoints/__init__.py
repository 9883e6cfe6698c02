"""Checkpoints in and out: reading, fitting to a model with a report, converting, publishing."""

from mmsoftmor.checkpoints.load import load_pretrained
from mmsoftmor.checkpoints.reader import Checkpoint, read_checkpoint
from mmsoftmor.checkpoints.report import LoadReport

__all__ = ["Checkpoint", "LoadReport", "load_pretrained", "read_checkpoint"]
