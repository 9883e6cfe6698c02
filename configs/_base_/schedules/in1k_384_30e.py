# DeiT's fine-tuning at a higher resolution: batch 512 = 8 x 64, 30 epochs at a constant rate.
_base_ = "in1k_300e.py"
max_epochs = 30
optim_wrapper = dict(optimizer=dict(lr=5e-6, weight_decay=1e-8))
param_scheduler = [
    dict(
        type="LinearLR",
        start_factor=0.2,  # from 1e-6
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True,
    ),
    dict(type="ConstantLR", factor=1.0, by_epoch=True, begin=5, end=max_epochs),
]
train_cfg = dict(max_epochs=max_epochs, val_interval=1)
auto_scale_lr = dict(base_batch_size=512)
