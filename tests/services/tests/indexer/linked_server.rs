//! Linked server: a PostgreSQL server of a test's own, which an indexer reaches over a link that can freeze.

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    sync::Arc,
};

use sluice_harness::indexer::IndexerHarness;
use sluice_store::testing::{Disk, PrivateCluster};
use sluice_testkit::{free_port::free_port, network_link::NetworkLink};
use tempfile::TempDir;

/// The server with a harness on it. Fields are dropped in their order: the server ends before its folder goes.
pub(crate) struct LinkedServer {
    /// Reaches the server past the link.
    pub(crate) harness: IndexerHarness,
    pub(crate) link: NetworkLink,
    /// The harness's database, over the link.
    pub(crate) url: String,
    _folder: TempDir,
}

impl LinkedServer {
    pub(crate) async fn start(test: &str) -> Self {
        let folder = folder_of_a_server();
        let port = free_port().expect("a free port");
        let place = folder.path().join("cluster");
        let cluster = PrivateCluster::start_on_port(&place, Disk::DoesNotWait, port);
        let cluster = Arc::new(cluster.expect("PostgreSQL starts"));
        let harness = IndexerHarness::on_server(cluster, test).await;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let link = NetworkLink::to(server).await.expect("a free port");
        let database = harness.database().expect("of a server");
        Self {
            url: PrivateCluster::url_at(link.address(), &database),
            harness,
            link,
            _folder: folder,
        }
    }
}

/// A folder that a server can enter which runs as another account.
pub(crate) fn folder_of_a_server() -> TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("folder");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("entered");
    folder
}
