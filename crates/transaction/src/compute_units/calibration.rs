//! Calibration of compute units: what the exchange's swaps on the chain used, over what the profile says (pure).
//!
//! A limit is the profile's figure times a learned ratio. The ratio rises at once when a second pool shows a higher one,
//! so that no pool raises the others alone; it falls slowly, with the half windows. A pool's own maximum counts for that
//! pool at once. A new build of the exchange, announced by its deployment slot or shown by several pools at a time, voids
//! all that was learned.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use solana_pubkey::Pubkey;

use super::{
    half_window::{FEW_SAMPLES, HalfWindow, Ratio, second_highest},
    profile::SwapShape,
};
use crate::compute_table::TokenKind;

/// Thousandths on top of what is learned: the next swap may be a little dearer than any before.
const MARGIN: u32 = 10;

/// The most by which a half window lowers a ratio, thousandths.
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

/// How long at least a pool's own maximum counts for itself.
const OWN_MAXIMUM: Duration = Duration::from_secs(20 * 60);

/// Pools whose own maximum is kept; more are not traded in twice [`OWN_MAXIMUM`] on mainnet.
const MOST_POOLS: usize = 100_000;

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
    /// In which slot the build was deployed that this is about.
    pub deployment_slot: u64,
    /// Where a shape begins of which nothing is known.
    pub start: Ratio,
    /// Of all shapes together: ratio, samples.
    pub overall: (Ratio, u32),
    /// Of each shape: kinds of input and output, neutral extensions of both, ratio, samples.
    pub shapes: Vec<(TokenKind, TokenKind, u16, Ratio, u32)>,
}

type ShapeKey = (TokenKind, TokenKind, u16);

fn key(shape: SwapShape) -> ShapeKey {
    let extensions = u16::from(shape.input.neutral_extensions)
        .saturating_add(u16::from(shape.output.neutral_extensions));
    (shape.input.kind, shape.output.kind, extensions)
}

/// See the module. Time is that of the samples' blocks, since 1970.
#[derive(Clone, Debug)]
pub struct Calibration {
    deployment_slot: u64,
    start: Ratio,
    overall: Window,
    shapes: BTreeMap<ShapeKey, Window>,
    own: HashMap<Pubkey, OwnMaximum>,
    outliers: Vec<(Duration, Pubkey, Ratio)>,
}

impl Calibration {
    /// Nothing learned yet of the build that was deployed in `deployment_slot`.
    #[must_use]
    pub fn new(deployment_slot: u64, now: Duration) -> Self {
        Self::begin(deployment_slot, Ratio::COLD_START, now)
    }

    fn begin(deployment_slot: u64, start: Ratio, now: Duration) -> Self {
        Self {
            deployment_slot,
            start,
            overall: Window::new(start, 0, now),
            shapes: BTreeMap::new(),
            own: HashMap::new(),
            outliers: Vec::new(),
        }
    }

    /// Goes on from what an earlier process learned. Another deployment slot than it knew is an upgrade.
    #[must_use]
    pub fn restore(learned: &Learned, deployment_slot: u64, now: Duration) -> Self {
        let mut restored = Self::begin(learned.deployment_slot, learned.start, now);
        restored.overall = Window::new(learned.overall.0, learned.overall.1, now);
        let shapes = learned
            .shapes
            .iter()
            .map(|(input, output, extensions, ratio, samples)| {
                let window = Window::new(*ratio, *samples, now);
                ((*input, *output, *extensions), window)
            });
        restored.shapes = shapes.collect();
        restored.deployed(deployment_slot, now);
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
                .map(|((input, output, extensions), window)| {
                    (*input, *output, *extensions, window.ratio, window.samples)
                })
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
        self.own
            .entry(sample.pool)
            .or_insert_with(|| OwnMaximum::new(now))
            .add(ratio, now);
        if self.own.len() > MOST_POOLS {
            self.own.retain(|_, own| own.at(now) > Ratio::default());
        }
        self.overall.add(sample.pool, ratio, now);
        let start = self.start;
        self.shapes
            .entry(shape)
            .or_insert_with(|| Window::new(start, 0, now))
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
        if deployment_slot == self.deployment_slot {
            return None;
        }
        let windows = self.shapes.values().chain([&self.overall]);
        let highest = windows.map(|window| window.ratio).max();
        self.forget(deployment_slot, highest.unwrap_or(self.start), now);
        Some(Trigger::Deployed)
    }

    fn forget(&mut self, deployment_slot: u64, ratio: Ratio, now: Duration) {
        *self = Self::begin(deployment_slot, ratio.plus(AFTER_UPGRADE), now);
    }

    /// The limit of a swap for which the profile says `modelled`.
    #[must_use]
    pub fn limit(&self, pool: &Pubkey, shape: SwapShape, modelled: u32, now: Duration) -> Limit {
        let shape = key(shape);
        let own = self.own.get(pool).map(|own| own.at(now));
        let ratio = self.ratio(shape).max(own.unwrap_or_default());
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
    samples: u32,
    before: HalfWindow,
    current: HalfWindow,
    /// When the ratio rose, of the last [`OUTLIERS_WITHIN`], and from what.
    risen: Option<(Duration, Ratio)>,
}

impl Window {
    const fn new(ratio: Ratio, samples: u32, now: Duration) -> Self {
        Self {
            ratio,
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
        }
        if self.current.is_full(now) {
            if let Some(shown) = shown {
                self.ratio = shown.max(self.ratio.minus(MOST_FALL));
            }
            self.before = std::mem::replace(&mut self.current, HalfWindow::new(now));
        }
    }

    fn ratio_before(&self, now: Duration) -> Ratio {
        match self.risen {
            Some((at, before)) if now.saturating_sub(at) <= OUTLIERS_WITHIN => before,
            _ => self.ratio,
        }
    }
}

/// The highest ratio of one pool in this span of [`OWN_MAXIMUM`] and in the one before.
#[derive(Clone, Copy, Debug)]
struct OwnMaximum {
    span: u64,
    current: Ratio,
    before: Ratio,
}

impl OwnMaximum {
    fn new(now: Duration) -> Self {
        Self {
            span: span(now),
            current: Ratio::default(),
            before: Ratio::default(),
        }
    }

    fn add(&mut self, ratio: Ratio, now: Duration) {
        let this = span(now);
        if this != self.span {
            self.before = match this.checked_sub(self.span) {
                Some(1) => self.current,
                _ => Ratio::default(),
            };
            (self.span, self.current) = (this, Ratio::default());
        }
        self.current = self.current.max(ratio);
    }

    fn at(&self, now: Duration) -> Ratio {
        match span(now).saturating_sub(self.span) {
            0 => self.current.max(self.before),
            1 => self.current,
            _ => Ratio::default(),
        }
    }
}

fn span(now: Duration) -> u64 {
    now.as_secs()
        .checked_div(OWN_MAXIMUM.as_secs())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
