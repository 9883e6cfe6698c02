from mmsoftmor.models.backbones.srvit import SRViT

__all__ = ["SRViT"]
