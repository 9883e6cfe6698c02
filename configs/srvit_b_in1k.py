# SR-ViT-B R=4 on ImageNet-1k, DeiT's recipe: 224 px, 300 epochs, 8 x 128 images.
_base_ = [
    "_base_/models/classifier_srvit.py",
    "_base_/datasets/imagenet_224.py",
    "_base_/schedules/in1k_300e.py",
    "_base_/cls_ema_runtime.py",
]
model = dict(backbone=dict(arch="base"), head=dict(in_channels=768))
