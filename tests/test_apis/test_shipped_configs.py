from pathlib import Path

import pytest
from mmengine.config import Config

from mmsoftmor.apis import configs
from mmsoftmor.apis.configs import configs_dir, register_config_scope, shipped_config
from mmsoftmor.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package folder of our own, so that nothing depends on which configs are shipped."""
    monkeypatch.setattr(configs, "_PACKAGE", tmp_path / "mmsoftmor")
    folder = tmp_path / "mmsoftmor/.mim/configs"
    (folder / "_base_").mkdir(parents=True)
    (folder / "_base_/runtime.py").write_text("default_scope = 'mmdet'\n")
    (folder / "maskrcnn_srvit_s_coco.py").write_text(
        "_base_ = './_base_/runtime.py'\nmodel = dict(type='MaskRCNN', depth=4)\n"
    )
    (folder / "upernet_srvit_s_ade20k.py").write_text("model = dict(type='EncoderDecoder')\n")
    return tmp_path


def test_checkout_uses_its_own_configs():
    assert configs_dir() == ROOT / "configs"


@pytest.mark.parametrize("name", ["maskrcnn_srvit_s_coco", "maskrcnn_srvit_s_coco.py"])
def test_config_is_found_with_and_without_suffix(package, name):
    path = shipped_config(name)
    assert path == str(package / "mmsoftmor/.mim/configs/maskrcnn_srvit_s_coco.py")


def test_base_configs_are_found_by_their_path(package):
    assert Path(shipped_config("_base_/runtime.py")).is_file()


def test_mistyped_name_lists_close_ones(package):
    with pytest.raises(InputError, match=r"'maskrcn_srvit_s_coco'.*maskrcnn_srvit_s_coco\.py"):
        shipped_config("maskrcn_srvit_s_coco")


def test_name_like_no_other_lists_the_shipped_ones(package):
    with pytest.raises(InputError, match=r"maskrcnn_srvit_s_coco\.py, upernet"):
        shipped_config("zzz")


@pytest.mark.parametrize("name", ["../secret", "/etc/hosts", ""])
def test_names_outside_the_folder_are_refused(package, name):
    (package / "mmsoftmor/.mim/secret.py").write_text("")
    with pytest.raises(InputError, match="no shipped config"):
        shipped_config(name)


def test_foreign_configs_folder_in_site_packages_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(configs, "_PACKAGE", tmp_path / "mmsoftmor")
    (tmp_path / "configs").mkdir()
    with pytest.raises(InputError, match="install mmsoftmor again"):
        configs_dir()


@pytest.fixture
def registered(monkeypatch):
    """Register for one test; the class is put back as it was."""
    monkeypatch.setattr(Config, "_get_cfg_path", staticmethod(Config._get_cfg_path))
    register_config_scope()


@pytest.mark.parametrize("suffix", ["", ".py"])
def test_child_config_inherits_by_scope_from_any_folder(package, registered, tmp_path, suffix):
    child = tmp_path / "elsewhere" / "child.py"
    child.parent.mkdir()
    child.write_text(
        f"_base_ = 'mmsoftmor::maskrcnn_srvit_s_coco{suffix}'\nmodel = dict(depth=2)\n"
    )
    loaded = Config.fromfile(child)
    assert loaded.model == dict(type="MaskRCNN", depth=2)
    assert loaded.default_scope == "mmdet"


def test_inherited_dicts_carry_no_scope_of_ours(package, registered, tmp_path):
    child = tmp_path / "child.py"
    child.write_text("_base_ = 'mmsoftmor::maskrcnn_srvit_s_coco'\n")
    assert "_scope_" not in Config.fromfile(child).model


def test_mistyped_base_names_the_close_ones(package, registered, tmp_path):
    child = tmp_path / "child.py"
    child.write_text("_base_ = 'mmsoftmor::maskrcnn_srvit_x_coco'\n")
    with pytest.raises(InputError, match=r"maskrcnn_srvit_s_coco\.py"):
        Config.fromfile(child)


def test_other_scopes_and_relative_bases_resolve_as_before(registered):
    here = str(ROOT / "x/child.py")
    assert Config._get_cfg_path("../base.py", here) == (str(ROOT / "x/../base.py"), None)
    path, scope = Config._get_cfg_path("mmdet::_base_/default_runtime.py", here)
    assert scope == "mmdet"
    assert Path(path).is_file()


def test_registering_twice_wraps_once(registered):
    first = Config._get_cfg_path
    register_config_scope()
    assert Config._get_cfg_path is first
