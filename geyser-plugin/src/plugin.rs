//! Geyser callbacks, which the validator calls on its own threads: convert, queue, never wait.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use agave_geyser_plugin_interface::geyser_plugin_interface::{
    GeyserPlugin, GeyserPluginError, ReplicaAccountInfoVersions, ReplicaBlockInfoVersions,
    ReplicaEntryInfoVersions, ReplicaTransactionInfoVersions, Result, SlotStatus,
};

use crate::{
    config::Config,
    convert::{self, ConvertError},
    message::{Event, Slot, Update},
    server::Server,
};

/// The plugin as the validator sees it.
#[derive(Debug, Default)]
pub struct SluicePlugin {
    server: Option<Server>,
}

impl SluicePlugin {
    /// Converts a notification and queues it. What cannot be converted counts as lost, so that no
    /// subscriber takes the slot for whole.
    #[expect(
        clippy::disallowed_methods,
        reason = "an update says when it was made; a clock of the services is out of reach here"
    )]
    fn take(
        &self,
        slot: Slot,
        convert: impl FnOnce() -> std::result::Result<Update, ConvertError>,
    ) -> std::result::Result<(), String> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        let taken = no_unwind(|| {
            let update = convert().map_err(|error| error.to_string())?;
            server.intake().push(Event {
                update,
                created_at: SystemTime::now().into(),
            });
            Ok(())
        });
        if taken.is_err() {
            server.intake().lose(slot);
        }
        taken
    }
}

/// Runs what must not unwind into the validator, whose copy of the standard library is another one.
fn no_unwind<T>(
    run: impl FnOnce() -> std::result::Result<T, String>,
) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panic_text(&*panic)))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

fn custom(msg: String) -> GeyserPluginError {
    GeyserPluginError::Custom(msg.into())
}

impl GeyserPlugin for SluicePlugin {
    fn setup_logger(&self, logger: &'static dyn log::Log, level: log::LevelFilter) -> Result<()> {
        log::set_max_level(level);
        // Fails when the library was loaded before in this process; that logger is still good.
        let _ = log::set_logger(logger);
        Ok(())
    }

    fn name(&self) -> &'static str {
        env!("CARGO_PKG_NAME")
    }

    fn on_load(&mut self, config_file: &str, _is_reload: bool) -> Result<()> {
        let started = no_unwind(|| {
            let config = Config::load(Path::new(config_file)).map_err(|error| error.to_string())?;
            Server::start(&config).map_err(|error| error.to_string())
        });
        let server = started.map_err(|msg| GeyserPluginError::ConfigFileReadError { msg })?;
        log::info!(
            "{} {} ({}) serves geyser.Geyser on {}",
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            env!("PLUGIN_RUSTC_VERSION"),
            server.address()
        );
        self.server = Some(server);
        Ok(())
    }

    fn on_unload(&mut self) {
        let server = self.server.take();
        if let Err(error) = no_unwind(move || {
            drop(server);
            Ok(())
        }) {
            log::error!("stopping the gRPC server {error}");
        }
    }

    fn update_account(
        &self,
        account: ReplicaAccountInfoVersions,
        slot: Slot,
        is_startup: bool,
    ) -> Result<()> {
        self.take(slot, || {
            let account = convert::account(&account, slot, is_startup)?;
            Ok(Update::Account(Arc::new(account)))
        })
        .map_err(|msg| GeyserPluginError::AccountsUpdateError { msg })
    }

    fn update_slot_status(
        &self,
        slot: Slot,
        parent: Option<u64>,
        status: &SlotStatus,
    ) -> Result<()> {
        self.take(slot, || {
            Ok(Update::Slot(convert::slot_status(slot, parent, status)))
        })
        .map_err(|msg| GeyserPluginError::SlotStatusUpdateError { msg })
    }

    fn notify_transaction(
        &self,
        transaction: ReplicaTransactionInfoVersions,
        slot: Slot,
    ) -> Result<()> {
        self.take(slot, || {
            let transaction = convert::transaction(&transaction, slot)?;
            Ok(Update::Transaction(Arc::new(transaction)))
        })
        .map_err(|msg| GeyserPluginError::TransactionUpdateError { msg })
    }

    fn notify_entry(&self, entry: ReplicaEntryInfoVersions) -> Result<()> {
        let slot = match &entry {
            ReplicaEntryInfoVersions::V0_0_1(entry) => entry.slot,
            ReplicaEntryInfoVersions::V0_0_2(entry) => entry.slot,
        };
        self.take(slot, || {
            Ok(Update::Entry(Arc::new(convert::entry(&entry)?)))
        })
        .map_err(custom)
    }

    fn notify_block_metadata(&self, block: ReplicaBlockInfoVersions) -> Result<()> {
        let slot = match &block {
            ReplicaBlockInfoVersions::V0_0_1(block) => block.slot,
            ReplicaBlockInfoVersions::V0_0_2(block) => block.slot,
            ReplicaBlockInfoVersions::V0_0_3(block) => block.slot,
            ReplicaBlockInfoVersions::V0_0_4(block) => block.slot,
        };
        self.take(slot, || {
            Ok(Update::BlockMeta(Arc::new(convert::block_meta(&block)?)))
        })
        .map_err(custom)
    }

    /// Yellowstone servers give no initial state on the stream, and start-up is faster without it.
    fn account_data_snapshot_notifications_enabled(&self) -> bool {
        false
    }

    fn transaction_notifications_enabled(&self) -> bool {
        true
    }

    fn entry_notifications_enabled(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(plugin: &mut SluicePlugin, name: &str, config: &str) -> Result<()> {
        let path = std::env::temp_dir().join(format!("{name}-{}.json", std::process::id()));
        fs::write(&path, config).unwrap();
        let loaded = plugin.on_load(path.to_str().unwrap(), false);
        fs::remove_file(&path).unwrap();
        loaded
    }

    #[test]
    fn a_panic_becomes_an_error_and_its_slot_counts_as_lost() {
        let mut plugin = SluicePlugin::default();
        let config = r#"{libpath: "none", grpc: {address: "127.0.0.1:0"}}"#;
        load(&mut plugin, "panic", config).unwrap();
        let taken = plugin.take(7, || panic!("no such {}", "luck"));
        assert_eq!(taken, Err("panicked: no such luck".to_owned()));
        assert_eq!(plugin.server.as_ref().unwrap().intake().lost(), (1, 7));
        plugin.on_unload();
    }

    #[test]
    fn callbacks_outside_of_the_loaded_time_do_nothing() {
        let mut plugin = SluicePlugin::default();
        let status = SlotStatus::Processed;
        plugin.update_slot_status(1, None, &status).unwrap();
        let config = r#"{libpath: "none", grpc: {address: "127.0.0.1:0"}}"#;
        load(&mut plugin, "reload", config).unwrap();
        plugin.update_slot_status(2, None, &status).unwrap();
        plugin.on_unload();
        plugin.update_slot_status(3, None, &status).unwrap();
        plugin.on_unload();
    }

    #[test]
    fn a_bad_configuration_fails_the_load_with_its_reason() {
        let mut plugin = SluicePlugin::default();
        let error = load(&mut plugin, "bad", "{libpath: 1}").unwrap_err();
        assert!(
            error.to_string().contains("invalid plugin configuration"),
            "{error}"
        );
        let error = plugin
            .on_load("/nonexistent/config.json", false)
            .unwrap_err();
        assert!(
            error.to_string().contains("/nonexistent/config.json"),
            "{error}"
        );
    }
}
