# Mask R-CNN, SR-ViT-B R=4, large-scale jitter, 25 epochs, 8 x 8 images.
_base_ = [
    "_base_/models/maskrcnn_srvit_b.py",
    "_base_/datasets/coco_lsj.py",
    "_base_/schedules/det_lsj_25e.py",
    "_base_/det_runtime.py",
]
