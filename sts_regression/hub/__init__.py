"""The card of a model, what of a run may be public, and publishing it.

Imports `training` and what lies below it.
"""
