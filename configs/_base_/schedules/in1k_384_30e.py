# DeiT's fine-tuning at a higher resolution: batch 512 = 8 x 64, 30 epochs at a constant rate.
max_epochs = 30
optim_wrapper = dict(
    type="AmpOptimWrapper",
    dtype="bfloat16",  # "float16" on cards without bf16
    optimizer=dict(type="AdamW", lr=5e-6, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-8),
    constructor="RecursiveLayerDecayConstructor",
    paramwise_cfg=dict(layer_decay_rate=1.0),
    clip_grad=dict(max_norm=5.0),
)
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
train_cfg = dict(type="EpochBasedTrainLoop", max_epochs=max_epochs, val_interval=1)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
auto_scale_lr = dict(enable=False, base_batch_size=512)
