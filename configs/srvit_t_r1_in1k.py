# DeiT's recipe at recursion depth 1: the plain ViT.
_base_ = "srvit_t_in1k.py"
recursion_depth = 1
model = dict(backbone=dict(recursion_depth=recursion_depth))
