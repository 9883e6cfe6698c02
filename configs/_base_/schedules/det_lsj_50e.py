# The 100-epoch schedule at 50 epochs, its milestones in proportion.
_base_ = "det_lsj_100e.py"
max_epochs = 50
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-3, by_epoch=False, begin=0, end=250),
    dict(type="MultiStepLR", by_epoch=True, begin=0, end=max_epochs, milestones=[44, 48]),
]
train_cfg = dict(max_epochs=max_epochs)
