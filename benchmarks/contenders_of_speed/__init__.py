"""The contenders of `speed.py` by what they do; `contenders.py` runs one of them."""
