# 36 epochs at 8 x 2 images.
_base_ = "det_1x.py"
max_epochs = 36
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-3, by_epoch=False, begin=0, end=500),
    dict(type="MultiStepLR", by_epoch=True, begin=0, end=max_epochs, milestones=[27, 33]),
]
train_cfg = dict(max_epochs=max_epochs)
