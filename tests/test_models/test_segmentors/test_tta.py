"""Test-time augmentation merges as mmseg's does and keeps what belongs to the image."""

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.models import SegTTAModel
from mmseg.structures import SegDataSample

from mmsoftmor.models.segmentors import RunningSegTTA

ORIGINAL = (50, 70)


def view(image, size, flip=False):
    """One view of an image, as the pipeline packs it."""
    resized = torch.nn.functional.interpolate(image[None], size=size)[0]
    sample = SegDataSample()
    sample.set_metainfo(
        dict(
            img_path="folder/name.jpg",
            img_shape=size,
            ori_shape=ORIGINAL,
            pad_shape=size,
            flip=flip,
            flip_direction="horizontal" if flip else None,
        )
    )
    return (resized.flip(2) if flip else resized), sample


@pytest.fixture
def image():
    return torch.rand(3, *ORIGINAL) * 255


def batch(*views):
    """Views of one image as the dataloader gives them: lists over views of batches of one."""
    return dict(inputs=[[x] for x, _ in views], data_samples=[[s.clone()] for _, s in views])


def labels(model, data):
    with torch.no_grad():
        (sample,) = model.test_step(data)
    return sample.pred_sem_seg.data


def test_merged_label_map_is_mmsegs(make_upernet, image):
    views = [view(image, (48, 66)), view(image, (48, 66), True), view(image, (33, 100), True)]
    model = make_upernet(num_classes=7)
    theirs = SegTTAModel(model)
    model.keep_logits = True
    expected = labels(theirs, batch(*views))
    ours = labels(RunningSegTTA(model), batch(*views))
    assert ours.shape == (1, *ORIGINAL)
    assert ours.unique().numel() > 1
    torch.testing.assert_close(ours, expected.view(1, *ORIGINAL))


def test_one_plain_view_equals_no_augmentation(make_upernet, image):
    model = make_upernet(num_classes=7)
    pixels, sample = view(image, (48, 66))
    with torch.no_grad():
        (plain,) = model.test_step(dict(inputs=[pixels], data_samples=[sample.clone()]))
    augmented = labels(RunningSegTTA(model), batch((pixels, sample)))
    torch.testing.assert_close(augmented, plain.pred_sem_seg.data)


def test_flipping_is_undone_before_merging(make_upernet, image, monkeypatch):
    """A model that scores each pixel by its colour alone cannot tell a flip."""
    model = make_upernet()
    monkeypatch.setattr(model, "encode_decode", lambda inputs, metas: inputs)
    size = (64, 64)
    plain = labels(RunningSegTTA(model), batch(view(image, size)))
    both = labels(RunningSegTTA(model), batch(view(image, size), view(image, size, True)))
    assert plain.unique().numel() == 3
    torch.testing.assert_close(both, plain)


@pytest.mark.parametrize("labelled", [True, False])
def test_merged_sample_keeps_what_belongs_to_the_image(make_upernet, image, labelled):
    views = [view(image, (32, 32)), view(image, (64, 64), True)]
    truth = torch.zeros(1, *ORIGINAL, dtype=torch.long)
    if labelled:
        for _, sample in views:
            sample.gt_sem_seg = PixelData(data=truth)
    with torch.no_grad():
        (merged,) = RunningSegTTA(make_upernet()).test_step(batch(*views))
    assert merged.img_path == "folder/name.jpg"
    assert merged.ori_shape == ORIGINAL
    assert ("gt_sem_seg" in merged) is labelled
    assert "seg_logits" not in merged
