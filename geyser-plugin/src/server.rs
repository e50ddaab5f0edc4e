//! Runtime of the plugin: everything that runs outside the validator's callbacks.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::{
    codec::CompressionEncoding, server::NamedService as _,
    service::interceptor::InterceptedService, transport,
};
use yellowstone_grpc_proto::geyser::geyser_server::GeyserServer;

use crate::{
    config::Config,
    hub::Hub,
    intake::Intake,
    service::{Service, TokenCheck},
    shutdown::{self, Shutdown, Stopping},
};

/// Worker threads: one for the hub, one for subscribers. The validator needs the other cores.
const WORKER_THREADS: usize = 2;

/// How often an idle connection is probed, and how long the probe may take; a peer that vanished
/// without closing its connection would otherwise keep its full queue for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How long open connections get to end by themselves when the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// How long the threads get to end after that. They must be gone before the library is unmapped.
const THREADS: Duration = Duration::from_secs(5);

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for gRPC: {source}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The threads cannot be started.
    #[error("cannot start the threads of the gRPC server: {0}")]
    Threads(std::io::Error),
}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    shutdown: Shutdown,
    /// In a mutex only because the plugin must be `Sync`, which a receiver alone is not.
    stopped: Mutex<mpsc::Receiver<()>>,
    intake: Arc<Intake>,
    hub: Arc<Hub>,
    address: SocketAddr,
}

impl Server {
    /// Binds the address and starts to serve. When it returns, clients can connect.
    ///
    /// # Errors
    ///
    /// [`StartError`] when the address or the threads are not to be had.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let listen_error = |source| StartError::Listen {
            address: config.grpc.address,
            source,
        };
        let listener = TcpListener::bind(config.grpc.address).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .thread_name("sluice-geyser")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;

        let hub = Arc::new(Hub::new(config));
        let (intake, events) = Intake::new(&config.limits);
        let intake = Arc::new(intake);
        let (shutdown, stopping) = shutdown::channel();

        let (hub_run, intake_run) = (Arc::clone(&hub), Arc::clone(&intake));
        let hub_task = runtime.spawn(async move { hub_run.run(&intake_run, events).await });
        let on_hub_end = shutdown.clone();
        runtime.spawn(async move {
            if let Err(error) = hub_task.await
                && error.is_panic()
            {
                log::error!("the hub failed, all subscriptions end: {error}");
                on_hub_end.begin();
            }
        });

        let listener = {
            let _runtime = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(listen_error)?
        };
        let (stopped_sender, stopped) = mpsc::channel();
        let geyser = geyser(config, Arc::clone(&hub), stopping.clone());
        runtime.spawn(async move {
            serve(listener, geyser, stopping).await;
            // Fails only when no task waits for the end.
            let _ = stopped_sender.send(());
        });
        Ok(Self {
            runtime: Some(runtime),
            shutdown,
            stopped: Mutex::new(stopped),
            intake,
            hub,
            address,
        })
    }

    /// Where the validator's messages go in.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// The hub, for callers in the same process.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.begin();
        let stopped = self
            .stopped
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // An error means that the serving task has ended already or hangs; either way it is cut off.
        let _ = stopped.recv_timeout(DRAIN);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(THREADS);
        }
    }
}

type GeyserService = InterceptedService<GeyserServer<Service>, TokenCheck>;

fn geyser(config: &Config, hub: Arc<Hub>, stopping: Stopping) -> GeyserService {
    let token = config.grpc.x_token.as_deref().map(Arc::from);
    let geyser = GeyserServer::new(Service::new(hub, Arc::new(config.clone()), stopping))
        .max_decoding_message_size(config.grpc.max_decoding_message_size)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd)
        .send_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Zstd);
    InterceptedService::new(geyser, TokenCheck { token })
}

async fn serve(listener: tokio::net::TcpListener, geyser: GeyserService, mut stopping: Stopping) {
    let connections = TcpListenerStream::new(listener).map(|connection| {
        connection.inspect(|connection| {
            // Only costs latency if it fails.
            let _ = connection.set_nodelay(true);
        })
    });
    let (mut health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<GeyserServer<Service>>().await;
    let stopped = async move {
        stopping.begun().await;
        // Ends the streams of those who watch the health.
        for service in ["", GeyserServer::<Service>::NAME] {
            health.clear_service_status(service).await;
        }
    };
    let served = transport::Server::builder()
        .http2_adaptive_window(Some(true))
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .add_service(geyser)
        .add_service(health_service)
        .serve_with_incoming_shutdown(connections, stopped)
        .await;
    if let Err(error) = served {
        log::error!("the gRPC server ended: {error}");
    }
}
