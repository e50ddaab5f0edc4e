//! Output of the demo: one line per step, with the time since the start.

use std::time::Instant;

/// Width of a step's name; the figures of all steps start in one column.
const NAME_WIDTH: usize = 16;

/// Prints steps as they are done.
pub struct Transcript {
    begun: Instant,
}

impl Transcript {
    /// Starts the clock.
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
        }
    }

    /// A step that is done and checked.
    pub fn step(&mut self, name: &str, figures: &str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("{seconds:6.2} s  {name:<NAME_WIDTH$}  {figures}");
    }

    /// A line that belongs to the step before.
    pub fn detail(&mut self, text: &str) {
        println!("{:10}{:NAME_WIDTH$}  {text}", "", "");
    }

    /// The last line.
    pub fn end(&self) {
        println!("demo passed in {:.1} s", self.begun.elapsed().as_secs_f64());
    }
}
