//! The four limits on concurrent deliveries, each of which builds on the others.
//!
//! 1. [`MAX_LEASED`] and [`MAX_LEASED_BYTES`] guard this process: the memory of what waits for a socket.
//! 2. [`LEASE_QUOTA`] keeps webhooks fair to one another, across all processes: the store counts it. It is less where
//!    little is left of the tenant's share ([`sluice_store::TenantShares`]).
//! 3. [`MAX_IN_FLIGHT`] bounds the sockets to one endpoint of this process.
//! 4. The concurrency limit of an endpoint is learnt by the circuit breaker and kept by the store: a weak endpoint gets
//!    fewer at once, from [`LEAST_CONCURRENCY`] up to [`MAX_IN_FLIGHT`]. Its owner may ask for fewer still
//!    ([`sluice_store::DeliveryOptions`]): the store leases no more of it, so that holds for all processes together.
//!
//! An API key may have limits of its own on what is leased for it at once and in a second, and a webhook a rate: the store keeps
//! them when it leases, for all processes together, and gives each attempt of such a webhook its turn.

/// Deliveries that this process holds leases on at once: each is a few kilobytes, and a socket when it is in flight.
pub const MAX_LEASED: usize = 8192;

/// Fewest deliveries that this process holds leases on at once, however few files it may have open.
const LEAST_LEASED: usize = 64;

/// Deliveries that this process holds leases on at once where it may have so many files open: a socket for each of them must leave
/// half of the files to clients' connections, streams and the database.
#[must_use]
pub fn most_leased(open_files: Option<u64>) -> usize {
    let half = open_files.map_or(u64::MAX, |files| files / 2);
    let half = usize::try_from(half).unwrap_or(usize::MAX);
    half.clamp(LEAST_LEASED, MAX_LEASED)
}

/// Connections that this process keeps open between attempts, to all endpoints together: enough for some hundred endpoints that
/// are sent to all the time, each a few kilobytes.
pub const MOST_IDLE_OF_PROCESS: usize = 1024;

/// Connections that this process keeps open between attempts where it may have so many files open: half of what deliveries in
/// flight may take, so that owners with webhooks at many hosts leave a quarter of the files to the rest.
#[must_use]
pub fn most_idle(open_files: Option<u64>) -> usize {
    (most_leased(open_files) / 2).min(MOST_IDLE_OF_PROCESS)
}

/// Bytes of bodies that this process holds leases on at once. A body may have megabytes, and is in memory twice while it is
/// sent.
pub const MAX_LEASED_BYTES: u64 = 96 * 1024 * 1024;

/// Attempts in flight at once to one endpoint. Endpoints in one data centre with Sluice answer in a millisecond, those
/// on another continent in two hundred: eighty messages a second for them.
pub const MAX_IN_FLIGHT: u32 = 16;

/// Lease quota: deliveries of one webhook that are leased at once, so what an endpoint that hangs can keep from the
/// others. Sixteen rounds of attempts, so that a fast endpoint need not wait for the database after each, and leases and
/// records come in large batches.
pub const LEASE_QUOTA: u32 = 16 * MAX_IN_FLIGHT;

/// Fewest attempts in flight to which an overloaded endpoint is limited: with none it could not recover.
pub const LEAST_CONCURRENCY: u32 = 1;

/// Attempts in flight at once to an endpoint whose circuit breaker has just closed: it is believed, but not yet with
/// everything that is pending.
pub const FIRST_CONCURRENCY: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_leave_half_of_the_open_files_to_the_rest() {
        assert_eq!(most_leased(None), MAX_LEASED);
        assert_eq!(most_leased(Some(1 << 20)), MAX_LEASED);
        assert_eq!(most_leased(Some(4_096)), 2_048);
        assert_eq!(most_leased(Some(0)), LEAST_LEASED);
    }

    #[test]
    fn connections_that_wait_leave_a_quarter_of_the_open_files_to_the_rest() {
        assert_eq!(most_idle(None), MOST_IDLE_OF_PROCESS);
        for files in [256_u64, 1_024, 4_096, 1 << 20] {
            let taken = most_leased(Some(files)) + most_idle(Some(files));
            let taken = u64::try_from(taken).expect("small");
            assert!(taken <= files / 4 * 3, "{taken} of {files}");
        }
    }
}
