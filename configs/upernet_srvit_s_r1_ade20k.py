# The default recipe at recursion depth 1: the plain ViT.
_base_ = "upernet_srvit_s_ade20k.py"
recursion_depth = 1
model = dict(backbone=dict(recursion_depth=recursion_depth))
