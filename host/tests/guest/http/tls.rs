//! HTTPS: a server has to be the one that its name says, for somebody who is trusted.

use std::sync::Arc;

use guesthouse::guest::CallLimits;
use guesthouse::network::{Trust, TrustError};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::outside::{Outside, Server};

/// TLS with the certificate for `tls.test`. It is valid until 2120.
pub fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("../tls/server.pem")).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsAcceptor::from(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap()))
}

async fn ask(outside: &Outside, server: &Server, name: &str) -> Value {
    outside.names.lead(name, &["127.0.0.1"]);
    outside.send(json!({ "scheme": "https", "authority": format!("{name}:{}", server.address.port()), "path": "/echo" })).await
}

#[tokio::test]
async fn the_name_has_to_be_that_of_the_certificate_and_somebody_has_to_be_trusted() {
    let server = Server::over(Some(acceptor())).await;
    let grants = ["https://*.test:*", "https://127.0.0.1:*"];
    let outside = Outside::new(&grants);
    assert_eq!(ask(&outside, &server, "tls.test").await["status"], 200);
    assert_eq!(ask(&outside, &server, "other.test").await["error"], "TlsCertificateError");
    let literal = json!({ "scheme": "https", "authority": server.authority() });
    assert_eq!(outside.send(literal).await["error"], "TlsCertificateError");
    let public = Trust::new(Vec::new(), &[]).unwrap();
    let trusting_others = Outside::through(&grants, &[], CallLimits::default(), &[], public);
    assert_eq!(ask(&trusting_others, &server, "tls.test").await["error"], "TlsCertificateError");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to() {
    let server = Server::start().await;
    let outside = Outside::new(&["https://*.test:*", "https://127.0.0.1:*"]);
    assert_eq!(ask(&outside, &server, "tls.test").await["error"], "TlsProtocolError");
    assert!(server.seen().is_empty());
}

#[test]
fn certificates_that_are_none_are_refused() {
    for (pem, error) in [
        (b"" as &[u8], TrustError::NoCertificate),
        (b"nothing of the kind", TrustError::NoCertificate),
        (include_bytes!("../tls/server.key"), TrustError::NoCertificate),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", TrustError::Unreadable),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n", TrustError::Unreadable),
    ] {
        assert_eq!(Trust::new(Vec::new(), &[pem.to_vec()]).unwrap_err(), error);
    }
}
