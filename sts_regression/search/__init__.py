"""The most similar texts of a corpus, exactly, by the cosine or the trained head.

`exact` finds them, `score_matrix` computes blocks of scores, `l1_kernels` the head's |u - v| for a CPU. Imports
`models`, `data` and what lies below them.
"""
