//! .

pub mod svm;
