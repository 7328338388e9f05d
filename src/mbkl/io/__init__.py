"""Model files, and exports to ONNX and C."""

from mbkl.io.c_header import export_c
from mbkl.io.container import ModelFileError
from mbkl.io.model_file import load, load_extra, save
from mbkl.io.onnx_export import export_onnx, onnx_inputs, register_onnx_converter, to_onnx

__all__ = [
    "ModelFileError",
    "export_c",
    "export_onnx",
    "load",
    "load_extra",
    "onnx_inputs",
    "register_onnx_converter",
    "save",
    "to_onnx",
]
