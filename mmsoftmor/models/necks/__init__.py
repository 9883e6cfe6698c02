from mmsoftmor.models.necks.simple_feature_pyramid import SimpleFeaturePyramid

__all__ = ["SimpleFeaturePyramid"]
