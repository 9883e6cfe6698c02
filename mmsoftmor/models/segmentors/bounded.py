"""An encoder-decoder whose memory at prediction does not grow with classes times pixels."""

import math

from mmengine.structures import PixelData
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmsoftmor.errors import InputError


@MODELS.register_module()
class BoundedEncoderDecoder(EncoderDecoder):
    """``EncoderDecoder`` that never holds the scores of all classes at the size of the image.

    mmseg resizes the scores of every class to the original size, keeps them in the result and takes
    the maximum: 150 classes of a 4000 x 3000 image are 7.2 GB. Here a few classes at a time are
    resized, by mmseg's own code, against a running maximum, and only the label map stays: equal to
    mmseg's, ``classes_at_once`` maps of the image's size at a time. Whole inference also keeps the
    head's own stride-4 scores instead of maps of the network input's size; sliding inference needs
    those (150 classes at 512 x 683: 210 MB) to average its windows.

    Args:
        classes_at_once (int): Classes whose scores have the image's size at one time, at least 4.
            Defaults to 16.
        *args, **kwargs: Those of mmseg's ``EncoderDecoder``.

    Attributes:
        keep_logits (bool): Whether results hold ``seg_logits`` as mmseg's do, at its memory;
            test-time augmentation sets it. Starts as False.

    Raises:
        InputError: ``classes_at_once`` is below 4, or ``test_cfg`` names no mode, no sizes for
            sliding, or a stride longer than its crop, which would leave pixels out.
    """

    def __init__(self, *args, classes_at_once: int = 16, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if classes_at_once < 4:
            raise InputError(f"classes_at_once={classes_at_once} must be at least 4")
        _check_windows(self.test_cfg)
        self.classes_at_once = classes_at_once
        self.keep_logits = False

    def predict(
        self, inputs: Tensor, data_samples: list[SegDataSample] | None = None
    ) -> list[SegDataSample]:
        """Predict label maps at the original sizes of the images.

        Args:
            inputs (Tensor): Normalised and padded images (B, 3, H, W).
            data_samples (list[SegDataSample], optional): Their samples. Defaults to None: mmseg's
                own results, at the size of ``inputs``.

        Returns:
            list[SegDataSample]: The samples with ``pred_sem_seg``, (1, h, w) int64.
        """
        if data_samples is None or self.keep_logits or self.out_channels == 1:
            return super().predict(inputs, data_samples)
        metas = [sample.metainfo for sample in data_samples]
        slides = self.test_cfg.mode == "slide"
        if slides:
            logits = self.slide_inference(inputs, metas)
        else:
            logits = self.decode_head(self.extract_feat(inputs))
        for index, sample in enumerate(data_samples):
            labels = self._labels(logits[index : index + 1], sample.metainfo, slides)
            sample.pred_sem_seg = PixelData(data=labels)
        return data_samples

    def _labels(self, logits: Tensor, meta: dict, at_input_size: bool) -> Tensor:
        """Return the label map (1, h, w) of one image's scores (1, C, H, W)."""
        best = labels = None
        first = 0
        # Parts of nearly equal length: mmseg takes a single channel for a binary score.
        for part in logits.tensor_split(math.ceil(logits.shape[1] / self.classes_at_once), dim=1):
            scores, index = self._resized(part, meta, at_input_size)
            index = index + first
            if best is None:
                best, labels = scores, index
            else:
                better = scores > best  # an earlier class wins a tie, as in argmax
                best, labels = scores.where(better, best), index.where(better, labels)
            first += part.shape[1]
        return labels

    def _resized(self, part: Tensor, meta: dict, at_input_size: bool) -> tuple[Tensor, Tensor]:
        """Return the highest of some classes' scores at the original size and where it is."""
        if not at_input_size:
            part = self.decode_head.predict_by_feat(part, [meta])
        (sample,) = self.postprocess_result(part, [SegDataSample(metainfo=meta)])
        index = sample.pred_sem_seg.data
        return sample.seg_logits.data.gather(0, index), index


def _check_windows(test_cfg: dict) -> None:
    mode = test_cfg.get("mode")
    if mode not in ("whole", "slide"):
        raise InputError(f"model.test_cfg.mode = {mode!r}: set 'whole' or 'slide'")
    if mode == "whole":
        return
    lacking = [key for key in ("crop_size", "stride") if key not in test_cfg]
    if lacking:
        raise InputError(
            f"model.test_cfg: mode 'slide' needs {lacking[0]}: add it, (height, width)"
        )
    for key in ("crop_size", "stride"):
        if not _is_size(test_cfg[key]):
            raise InputError(
                f"model.test_cfg.{key} = {test_cfg[key]!r}: write (height, width), from 1 pixel on"
            )
    if any(s > c for s, c in zip(test_cfg["stride"], test_cfg["crop_size"], strict=True)):
        raise InputError(
            f"model.test_cfg.stride = {test_cfg['stride']} is longer than crop_size = "
            f"{test_cfg['crop_size']}: windows would leave pixels out"
        )


def _is_size(value) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(isinstance(length, int) and length > 0 for length in value)
