//! Calibration of compute units: what the exchange's swaps on the chain used, over what the profile says (pure).
//!
//! A limit is the profile's figure times a learned ratio. The ratio rises at once when a second pool shows a higher one,
//! so that no pool raises the others alone; it falls slowly, with the half windows. A pool's own maximum counts for that
//! pool at once. A new build of the exchange, announced by its deployment slot or shown by several pools at a time, voids
//! all that was learned.

use std::{collections::BTreeMap, time::Duration};

use cpmm::FixedAmount;
use solana_pubkey::Pubkey;

use super::{
    half_window::{FEW_SAMPLES, HalfWindow, Ratio, second_highest},
    own_maximum::OwnMaxima,
    profile::SwapShape,
};
use crate::compute_table::TokenKind;

/// Thousandths on top of what is learned: the next swap may be a little dearer than any before.
const MARGIN: u32 = 10;

/// The most by which a half window lowers a ratio that swaps have shown, thousandths.
const MOST_FALL: u32 = 50;

/// Thousandths on top of the old ratio after a new build, until it has shown what it uses.
const AFTER_UPGRADE: u32 = 200;

/// A ratio this much above that of its shape is one that a new build explains, thousandths.
const OUTLIER: u32 = 50;

/// Pools that show an outlier within [`OUTLIERS_WITHIN`], of a build that was not announced. Two raise the ratio of
/// their shape already.
const OUTLIERS: usize = 3;

/// See [`OUTLIERS`].
const OUTLIERS_WITHIN: Duration = Duration::from_secs(60);

/// What a transaction that ran out of units is taken to have needed, percent of its limit.
const SHORT_OF: u32 = 110;

/// One swap of the confirmed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The pool.
    pub pool: Pubkey,
    /// Its tokens.
    pub shape: SwapShape,
    /// What the profile says of it, compute units.
    pub modelled: u32,
    /// What it used, compute units.
    pub used: u32,
}

/// Why all that was learned was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The exchange was deployed anew.
    Deployed,
    /// Several pools at a time used more than their shapes explain.
    Outliers,
}

/// The limit of a swap, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Compute units.
    pub units: u32,
    /// What the chain uses over the profile, without the margin.
    pub ratio: Ratio,
    /// Samples of the swap's shape since the last upgrade.
    pub samples: u32,
}

/// What outlives a process. Half windows do not: they are short, and the ratio falls no faster for their loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// In which slot the build was deployed that this is about, if that was known.
    pub deployment_slot: Option<u64>,
    /// Where a shape begins of which nothing is known.
    pub start: Ratio,
    /// Of all shapes together: ratio, samples.
    pub overall: (Ratio, u32),
    /// Of each shape.
    pub shapes: Vec<LearnedShape>,
}

/// What was learned of the swaps of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedShape {
    /// Which of the exchange's instructions.
    pub fixed: FixedAmount,
    /// Kind of the token that goes in.
    pub input: TokenKind,
    /// Kind of the token that comes out.
    pub output: TokenKind,
    /// Neutral extensions of both mints.
    pub extensions: u16,
    /// What the chain uses over the profile.
    pub ratio: Ratio,
    /// Swaps that showed it.
    pub samples: u32,
}

type ShapeKey = (FixedAmount, TokenKind, TokenKind, u16);

fn key(shape: SwapShape) -> ShapeKey {
    let extensions = u16::from(shape.input.neutral_extensions)
        .saturating_add(u16::from(shape.output.neutral_extensions));
    (shape.fixed, shape.input.kind, shape.output.kind, extensions)
}

/// See the module. Time is that of the samples' blocks, since 1970.
#[derive(Clone, Debug)]
pub struct Calibration {
    deployment_slot: Option<u64>,
    start: Ratio,
    overall: Window,
    shapes: BTreeMap<ShapeKey, Window>,
    own: OwnMaxima,
    outliers: Vec<(Duration, Pubkey, Ratio)>,
}

