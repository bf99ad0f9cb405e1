"""What vitrove-export does without PyTorch: directories, fingerprints, and the inputs it computes from grids.

With PyTorch it is tested in tests/export; that exported graphs give the tower's rows in
tests/unit/encoders/tower_test.cpp.
"""

import errno
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "vitrove-export"
TOWERS = ROOT / "tests" / "data" / "towers"
sys.path.insert(0, str(PACKAGE))

from vitrove_export import checkpoint_files, cli, families, grid_inputs, model_directory  # noqa: E402
from vitrove_export.errors import ExportError  # noqa: E402
from vitrove_export.fingerprint import digest_of_parts, external_locations, fingerprint  # noqa: E402

NAMES = ["clip", "siglip", "whisper", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"]
REFERENCE = json.loads((TOWERS / "grid_inputs.json").read_text())
DESCRIBED = {tower["name"]: tower for tower in json.loads((TOWERS / "towers.json").read_text())["towers"]}


def linear_graph(path):
    """rows = pixel_values * weight, with a weight of 4 KB."""
    weight = np.arange(1024, dtype=np.float32).reshape(32, 32)
    onnx.save_model(onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["pixel_values", "weight"], ["rows"])], "linear",
        [onnx.helper.make_tensor_value_info("pixel_values", onnx.TensorProto.FLOAT, ["n", 32])],
        [onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, ["n", "any"])],
        [onnx.numpy_helper.from_array(weight, "weight")])), path)


@pytest.mark.parametrize("name", NAMES)
def test_the_fingerprint_is_the_one_that_vitrove_computes(name):
    """DESCRIBED holds what C++ is tested against, too."""
    assert fingerprint(TOWERS / name) == DESCRIBED[name]["fingerprint"]


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_graph_is_valid_and_says_nothing_of_the_machine_it_was_made_on(name):
    content = (TOWERS / name / "model.onnx").read_bytes()
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    for word in (b"/tmp", b"/home", b"/root", b"site-packages"):
        assert word not in content


def test_the_canonical_encoding_is_framed():
    """What moves from one part to the next makes another digest."""
    assert digest_of_parts({}, {"a": "bc"}) != digest_of_parts({}, {"ab": "c"})
    assert digest_of_parts({"a": b"x" * 32}, {}) != digest_of_parts({}, {"a": "x" * 32})
    assert digest_of_parts({}, {"b": "1", "a": "2"}) == digest_of_parts({}, {"a": "2", "b": "1"})


def test_the_number_of_windows_grids_and_segments_follows_the_reference():
    for case in REFERENCE["position_ids"]:
        ours = grid_inputs.position_ids(case["grids"], case["spatial_merge_size"])
        assert ours.flatten().tolist() == case["expected"]
    for case in REFERENCE["window_index"]:
        ours = grid_inputs.window_index(case["grids"], case["spatial_merge_size"], grid_inputs.window_side(case))
        assert ours.tolist() == case["expected"]
    for case in REFERENCE["pos_embed"]:
        index, weight = grid_inputs.stretched(case["grids"], case)
        mixture = np.zeros((index.shape[1], case["num_grid_per_side"] ** 2))
        for corner in range(4):
            np.add.at(mixture, (np.arange(index.shape[1]), index[corner]), weight[corner])
        np.testing.assert_allclose(mixture.flatten(), case["expected"], atol=1e-5)


def test_segments_are_the_temporal_steps():
    inputs = grid_inputs.aux_inputs(["cu_seqlens", "segment_ids"], {}, [(2, 1, 2), (1, 2, 2)])
    assert inputs["cu_seqlens"].tolist() == [0, 2, 4, 8]
    assert inputs["segment_ids"].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]


def test_a_grid_that_does_not_divide_into_blocks_is_refused():
    with pytest.raises(ExportError, match="3 by 4 patches"):
        grid_inputs.position_ids([(1, 3, 4)], 2)


def test_vitrove_json_names_what_the_graph_needs():
    config = families.vitrove_json(
        families.QWEN2_5_VL, {"spatial_merge_size": 2, "window_size": 112, "patch_size": 14}, name="q", revision="r",
        dtype="bfloat16")
    assert config == {
        "name": "q", "revision": "r", "modality": ["image", "video"], "input": "pixel_values", "output": "rows",
        "layout": "packed", "dtype": "bfloat16",
        "aux_inputs": {kind: kind for kind in ("cu_seqlens", "position_ids", "segment_ids", "window_index")},
        "aux_params": {"spatial_merge_size": 2, "window_size": 112, "patch_size": 14}}
    clip = families.vitrove_json(families.CLIP, {}, name="c", revision="", dtype="float32", output="hidden_states.3")
    assert clip["modality"] == "image" and clip["output"] == "hidden_states.3" and "aux_inputs" not in clip


def test_learned_positions_must_form_a_square():
    tower = {"spatial_merge_size": 2, "num_position_embeddings": 2304}
    assert families.aux_params(families.QWEN3_VL, tower)["num_grid_per_side"] == 48
    with pytest.raises(ExportError, match="2305, which is no square"):
        families.aux_params(families.QWEN3_VL, {**tower, "num_position_embeddings": 2305})


def test_models_and_processors_that_are_not_known_are_named_with_those_that_are():
    with pytest.raises(ExportError, match="'llama', which cannot be exported .known: clip"):
        families.family_of("llama")
    with pytest.raises(ExportError, match="names no image_processor_type"):
        families.preprocessing_family({})
    with pytest.raises(ExportError, match="BlipImageProcessor"):
        families.preprocessing_family({"image_processor_type": "BlipImageProcessor"})


