# Mask R-CNN, SR-ViT-S R=4, 1333 x 800, 12 epochs, 8 x 2 images.
_base_ = [
    "_base_/models/maskrcnn_srvit_s.py",
    "_base_/datasets/coco_1333.py",
    "_base_/schedules/det_1x.py",
    "_base_/det_runtime.py",
]
model = dict(data_preprocessor=dict(batch_augments=None))