impl Calibration {
    /// Nothing learned yet of a build that was deployed in a slot not known yet.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Self::begin(None, Ratio::COLD_START, now)
    }

    fn begin(deployment_slot: Option<u64>, start: Ratio, now: Duration) -> Self {
        Self {
            deployment_slot,
            start,
            overall: Window::new(start, now),
            shapes: BTreeMap::new(),
            own: OwnMaxima::default(),
            outliers: Vec::new(),
        }
    }

    /// Goes on from what an earlier process learned, until [`Calibration::deployed`] says that it was of another build.
    #[must_use]
    pub fn restore(learned: &Learned, now: Duration) -> Self {
        let mut restored = Self::begin(learned.deployment_slot, learned.start, now);
        restored.overall = Window::restored(learned.overall.0, learned.overall.1, now);
        let shapes = learned.shapes.iter().map(|shape| {
            let key = (shape.fixed, shape.input, shape.output, shape.extensions);
            (key, Window::restored(shape.ratio, shape.samples, now))
        });
        restored.shapes = shapes.collect();
        restored
    }

    /// What is worth keeping.
    #[must_use]
    pub fn learned(&self) -> Learned {
        let shapes = self.shapes.iter();
        Learned {
            deployment_slot: self.deployment_slot,
            start: self.start,
            overall: (self.overall.ratio, self.overall.samples),
            shapes: shapes
                .map(
                    |((fixed, input, output, extensions), window)| LearnedShape {
                        fixed: *fixed,
                        input: *input,
                        output: *output,
                        extensions: *extensions,
                        ratio: window.ratio,
                        samples: window.samples,
                    },
                )
                .collect(),
        }
    }

    /// Takes in a swap of the confirmed chain.
    pub fn observe(&mut self, sample: &Sample, now: Duration) -> Option<Trigger> {
        let ratio = Ratio::of(sample.used, sample.modelled);
        let shape = key(sample.shape);
        if ratio > self.ratio_before(shape, now).plus(OUTLIER)
            && let Some(shown) = self.outlier(sample.pool, ratio, now)
        {
            self.forget(self.deployment_slot, shown, now);
            return Some(Trigger::Outliers);
        }
        self.own.add(sample.pool, ratio, now);
        self.overall.add(sample.pool, ratio, now);
        let start = self.start;
        self.shapes
            .entry(shape)
            .or_insert_with(|| Window::new(start, now))
            .add(sample.pool, ratio, now);
        None
    }

    /// Takes in that a swap within `limit` units ran out of them.
    pub fn ran_short(&mut self, sample: &Sample, limit: u32, now: Duration) -> Option<Trigger> {
        let used = limit.saturating_mul(SHORT_OF).div_ceil(100);
        self.observe(&Sample { used, ..*sample }, now)
    }

    /// Takes in the slot in which the exchange was deployed last; its new code runs from the next slot on.
    pub fn deployed(&mut self, deployment_slot: u64, now: Duration) -> Option<Trigger> {
        let before = self.deployment_slot.replace(deployment_slot);
        if before.is_none_or(|before| before == deployment_slot) {
            return None;
        }
        let windows = self.shapes.values().chain([&self.overall]);
        let highest = windows.map(|window| window.ratio).max();
        self.forget(Some(deployment_slot), highest.unwrap_or(self.start), now);
        Some(Trigger::Deployed)
    }

    fn forget(&mut self, deployment_slot: Option<u64>, ratio: Ratio, now: Duration) {
        *self = Self::begin(deployment_slot, ratio.plus(AFTER_UPGRADE), now);
    }

    /// The limit of a swap for which the profile says `modelled`.
    #[must_use]
    pub fn limit(&self, pool: &Pubkey, shape: SwapShape, modelled: u32, now: Duration) -> Limit {
        let shape = key(shape);
        let ratio = self.ratio(shape).max(self.own.of(pool, now));
        let units = u64::from(modelled)
            .saturating_mul(u64::from(ratio.plus(MARGIN).0))
            .div_ceil(1_000);
        Limit {
            units: u32::try_from(units).unwrap_or(u32::MAX),
            ratio,
            samples: self.shapes.get(&shape).map_or(0, |window| window.samples),
        }
    }

    fn ratio(&self, shape: ShapeKey) -> Ratio {
        self.judge(shape, |window| window.ratio)
    }

    /// As the ratio was before the samples of the last minute raised it.
    fn ratio_before(&self, shape: ShapeKey, now: Duration) -> Ratio {
        self.judge(shape, |window| window.ratio_before(now))
    }

    /// A shape that was seldom seen is as dear as the dearer of what it showed and of what all showed.
    fn judge(&self, shape: ShapeKey, ratio: impl Fn(&Window) -> Ratio) -> Ratio {
        match self.shapes.get(&shape) {
            Some(window) if window.samples >= FEW_SAMPLES => ratio(window),
            Some(window) => ratio(window).max(ratio(&self.overall)),
            None => self.start.max(ratio(&self.overall)),
        }
    }

    /// Notes an outlier; when enough pools have shown one lately, what they showed at least.
    fn outlier(&mut self, pool: Pubkey, ratio: Ratio, now: Duration) -> Option<Ratio> {
        self.outliers
            .retain(|(at, known, _)| now.saturating_sub(*at) <= OUTLIERS_WITHIN && *known != pool);
        self.outliers.push((now, pool, ratio));
        let shown = self.outliers.iter().map(|(_, _, ratio)| *ratio).max();
        shown.filter(|_| self.outliers.len() >= OUTLIERS)
    }
}

