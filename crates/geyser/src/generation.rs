//! Generation: number of a request, in its filter names, so that updates show which request is in force.
//!
//! Servers acknowledge no request. But every update names the filters it matched, and so a filter whose name is
//! new proves that the request which brought it is in force.

use std::fmt;

use crate::update::Update;

/// Stands between the name of a filter and the generation.
const SEPARATOR: char = '#';

/// The number of a request. Later requests have higher numbers, whatever the connection or the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation of the next request.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The name of a filter in a request of this generation.
    #[must_use]
    pub fn name(self, filter: &str) -> String {
        format!("{filter}{SEPARATOR}{}", self.0)
    }

    /// The generation that the name of a filter carries.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, number) = name.rsplit_once(SEPARATOR)?;
        number.parse().ok().map(Self)
    }

    /// The name of a filter without the generation that it carries.
    #[must_use]
    pub(crate) fn filter_of(name: &str) -> &str {
        name.rsplit_once(SEPARATOR)
            .map_or(name, |(filter, _)| filter)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Update {
    /// The generation of the request under which the server sent this; `None` when no filter that matched
    /// carries one.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.filters
            .iter()
            .find_map(|name| Generation::of_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_generation() {
        let name = Generation(41).name("pools");
        assert_eq!(Generation::of_name(&name), Some(Generation(41)));
        assert_eq!(Generation::of_name("pools"), None);
        assert_eq!(Generation::of_name("pools#x"), None);
        let again = Generation(42).name(&name);
        assert_eq!(Generation::of_name(&again), Some(Generation(42)));
    }
}
