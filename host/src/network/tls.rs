//! Whom to trust: certificates of authorities, and TLS to a server that one of them vouches for.

use super::Failure;
use crate::policy::origin::Host;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS sessions that are remembered for one guest, to be taken up again.
const SESSIONS_MAX: usize = 32;

/// The authorities that are trusted. Cloning is cheap.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

/// Why certificates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustError {
    /// The text has no certificate in PEM form.
    NoCertificate,
    /// One of its certificates cannot be read.
    Unreadable,
    /// The cryptography is not as it should be.
    Provider,
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCertificate => "it has no certificate in PEM form",
            Self::Unreadable => "it has a certificate that cannot be read",
            Self::Provider => "TLS cannot be set up",
        })
    }
}

impl std::error::Error for TrustError {}

impl Trust {
    /// Trusts the authorities that browsers trust, those of the system, and those in these texts in PEM form.
    pub fn new(system: Vec<CertificateDer<'static>>, own: &[Vec<u8>]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        // Systems have old certificates that cannot be used; those are passed over.
        roots.add_parsable_certificates(system);
        for pem in own {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| TrustError::Unreadable)?;
                roots.add(certificate).map_err(|_| TrustError::Unreadable)?;
            }
            if roots.len() == before {
                return Err(TrustError::NoCertificate);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = builder.map_err(|_| TrustError::Provider)?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// The same trust with a memory of its own for sessions.
    pub(super) fn apart(&self) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Self(Arc::new(config))
    }

    /// Speaks TLS on a connection, to a server that has to be this one.
    pub(super) async fn connect<S>(&self, host: &Host, stream: S) -> Result<TlsStream<S>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Failure::Certificate)?,
            Host::Address(address) => ServerName::IpAddress((*address).into()),
        };
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await.map_err(|error| {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            tracing::debug!(%host, %error, "no TLS");
            if matches!(cause, Some(rustls::Error::InvalidCertificate(_))) { Failure::Certificate } else { Failure::Tls }
        })
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}
