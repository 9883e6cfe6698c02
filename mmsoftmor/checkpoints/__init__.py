"""Checkpoints: reading files, loading them into a backbone with a report, writing a backbone."""

from mmsoftmor.checkpoints.export import export_backbone
from mmsoftmor.checkpoints.load import load_pretrained
from mmsoftmor.checkpoints.reader import Checkpoint, read_checkpoint
from mmsoftmor.checkpoints.report import LoadReport

__all__ = ["Checkpoint", "LoadReport", "export_backbone", "load_pretrained", "read_checkpoint"]
