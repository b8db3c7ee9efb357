"""Finding and loading encoders and checkpoints, and encoding texts with them.

`loading` finds and builds a model, `remote_code` one whose encoder has code of its own, `sentence_transformers_files`
reads and writes the files of that library, `foreign_modules` refuses those that would run other code, and
`weight_limits` a configuration that asks for more than there are weights of. `tokenization` makes batches, `encoding`
encodes texts and scores pairs, `embedding_store` keeps the embeddings of a frozen encoder, `fingerprint` tells models
apart. Imports nothing of the package but `data` and what lies below it.
"""
