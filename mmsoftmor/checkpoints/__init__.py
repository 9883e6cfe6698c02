"""Checkpoints in: reading files and loading them into a backbone with a report."""

from mmsoftmor.checkpoints.load import LoadReport, load_pretrained
from mmsoftmor.checkpoints.reader import Checkpoint, read_checkpoint

__all__ = ["Checkpoint", "LoadReport", "load_pretrained", "read_checkpoint"]
