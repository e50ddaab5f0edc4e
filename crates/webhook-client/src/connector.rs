//! Connector: connects to an endpoint, to addresses alone that were judged.
//!
//! A name is resolved here, once, and the connection goes to the addresses that were judged: there is no second resolution that
//! could answer differently. A proxy is never asked.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
    vec,
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, ConfigBuilder, Error as TlsError, WantsVerifier, crypto::aws_lc_rs,
        pki_types::ServerName,
    },
};
use tower::{Service, ServiceExt};
use url::{Position, Url};

use crate::{
    connection::Connection,
    error::SendError,
    own_addresses::OwnAddresses,
    resolve::{Resolver, judged},
    target::{self, TargetFault, Zone},
    timeline::Timeline,
};

/// Makes connections. Certificates are judged as the system does.
pub(crate) struct Connector {
    resolver: Arc<dyn Resolver>,
    own: Arc<OwnAddresses>,
    tls: TlsConnector,
}

impl Connector {
    /// One that resolves names by `resolver`, and connects to none of `own` where it is to be a public address.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub(crate) fn new(
        resolver: Arc<dyn Resolver>,
        own: Arc<OwnAddresses>,
    ) -> Result<Self, TlsError> {
        let config = tls_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        Ok(Self {
            resolver,
            own,
            tls: Arc::new(config).into(),
        })
    }

    /// Connects to where a URL of this zone leads; the steps are noted in `timeline`.
    ///
    /// # Errors
    /// [`SendError::Target`] when an address may not be connected to, [`SendError::Failed`] for what else is in the way.
    pub(crate) async fn connect(
        &self,
        url: &Url,
        zone: Zone,
        timeline: &mut Timeline,
    ) -> Result<Connection, SendError> {
        let host = url.host_str().ok_or(TargetFault::NoUrl)?;
        // Judged already, with the URL.
        let literal = target::literal(url);
        let addresses = match literal {
            Some(address) => vec![address],
            None => {
                let own = self.own.at(Instant::now());
                let addresses = judged(&*self.resolver, &own, zone, host).await?;
                timeline.resolved();
                addresses
            }
        };
        let stream = tcp(url, addresses).await?;
        timeline.connected();
        if zone == Zone::Loopback {
            return Connection::over(stream).await.map_err(SendError::broken);
        }
        let name = match literal {
            Some(address) => address.into(),
            None => ServerName::try_from(host.to_owned()).map_err(SendError::broken)?,
        };
        let stream = self.tls.connect(name, stream.into_inner()).await;
        let stream = stream.map_err(SendError::broken)?;
        timeline.secured();
        let connection = Connection::over(TokioIo::new(stream)).await;
        connection.map_err(SendError::broken)
    }
}

/// TLS as it is before it is said whom to trust.
fn tls_versions() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// A connection to the first of these addresses that accepts one, in both families at once where the first is slow (RFC 8305).
async fn tcp(url: &Url, addresses: Vec<IpAddr>) -> Result<TokioIo<TcpStream>, SendError> {
    let place: Uri = url[..Position::BeforePath]
        .parse()
        .map_err(SendError::broken)?;
    let mut connector = HttpConnector::new_with_resolver(Judged(addresses));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.oneshot(place).await.map_err(SendError::broken)
}

/// Addresses that are known, as the connector asks for them; it fills in the port.
#[derive(Clone)]
struct Judged(Vec<IpAddr>);

impl Service<Name> for Judged {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        let sockets = self.0.iter().map(|address| SocketAddr::new(*address, 0));
        ready(Ok(sockets.collect::<Vec<_>>().into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{RootCertStore, ServerConfig, pki_types::PrivatePkcs8KeyDer},
    };

    use super::*;
    use crate::resolve::SystemResolver;

    /// A server that accepts every request over TLS, and a configuration that trusts it.
    async fn server() -> (SocketAddr, ClientConfig) {
        let names = ["127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a root");
        let trusting = tls_versions().expect("versions");
        let trusting = trusting.with_root_certificates(roots).with_no_client_auth();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .expect("a key of the certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust it ends the handshake.
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let mut request = [0; 1024];
                    let _ = stream.read(&mut request).await;
                    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
                    stream.write_all(answer).await.expect("a client");
                }
            }
        });
        (address, trusting)
    }

    #[tokio::test]
    async fn a_certificate_is_trusted_that_the_configuration_trusts_and_no_other() {
        let (address, trusting) = server().await;
        let url = Url::parse(&format!("https://{address}/hook")).expect("a URL");
        // A literal address was judged with the URL; here it stands for a public one.
        let none = || Ok(std::iter::empty().collect());
        let own = OwnAddresses::read_by(none, Instant::now()).expect("none");
        let system = Connector::new(Arc::new(SystemResolver), Arc::new(own)).expect("certificates");
        let mut timeline = Timeline::start();
        let refused = system.connect(&url, Zone::Public, &mut timeline).await;
        let text = refused.err().expect("a stranger").to_string();
        assert!(text.contains("certificate"), "{text}");
        let timings = timeline.timings();
        assert!(timings.connected.is_some() && timings.secured.is_none());

        let trusting = Connector {
            tls: Arc::new(trusting).into(),
            ..system
        };
        let connected = trusting.connect(&url, Zone::Public, &mut timeline).await;
        let mut connection = connected.expect("it is trusted");
        let answer = connection.send(Request::new(Full::new(Bytes::new()))).await;
        assert_eq!(answer.expect("an answer").status(), 204);
        assert!(timeline.timings().secured > timeline.timings().connected);
    }
}
