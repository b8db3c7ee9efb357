"""Small ready-made data set of graded English sentence pairs, and the program that writes it."""
