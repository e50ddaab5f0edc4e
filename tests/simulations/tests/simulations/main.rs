//! Short runs of every simulation, and scripts of faults written by hand.

mod chaos;
mod fates;
mod faults;
mod parity;
mod provider;
