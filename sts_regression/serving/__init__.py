"""Scores in use: of files in parts (`prediction`), on Ray, as ONNX (`export`), on a web page (`demo`).

Imports `training` and what lies below it.
"""
