"""The contenders of `speed.py` by task; `contenders.py` runs one of them."""
