//! `/api/webhooks`: manages webhooks, their messages, and the relay streams of temporary ones.
//!
//! These routes write definitions to the database; the indexer reads them there, matches and delivers. Of
//! what it is asked to read again (`backfill`) it reads there, too. Of
//! deliveries they write four things: a redelivery makes messages due again; a message is skipped; a changed URL or a webhook
//! switched on again resets its circuit breaker and makes due what waits for a retry; and the messages of a temporary webhook are leased here, go
//! down the connection that its owner holds open, and are recorded as reported or released. A test is sent from
//! here with the client of real deliveries, and nothing of it is stored.
//!
//! | for | see |
//! |---|---|
//! | what may be written, what is read | `definition`, `settings`, `view` |
//! | what a caller has of what is limited | `usage` |
//! | what it is told of others | `operations` |
//! | how a caller's program events are decoded | `idls` |
//! | a webhook | `create`, `get`, `list`, `update`, `delete`, `addresses`, `rotate_secret` |
//! | what became of it | `deliveries`, `events`, `redeliver`, `skip`, `backfill`, `test`, `sample` |
//! | a temporary webhook's connection | `relay`, `relay_streams` |
//! | the routes and what they share | `router`, `state`, `limits`, `problem`, `etag`, `paging` |
//! | the description of all this | `openapi`, `schema`, `parts`, `batch`, `delivery_options` |

mod addresses;
mod backfill;
mod batch;
mod create;
mod definition;
mod delete;
mod deliveries;
mod delivery_options;
mod etag;
mod events;
mod filters_view;
mod get;
mod idls;
mod limits;
mod list;
mod openapi;
mod operations;
mod paging;
mod parts;
mod problem;
mod redeliver;
mod relay;
mod relay_streams;
mod rotate_secret;
mod router;
mod sample;
mod schema;
mod served;
mod settings;
mod skip;
mod state;
mod test;
mod update;
mod usage;
mod view;

#[cfg(test)]
mod tests;

pub use self::{
    router::{description, router},
    sample::body as sample_body,
    settings::Settings,
};
