"""Finding and loading encoders and checkpoints, and encoding texts with them.

`loading` finds and builds models; `remote_code` builds encoders with code of their own. `sentence_transformers_files`
reads and writes the files of that library, and `foreign_modules` refuses files that would run other code.
`weight_limits` refuses configurations that are larger than their weights. `tokenization` makes batches, `encoding`
encodes texts and scores pairs, and `onnx_graphs` writes and runs ONNX graphs. `embedding_store` keeps the embeddings
of a frozen encoder, `score_maps` maps the scores of each training set, and `fingerprint` tells models apart. Imports
only `data` and the folders below it.
"""
