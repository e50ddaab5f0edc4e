//! Edits the filters of a webhook: adds and removes addresses.

use super::{quotas::check_addresses, retried::retried, store::Store, webhook_row};
use crate::{
    Access, FilterEdit, FilterEdited, FilterLimits, Filters, StoreError, WebhookId,
    backend::Durability, model::edit_addresses,
};

impl Store {
    /// Adds addresses to and removes addresses from a webhook's filters; `None` when there is no such webhook. An
    /// edit that changes nothing writes nothing, so repeating one is harmless. With `expected`, only a
    /// webhook of that version is edited.
    ///
    /// # Errors
    /// [`StoreError::TooManyAddresses`], [`StoreError::MatchesNothing`], [`StoreError::VersionConflict`], or a
    /// failure of the database; nothing is changed then.
    pub async fn edit_filters(
        &self,
        access: &Access,
        id: &WebhookId,
        edit: &FilterEdit,
        limits: FilterLimits,
        expected: Option<u64>,
    ) -> Result<Option<FilterEdited>, StoreError> {
        retried!(self.try_edit_filters(access, id, edit, limits, expected))
    }

    async fn try_edit_filters(
        &self,
        access: &Access,
        id: &WebhookId,
        edit: &FilterEdit,
        limits: FilterLimits,
        expected: Option<u64>,
    ) -> Result<Option<FilterEdited>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((ordinal, before)) =
            webhook_row::lock(&mut write, access, id, expected, &self.keys).await?
        else {
            return Ok(None);
        };
        let mut definition = before.definition.clone();
        let filters = &mut definition.filters;
        let (add, remove) = (&edit.add, &edit.remove);
        let accounts = edit_addresses(&mut filters.accounts, &add.accounts, &remove.accounts);
        let programs = edit_addresses(&mut filters.programs, &add.programs, &remove.programs);
        let (owners, gone) = (&add.token_owners, &remove.token_owners);
        let token_owners = edit_addresses(&mut filters.token_owners, owners, gone);
        let (added, removed) = (
            Filters {
                accounts: accounts.0,
                programs: programs.0,
                token_owners: token_owners.0,
            },
            Filters {
                accounts: accounts.1,
                programs: programs.1,
                token_owners: token_owners.1,
            },
        );
        if before.definition.filters == definition.filters {
            return Ok(Some(FilterEdited {
                webhook: before,
                added,
                removed,
            }));
        }
        let (filters, conditions) = (&definition.filters, &definition.conditions);
        check("accounts", filters.accounts.len(), limits.accounts)?;
        check("programs", filters.programs.len(), limits.programs)?;
        check(
            "tokenOwners",
            filters.token_owners.len(),
            limits.token_owners,
        )?;
        webhook_row::check_asks_for_something(&definition)?;
        webhook_row::replace_filters(&mut write, ordinal, filters, conditions).await?;
        webhook_row::update(&mut write, ordinal, &before, &definition, &self.keys).await?;
        if before.definition.filters.count() < definition.filters.count() {
            check_addresses(&mut write, ordinal).await?;
        }
        let webhook = webhook_row::select(&mut write, &Access::All, id, &self.keys).await?;
        write.commit().await?;
        Ok(webhook.map(|webhook| FilterEdited {
            webhook,
            added,
            removed,
        }))
    }
}

fn check(what: &'static str, count: usize, limit: usize) -> Result<(), StoreError> {
    if count > limit {
        return Err(StoreError::TooManyAddresses { what, count, limit });
    }
    Ok(())
}
