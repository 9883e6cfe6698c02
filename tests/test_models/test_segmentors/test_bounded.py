"""Label maps equal mmseg's own, in whole and sliding inference, without its memory."""

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.models import EncoderDecoder
from mmseg.structures import SegDataSample
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mmsoftmor.engine.distributed import plain_batch_norm
from mmsoftmor.errors import InputError
from mmsoftmor.models.segmentors import BoundedEncoderDecoder

SLIDE = dict(mode="slide", crop_size=(64, 64), stride=(40, 40))


def batch(size, original, count=1, **meta):
    """Random images as a dataloader gives them, and what is known of them."""
    samples = [SegDataSample() for _ in range(count)]
    for sample in samples:
        sample.set_metainfo(dict(img_shape=size, ori_shape=original, pad_shape=size, **meta))
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for _ in samples]
    return dict(inputs=images, data_samples=samples)


def stock(model, data):
    """What mmseg's class makes of the same model and data."""
    with torch.no_grad():
        data = model.data_preprocessor(data)
        return EncoderDecoder.predict(model, **data)


def copied(data):
    return dict(data, data_samples=[sample.clone() for sample in data["data_samples"]])


@pytest.mark.parametrize("test_cfg", [dict(mode="whole"), SLIDE], ids=["whole", "slide"])
@pytest.mark.parametrize(("size", "original"), [((64, 96), (64, 96)), ((50, 77), (131, 95))])
@pytest.mark.parametrize("classes", [3, 17])
def test_label_map_is_exactly_mmsegs(make_upernet, test_cfg, size, original, classes):
    model = make_upernet(test_cfg, num_classes=classes)
    model.classes_at_once = 4
    data = batch(size, original, count=2)
    with torch.no_grad():
        ours = model.test_step(copied(data))
    for mine, theirs in zip(ours, stock(model, copied(data)), strict=True):
        assert mine.pred_sem_seg.data.shape == (1, *original)
        assert mine.pred_sem_seg.data.dtype == theirs.pred_sem_seg.data.dtype
        assert mine.pred_sem_seg.data.unique().numel() > 1
        torch.testing.assert_close(mine.pred_sem_seg.data, theirs.pred_sem_seg.data)
        assert "seg_logits" not in mine


@pytest.mark.parametrize("direction", ["horizontal", "vertical"])
def test_flip_is_undone_as_in_mmseg(make_upernet, direction):
    model = make_upernet()
    data = batch((64, 64), (70, 90), flip=True, flip_direction=direction)
    with torch.no_grad():
        (ours,) = model.test_step(copied(data))
    (theirs,) = stock(model, copied(data))
    torch.testing.assert_close(ours.pred_sem_seg.data, theirs.pred_sem_seg.data)


def test_first_of_equal_scores_wins(make_upernet):
    model = make_upernet(num_classes=9)
    model.classes_at_once = 4
    logits = torch.zeros(1, 9, 4, 4)
    logits[:, [2, 7]] = 1.0
    meta = dict(img_shape=(4, 4), ori_shape=(4, 4), pad_shape=(4, 4))
    assert model._labels(logits, meta, True).unique().tolist() == [2]