@pytest.mark.parametrize(("preprocessor", "video", "family"), [
    ({"image_processor_type": "CLIPImageProcessorFast"}, None, "clip"),
    ({"feature_extractor_type": "CLIPFeatureExtractor"}, None, "clip"),
    ({"image_processor_type": "Qwen2_5_VLImageProcessor"}, None, "qwen2_vl"),
    ({"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"}, None, "qwen3_vl"),
    ({"image_processor_type": "Qwen2VLImageProcessorFast"}, {"video_processor_type": "Qwen3VLVideoProcessor"},
     "qwen3_vl"),
    ({"feature_extractor_type": "WhisperFeatureExtractor"}, None, "whisper")])
def test_preprocessing_families_have_the_names_that_vitrove_gives_them(preprocessor, video, family):
    assert families.preprocessing_family(preprocessor, video) == family


def test_a_directory_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "model"
    with pytest.raises(RuntimeError), model_directory.new_directory(target) as working:
        (working / "vitrove.json").write_text("{}")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with model_directory.new_directory(target) as working:
        model_directory.write_json(working / "vitrove.json", {"name": "n"})
    assert json.loads((target / "vitrove.json").read_text()) == {"name": "n"}
    with pytest.raises(ExportError, match="no empty directory"), model_directory.new_directory(target):
        pass
    assert (target / "vitrove.json").is_file()


def test_large_weights_stand_beside_the_graph_and_count(tmp_path, monkeypatch):
    linear_graph(tmp_path / "exported.onnx")
    whole, split = tmp_path / "whole", tmp_path / "split"
    for folder in (whole, split):
        folder.mkdir()
        model_directory.write_json(folder / "vitrove.json", families.vitrove_json(
            families.CLIP, {}, name="c", revision="", dtype="float32", output="rows"))
        model_directory.write_json(folder / "preprocessor_config.json", {"image_processor_type": "CLIPImageProcessor"})
    model_directory.write_graph(tmp_path / "exported.onnx", whole, "rows", ["rows", 32])
    monkeypatch.setattr(model_directory, "LARGEST_SINGLE_FILE", 1000)
    model_directory.write_graph(tmp_path / "exported.onnx", split, "rows", ["rows", 32])

    model = onnx.load(split / "model.onnx", load_external_data=False)
    assert external_locations(model) == ["model.onnx.data"]
    assert external_locations(onnx.load(whole / "model.onnx")) == []
    assert (split / "model.onnx.data").stat().st_mode == (split / "model.onnx").stat().st_mode
    assert [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim] == [0, 32]
    before = fingerprint(split)
    assert before != fingerprint(whole)
    with open(split / "model.onnx.data", "r+b") as weights:
        weights.write(b"\1")
    assert fingerprint(split) != before


def test_only_the_files_that_hold_the_tower_are_needed(tmp_path):
    """Of a large checkpoint the tower is in one or two."""
    weight_map = {"visual.blocks.0.attn.qkv.weight": "a.safetensors", "visual.merger.ln_q.weight": "b.safetensors",
                  "model.layers.0.mlp.up_proj.weight": "c.safetensors", "lm_head.weight": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (tmp_path / "b.safetensors").touch()
    names = families.family_of("qwen2_5_vl").weights
    with pytest.raises(ExportError, match="a.safetensors is missing"):
        checkpoint_files.safetensors_files(tmp_path, names)
    (tmp_path / "a.safetensors").touch()
    files = checkpoint_files.safetensors_files(tmp_path, names)
    assert [file.name for file in files] == ["a.safetensors", "b.safetensors"]


def test_rows_of_a_type_that_cannot_be_cached_are_a_mistake_too(tmp_path):
    """Of the model, said in one line."""
    linear_graph(tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    onnx.save_model(model, tmp_path / "model.onnx")
    model_directory.write_json(tmp_path / "preprocessor_config.json", {"image_processor_type": "CLIPImageProcessor"})
    for output, why in (("rows", "rows are double"), ("columns", "no output columns")):
        model_directory.write_json(tmp_path / "vitrove.json", families.vitrove_json(
            families.CLIP, {}, name="c", revision="", dtype="float32", output=output))
        with pytest.raises(ExportError, match=why):
            fingerprint(tmp_path)


def test_mistakes_are_one_line_and_exit_code_1(tmp_path, capsys):
    assert cli.main([str(tmp_path / "nothing"), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"vitrove-export: error: {tmp_path / 'nothing'} is no directory\n"
    with pytest.raises(SystemExit) as wrong:
        cli.main([str(tmp_path)])
    assert wrong.value.code == 2


def test_a_full_disk_is_one_line_too(tmp_path, capsys, monkeypatch):
    def export(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(sys.modules, "vitrove_export.export", SimpleNamespace(Settings=SimpleNamespace, export=export))
    assert cli.main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "vitrove-export: error: [Errno 28] No space left on device\n"


def test_help_and_the_pure_parts_do_not_need_pytorch():
    code = ("import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
            "import vitrove_export.fingerprint, vitrove_export.grid_inputs\n"
            "from vitrove_export.cli import main\nmain(['--help'])")
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, capture_output=True, text=True, check=True)
    assert "MODEL_DIR" in done.stdout and "qwen2_5_vl" in done.stdout
