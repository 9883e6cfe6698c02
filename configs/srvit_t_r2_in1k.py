# DeiT's recipe at recursion depth 2.
_base_ = "srvit_t_in1k.py"
recursion_depth = 2
model = dict(backbone=dict(recursion_depth=recursion_depth))
