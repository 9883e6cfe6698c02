# Mask R-CNN, SR-ViT-S R=4, large-scale jitter, 50 epochs, 8 x 8 images.
_base_ = [
    "_base_/models/maskrcnn_srvit_s.py",
    "_base_/datasets/coco_lsj.py",
    "_base_/schedules/det_lsj_50e.py",
    "_base_/det_runtime.py",
]