class LargestTensor(TorchDispatchMode):
    """Notes the bytes of the largest tensor that any operation returns."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.largest = max(self.largest, leaf.untyped_storage().nbytes())
        return out


def test_no_tensor_holds_150_classes_at_the_size_of_the_image(make_upernet):
    model = make_upernet(num_classes=150)
    data = batch((64, 96), (600, 800))
    with torch.no_grad(), LargestTensor() as ours:
        model.test_step(copied(data))
    with LargestTensor() as theirs:
        stock(model, copied(data))
    assert theirs.largest == 150 * 600 * 800 * 4
    assert ours.largest <= 16 * 600 * 800 * 4


def test_validation_leaves_the_training_as_it_was(make_upernet):
    model = make_upernet().train()
    inputs = torch.rand(2, 3, 64, 64)
    samples = batch((64, 64), (64, 64), count=2)["data_samples"]
    for sample in samples:
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 3, (1, 64, 64)))

    def loss():
        torch.manual_seed(0)
        return model.parse_losses(model.loss(inputs, samples))[0].item()

    before = loss()
    model.eval()
    with torch.no_grad():
        model.test_step(batch((64, 64), (70, 70)))
    model.train()
    assert loss() == before


def test_batch_without_any_labelled_pixel_has_a_finite_loss(make_upernet):
    model = make_upernet().train()
    samples = batch((64, 64), (64, 64), count=2)["data_samples"]
    for sample in samples:
        sample.gt_sem_seg = PixelData(data=torch.full((1, 64, 64), 255))
    total, _ = model.parse_losses(model.loss(torch.rand(2, 3, 64, 64), samples))
    total.backward()
    assert total.item() == 0
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("size", [(64, 64), (40, 64), (33, 47)])
def test_sliding_equals_whole_where_the_crop_holds_the_image(make_upernet, size):
    data = batch(size, (80, 90))
    with torch.no_grad():
        (whole,) = make_upernet().test_step(copied(data))
        (slid,) = make_upernet(SLIDE).test_step(copied(data))
    torch.testing.assert_close(slid.pred_sem_seg.data, whole.pred_sem_seg.data)


def test_sliding_over_an_exact_tiling_is_each_tile_by_itself(make_upernet):
    tiles = dict(mode="slide", crop_size=(64, 64), stride=(64, 64))
    model, whole = make_upernet(tiles), make_upernet()
    data = batch((128, 64), (128, 64))
    with torch.no_grad():
        (slid,) = model.test_step(copied(data))
        for part in (slice(0, 64), slice(64, 128)):
            tile = batch((64, 64), (64, 64))
            tile["inputs"] = [data["inputs"][0][:, part]]
            (alone,) = whole.test_step(tile)
            torch.testing.assert_close(slid.pred_sem_seg.data[:, part], alone.pred_sem_seg.data)


@pytest.mark.parametrize("size", [(64, 64), (100, 64), (77, 131), (50, 90)])
def test_windows_cover_every_pixel_and_average_by_their_count(make_upernet, monkeypatch, size):
    """Each window scores its pixels by what it sees and by how often it was called."""
    model = make_upernet(SLIDE)
    inputs = torch.rand(1, 3, *size)
    seen = []

    def scores(crop, metas):
        seen.append(crop.shape[2:])
        return crop + len(seen)

    monkeypatch.setattr(model, "encode_decode", scores)
    stitched = model.slide_inference(inputs, [dict(img_shape=size)])

    total, count, number = torch.zeros_like(inputs), torch.zeros(1, 1, *size), 0
    for top in _starts(size[0]):
        for left in _starts(size[1]):
            number += 1
            window = (..., slice(top, top + 64), slice(left, left + 64))
            total[window] += inputs[window] + number
            count[window] += 1
    assert len(seen) == number
    assert all(h == min(64, size[0]) and w == min(64, size[1]) for h, w in seen)
    torch.testing.assert_close(stitched, total / count)


def _starts(length, crop=64, stride=40):
    """Where windows begin: every stride, the last one moved inward."""
    starts, at = [], 0
    while at + crop < length:
        starts.append(at)
        at += stride
    return [*starts, max(length - crop, 0)]


def test_padding_is_removed_before_resizing(make_upernet, monkeypatch):
    """Scores that are the padded image's columns come back as the image's own columns."""
    model = make_upernet(num_classes=2)

    def columns(feats):
        position = torch.arange(96.0).view(1, 1, 1, 96).expand(1, 1, 64, 96)
        return torch.cat([position, torch.full_like(position, 39.5)], dim=1)

    monkeypatch.setattr(model.decode_head, "forward", columns)
    data = batch((64, 80), (64, 160))  # 80 columns are padded to 96, and stand for 160
    with torch.no_grad():
        (sample,) = model.test_step(data)
    row = sample.pred_sem_seg.data[0, 0]
    # Column x of the image is column x / 2 of the scores: the first class wins from x = 80 on.
    assert row.tolist() == [1] * 80 + [0] * 80


@pytest.mark.parametrize("side", [17, 24, 45, 66, 100])
@pytest.mark.parametrize("other", [17, 59, 101])
def test_any_size_of_image_gives_a_label_map_of_its_size(make_upernet, side, other):
    model = make_upernet()
    with torch.no_grad():
        (sample,) = model.test_step(batch((side, other), (side, other)))
    assert sample.pred_sem_seg.data.shape == (1, side, other)


@pytest.mark.parametrize(
    ("test_cfg", "words"),
    [
        (dict(mode="slide", crop_size=(64, 64), stride=(65, 64)), "leave pixels out"),
        (dict(mode="slide", crop_size=(64, 64)), "needs stride"),
        (dict(mode="slide", crop_size=64, stride=(32, 32)), r"crop_size = 64: write \(height"),
        (dict(mode="slide", crop_size=(64, 64), stride=(0, 32)), r"stride = \(0, 32\): write"),
        (dict(), "set 'whole' or 'slide'"),
    ],
)
def test_inference_that_cannot_work_is_refused(make_upernet, upernet_cfg, test_cfg, words):
    from mmengine.registry import DefaultScope
    from mmseg.registry import MODELS

    model = dict(upernet_cfg(), test_cfg=test_cfg)
    with DefaultScope.overwrite_default_scope("mmseg"), pytest.raises(InputError, match=words):
        MODELS.build(model)


def test_too_few_classes_at_once_are_refused(upernet_cfg):
    from mmengine.registry import DefaultScope

    options = {k: v for k, v in upernet_cfg().items() if k != "type"}
    with DefaultScope.overwrite_default_scope("mmseg"), pytest.raises(InputError, match="at least"):
        BoundedEncoderDecoder(**options, classes_at_once=1)


def test_plain_batch_norm_predicts_as_synchronised(make_upernet, upernet_cfg):
    from mmengine.registry import DefaultScope
    from mmseg.registry import MODELS

    synced, config = make_upernet(), upernet_cfg()
    plain_batch_norm(config)
    with DefaultScope.overwrite_default_scope("mmseg"):
        plain = MODELS.build(config).eval()
    plain.load_state_dict(synced.state_dict())
    inputs = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(plain(inputs), synced(inputs))
