# SR-ViT-B R=4 fine-tuned at 384 pixels from what srvit_b_in1k.py trained.
_base_ = "srvit_s_384_in1k.py"
model = dict(backbone=dict(arch="base"), head=dict(in_channels=768))
load_from = "work_dirs/srvit_b_in1k/epoch_300.pth"
