//! Scopes: what an API key may do.

use std::fmt;

/// Something that an API key may do. The routes that need no key are everybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Read webhooks, their messages and deliveries, and what is used of the quotas.
    WebhooksRead,
    /// Make, change and delete webhooks, and have messages of them sent.
    WebhooksWrite,
    /// List, make and revoke the API keys of the whole installation. A key has it by name alone: one that may do everything with
    /// its own webhooks is a tenant's, and must not reach those of others.
    KeysWrite,
}

impl Scope {
    /// Every one, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::WebhooksRead, Self::WebhooksWrite, Self::KeysWrite];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebhooksRead => "webhooks:read",
            Self::WebhooksWrite => "webhooks:write",
            Self::KeysWrite => "keys:write",
        }
    }

    /// The scope of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The scopes of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Option<Vec<Scope>>);

impl Scopes {
    /// All that are about a key's own webhooks, those included that are added to [`Scope`] one day.
    pub const ALL: Self = Self(None);

    /// These alone.
    #[must_use]
    pub fn only(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut scopes: Vec<_> = scopes.into_iter().collect();
        scopes.sort_unstable();
        scopes.dedup();
        Self(Some(scopes))
    }

    /// Whether `scope` is one of them.
    #[must_use]
    pub fn contain(&self, scope: Scope) -> bool {
        match &self.0 {
            None => scope != Scope::KeysWrite,
            Some(some) => some.contains(&scope),
        }
    }

    /// Those named one by one; `None` where a key has all of [`Self::ALL`].
    #[must_use]
    pub fn named(&self) -> Option<&[Scope]> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_all_scopes_or_those_that_are_named() {
        for scope in Scope::ALL {
            let named = scope == Scope::KeysWrite;
            assert_eq!(Scopes::ALL.contain(scope), !named, "{scope}");
            assert!(Scopes::only([scope]).contain(scope), "{scope}");
        }
        let read = Scopes::only([Scope::WebhooksRead, Scope::WebhooksRead]);
        assert_eq!(read.named(), Some(&[Scope::WebhooksRead][..]));
        assert!(read.contain(Scope::WebhooksRead) && !read.contain(Scope::WebhooksWrite));
        assert!(!Scopes::only([]).contain(Scope::WebhooksRead));
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.name()), Some(scope));
        }
        assert_eq!(Scope::from_name("swap"), None);
    }
}
