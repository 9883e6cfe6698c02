# DeiT's schedule (arXiv 2012.12877): batch 1024 = 8 x 128, 300 epochs.
max_epochs = 300
optim_wrapper = dict(
    type="AmpOptimWrapper",
    dtype="bfloat16",  # "float16" on cards without bf16
    optimizer=dict(type="AdamW", lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.05),
    # Without layer decay; no weight decay on bias, norms, position embedding and class token.
    constructor="RecursiveLayerDecayConstructor",
    paramwise_cfg=dict(layer_decay_rate=1.0),
    # DeiT does not clip, mmpretrain's DeiT does at 5.0. Recursion multiplies a layer's gradient by
    # up to R, so a rare large step costs more here. None turns it off.
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(
        type="LinearLR",
        start_factor=1e-3,  # from 1e-6
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True,
    ),
    dict(
        type="CosineAnnealingLR",
        eta_min=1e-5,
        by_epoch=True,
        begin=5,
        end=max_epochs,
        T_max=max_epochs - 5,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(type="EpochBasedTrainLoop", max_epochs=max_epochs, val_interval=5)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
auto_scale_lr = dict(enable=False, base_batch_size=1024)
