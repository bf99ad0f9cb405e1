"""Turns a Hugging Face model directory into a Vitrove model directory (docs/export.md).

families, grid_inputs, model_directory and fingerprint need numpy and onnx alone; PyTorch and
transformers are imported only where a tower is built (towers, packed_towers, weights, export).
"""