/// What the samples of one shape, or all, have shown.
#[derive(Clone, Debug)]
struct Window {
    ratio: Ratio,
    /// Whether no sample has shown it: then the first half window that is full takes its place, however far below it.
    is_assumed: bool,
    samples: u32,
    before: HalfWindow,
    current: HalfWindow,
    /// When the ratio rose, of the last [`OUTLIERS_WITHIN`], and from what.
    risen: Option<(Duration, Ratio)>,
}

impl Window {
    /// Nothing seen: the ratio is one to begin with.
    fn new(ratio: Ratio, now: Duration) -> Self {
        Self {
            is_assumed: true,
            ..Self::restored(ratio, 0, now)
        }
    }

    /// As an earlier process has learned it.
    const fn restored(ratio: Ratio, samples: u32, now: Duration) -> Self {
        Self {
            ratio,
            is_assumed: false,
            samples,
            before: HalfWindow::new(now),
            current: HalfWindow::new(now),
            risen: None,
        }
    }

    fn add(&mut self, pool: Pubkey, ratio: Ratio, now: Duration) {
        self.samples = self.samples.saturating_add(1);
        self.current.add(pool, ratio);
        let shown = second_highest([&self.before, &self.current]);
        if let Some(shown) = shown.filter(|shown| *shown > self.ratio) {
            let before = self.ratio_before(now);
            self.risen = Some((now, before));
            self.ratio = shown;
            self.is_assumed = false;
        }
        if self.current.is_full(now) {
            self.before = std::mem::replace(&mut self.current, HalfWindow::new(now));
            self.fall();
        }
    }

    /// Comes down to what the half window has shown that has just become full.
    fn fall(&mut self) {
        let Some(shown) = second_highest([&self.before, &self.current]) else {
            return;
        };
        let least = if self.is_assumed {
            shown
        } else {
            self.ratio.minus(MOST_FALL)
        };
        self.ratio = shown.max(least);
        self.is_assumed = false;
    }

    fn ratio_before(&self, now: Duration) -> Ratio {
        match self.risen {
            Some((at, before)) if now.saturating_sub(at) <= OUTLIERS_WITHIN => before,
            _ => self.ratio,
        }
    }
}

#[cfg(test)]
mod tests;
