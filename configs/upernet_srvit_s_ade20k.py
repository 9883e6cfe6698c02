# UperNet, SR-ViT-S R=4, 512 x 512, 160k iterations, 8 x 2 images, whole-image inference.
_base_ = [
    "_base_/models/upernet_srvit_s.py",
    "_base_/datasets/ade20k.py",
    "_base_/schedules/seg_160k.py",
    "_base_/seg_runtime.py",
]
