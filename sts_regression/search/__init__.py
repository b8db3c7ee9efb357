"""Exact search for the most similar texts of a corpus, by the cosine or the trained head.

`exact` searches, `score_matrix` computes blocks of scores, and `l1_kernels` computes the head's |u - v| on a CPU.
Imports `models`, `data` and the folders below them.
"""
