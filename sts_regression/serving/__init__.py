"""Scoring in production: large files, Ray, ONNX, and a web page.

`prediction` scores files of pairs larger than memory, which `pair_file` reads. `ray_scoring` scores on Ray, and
`export` writes ONNX graphs. `demo` serves the web page, with `demo_page`, `demo_scoring` and `demo_gate`. Imports
`training` and the folders below it.
"""
