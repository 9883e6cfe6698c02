"""Test-time augmentation that holds two score maps however many views there are."""

from mmengine.structures import PixelData
from mmseg.models import SegTTAModel
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor


@MODELS.register_module()
class RunningSegTTA(SegTTAModel):
    """``SegTTAModel`` that adds the class probabilities of the views up one after the other.

    mmseg's keeps the scores of all views alive, 2.5 GB for twelve views of a 512 x 683 image with
    150 classes, and returns the last view's sample. The result here is the sample of the first
    view, with its ground truth if there is one, and the merged label map as ``pred_sem_seg``,
    (1, h, w) int64.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.module.keep_logits = True

    def test_step(self, data: dict) -> list[SegDataSample]:
        """Predict one batch.

        Args:
            data (dict): ``inputs`` and ``data_samples``, lists over the views of batches.

        Returns:
            list[SegDataSample]: One merged sample for each image of the batch.
        """
        views = len(data["inputs"])
        merged = self._predict(data, 0)
        totals = [self._probabilities(sample) for sample in merged]
        for view in range(1, views):
            for total, sample in zip(totals, self._predict(data, view), strict=True):
                total += self._probabilities(sample)
        for sample, total in zip(merged, totals, strict=True):
            sample.pred_sem_seg = PixelData(data=self._labels(total / views))
        return merged

    def _predict(self, data: dict, view: int) -> list[SegDataSample]:
        return self.module.test_step({key: value[view] for key, value in data.items()})

    def _probabilities(self, sample: SegDataSample) -> Tensor:
        """Take the scores (C, h, w) out of a sample as probabilities."""
        scores = sample.seg_logits.data
        del sample.seg_logits
        # mmseg's binary head has been through the sigmoid already.
        return scores if self.module.out_channels == 1 else scores.softmax(dim=0)

    def _labels(self, probabilities: Tensor) -> Tensor:
        if self.module.out_channels == 1:
            return (probabilities > self.module.decode_head.threshold).to(probabilities)
        return probabilities.argmax(dim=0, keepdim=True)
