//! Quote stream: a quote whenever it changes, over as many connections as that takes.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    client::Client,
    error::Error,
    items::Items,
    retry,
    wire::{Quote, QuoteInput, QuoteResponse, StreamQuotesQuery},
};

/// Quotes as they change. A stream that is lost is opened again, after a growing pause, where it was.
#[derive(Debug)]
pub struct QuoteStream {
    client: Client,
    query: StreamQuotesQuery,
    connection: Option<Items<QuoteResponse>>,
    last_id: Option<String>,
    retry: Duration,
    failures: u32,
}

impl Client {
    /// The quote as of now, and another one whenever it changes. Nothing is sent until the first is asked for.
    #[must_use]
    pub fn follow_quotes(&self, query: StreamQuotesQuery) -> QuoteStream {
        QuoteStream {
            client: self.clone(),
            query,
            connection: None,
            last_id: None,
            retry: Duration::ZERO,
            failures: 0,
        }
    }
}

impl QuoteStream {
    /// The next quote. While the stream is lost it waits: what came last may be out of date then, as
    /// [`is_connected`](Self::is_connected) says.
    ///
    /// # Errors
    /// A problem that asking again cannot mend.
    pub async fn next(&mut self) -> Result<QuoteResponse, Error> {
        loop {
            match self.attempt().await {
                Ok(quote) => {
                    self.failures = 0;
                    return Ok(quote);
                }
                Err(error) if error.is_passing() => {
                    self.connection = None;
                    self.failures = self.failures.saturating_add(1);
                    let pause = retry::pause_after(self.failures, self.retry, rand::random());
                    sleep(pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the stream is open, so that the newest quote is the market's.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    async fn attempt(&mut self) -> Result<QuoteResponse, Error> {
        if self.connection.is_none() {
            let id = self.last_id.as_deref();
            self.connection = Some(self.client.stream_quotes(&self.query, id).await?);
        }
        let Some(connection) = &mut self.connection else {
            return Err(Error::Cut);
        };
        let quote = connection.next().await;
        if let Some(id) = connection.last_id() {
            self.last_id = Some(id.to_owned());
        }
        self.retry = connection.retry().unwrap_or(self.retry);
        quote?.ok_or(Error::Cut)
    }
}

/// A quote as it was answered, for the request that swaps by it.
impl From<Quote> for QuoteInput {
    fn from(quote: Quote) -> Self {
        Self {
            amount_in: Some(quote.amount_in),
            input_mint: quote.input_mint,
            minimum_out: Some(quote.minimum_out),
            out_amount: Some(quote.out_amount),
            output_mint: quote.output_mint,
            pool: Some(quote.pool),
            program: Some(quote.program),
            ..Self::default()
        }
    }
}
