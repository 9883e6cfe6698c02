"""Read images, and say which file it is when one cannot be read."""

from __future__ import annotations

import mmcv
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from mmengine.registry import TRANSFORMS

from mmsoftmor.errors import InputError


@TRANSFORMS.register_module()
class LoadCheckedImage(LoadImageFromFile):
    """``LoadImageFromFile`` that stops at a missing, undecodable or truncated image.

    Decoders fill what is missing of a truncated JPEG with grey and go on, so the end of the file
    is looked for. Arguments are those of :class:`mmcv.transforms.LoadImageFromFile`; with
    ``ignore_empty=True`` a bad image gives None (the sample is drawn again) instead of the error.
    """

    def transform(self, results: dict) -> dict | None:
        """Add ``img``, an (H, W, 3) uint8 BGR array by default, and its shape to a sample.

        Raises:
            InputError: The image is missing, cannot be decoded or is cut short; names the file.
        """
        try:
            image = self._read(results["img_path"])
        except InputError:
            if self.ignore_empty:
                return None
            raise
        results["img"] = image.astype(np.float32) if self.to_float32 else image
        results["img_shape"] = results["ori_shape"] = image.shape[:2]
        return results

    def _read(self, path: str) -> np.ndarray:
        try:
            content = fileio.get(path, backend_args=self.backend_args)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}): restore it") from error
        if _is_cut_short(content):
            raise InputError(f"{path}: image file is cut short (no end marker): replace it")
        try:
            image = mmcv.imfrombytes(content, self.color_type, backend=self.imdecode_backend)
        except Exception as error:  # each decoder has its own kind of exception
            raise InputError(f"{path}: cannot be decoded as an image ({error})") from error
        if image is None:
            raise InputError(f"{path}: cannot be decoded as an image: replace the file")
        return image


def _is_cut_short(content: bytes) -> bool:
    """Whether a JPEG or PNG file lacks its end marker; bytes after the marker are harmless."""
    if content.startswith(b"\xff\xd8"):
        # A thumbnail in the header has an end marker too: ours follows the last start-of-scan.
        return content.rfind(b"\xff\xd9") < content.rfind(b"\xff\xda")
    return content.startswith(b"\x89PNG") and b"IEND" not in content[-1024:]
