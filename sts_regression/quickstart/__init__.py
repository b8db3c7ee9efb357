"""Small ready-made data set of graded English sentence pairs, the program that writes it, and the bundled recipes."""

from pathlib import Path

BUNDLED_FOLDER = Path(__file__).parent
