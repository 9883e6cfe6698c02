"""SR-ViT, the Soft Recursive Vision Transformer, for dense prediction on the OpenMMLab stack.

Importing the package alone stays light, so that ``python -m mmsoftmor.env`` can diagnose a broken
installation. Importing ``mmsoftmor.models`` registers the backbone and the neck; the shipped
configs do that through ``custom_imports``.
"""

from mmsoftmor.version import __version__

__all__ = ["__version__"]
