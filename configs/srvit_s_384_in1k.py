# SR-ViT-S R=4 fine-tuned at 384 pixels from what srvit_s_in1k.py trained, as DeiT is: 30 epochs,
# 8 x 64 images. The position table is resized in loading.
_base_ = [
    "_base_/models/classifier_srvit.py",
    "_base_/datasets/imagenet_384.py",
    "_base_/schedules/in1k_384_30e.py",
    "_base_/cls_ema_runtime.py",
]
model = dict(backbone=dict(img_size=384))
load_from = "work_dirs/srvit_s_in1k/epoch_300.pth"
