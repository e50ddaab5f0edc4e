"""Trials: concrete inputs of the guard, each executed by the prover's machine and on a chain in memory."""
