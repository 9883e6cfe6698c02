# SR-ViT-nano R=4 as a classifier on the sample dataset: the quickstart's classification job. It
# fine-tunes from the plain ViT that srvit_nano_r1_sample.py trains.
_base_ = "srvit_nano_r1_sample.py"
recursion_depth = 4
model = dict(
    backbone=dict(
        recursion_depth=recursion_depth,
        router=dict(init="first"),
        init_cfg=dict(type="Pretrained", checkpoint="mmsoftmor://srvit_nano_r1_sample.safetensors"),
    ),
)
max_epochs = 2
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-2, by_epoch=False, begin=0, end=50),
    dict(type="CosineAnnealingLR", by_epoch=True, T_max=max_epochs, convert_to_iter_based=True),
]
optim_wrapper = dict(optimizer=dict(lr=5e-4))
train_cfg = dict(max_epochs=max_epochs, val_interval=1)
