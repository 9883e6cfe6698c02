# ViTDet's schedule: batch 64, 100 epochs = 184,375 iterations * 64 / 118,000 images; the rate drops
# at 163,889 and 177,546 iterations, epochs 89 and 96.
max_epochs = 100
optim_wrapper = dict(
    type="AmpOptimWrapper",
    dtype="bfloat16",  # "float16" on cards without bf16
    optimizer=dict(type="AdamW", lr=1e-4, betas=(0.9, 0.999), weight_decay=0.1),
    constructor="RecursiveLayerDecayConstructor",
    paramwise_cfg=dict(layer_decay_rate=0.7),
    # ViTDet does not clip. Recursion multiplies a layer's gradient by up to R, so a rare large step
    # costs more here; 1.0 bounds it. None turns it off.
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-3, by_epoch=False, begin=0, end=250),
    dict(type="MultiStepLR", by_epoch=True, begin=0, end=max_epochs, milestones=[89, 96]),
]
train_cfg = dict(type="EpochBasedTrainLoop", max_epochs=max_epochs, val_interval=5)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
auto_scale_lr = dict(enable=False, base_batch_size=64)
