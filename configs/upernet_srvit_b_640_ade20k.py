# UperNet, SR-ViT-B R=4, 640 x 640, 160k iterations, 8 x 2 images, sliding inference.
_base_ = [
    "_base_/models/upernet_srvit_b.py",
    "_base_/datasets/ade20k_640.py",
    "_base_/schedules/seg_160k.py",
    "_base_/seg_runtime.py",
]
model = dict(
    data_preprocessor=dict(size=(640, 640)),
    test_cfg=dict(mode="slide", crop_size=(640, 640), stride=(426, 426)),
)
