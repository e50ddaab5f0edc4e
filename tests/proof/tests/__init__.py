"""Tests of the prover: what it must refuse, and what it must find."""
