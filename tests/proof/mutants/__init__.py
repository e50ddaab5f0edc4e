"""Mutants: the compiled guard with one instruction changed, to see whether trials and the proof notice."""
