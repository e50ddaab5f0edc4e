//! Short runs of every simulation, and scripts of faults written by hand.

mod chaos;
mod executed_vectors;
mod fates;
mod faults;
mod parity;
