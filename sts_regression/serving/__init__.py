"""Scores in use: of files in parts, on Ray, as ONNX, on a web page.

`prediction` scores files of pairs larger than memory, which `pair_file` reads. `ray_scoring` does it on Ray, `export`
writes `onnx_graphs`, `demo` is the page. Imports `training` and what lies below it.
"""
