"""Proof that the guard's compiled bytes keep its promises, for every input and whatever the exchange does."""
