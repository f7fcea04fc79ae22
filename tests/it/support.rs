//! What the tests share: built guests, and one client for every transport and era.

pub mod clients;
pub mod guests;
/// The same check of every frame that the protocol's own transcripts make.
#[path = "../../host/protocol/tests/it/schema.rs"]
pub mod schema;

pub use clients::{Client, Era, Transport};
pub use guests::{component, root};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_guesthouse-under-test");

/// The state folder of programs that are started, in the place of the person's own.
pub fn state_home() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()))
}

/// The configuration of a host that saves nothing on this machine.
pub fn config() -> guesthouse::config::Config {
    in_memory(guesthouse::config::Config::default())
}

/// The same with other settings.
pub fn in_memory(config: guesthouse::config::Config) -> guesthouse::config::Config {
    use guesthouse::config::storage::{Kind, StorageConfig};
    let storage = StorageConfig { kind: Kind::Memory, ..StorageConfig::default() };
    guesthouse::config::Config { storage, ..config }
}

/// Defines a test that runs over HTTP, stdio and in process, in both eras each.
macro_rules! over_all_transports {
    ($name:ident, $guest:expr, $body:expr) => {
        mod $name {
            use super::*;

            async fn check(transport: crate::support::Transport) {
                for era in [crate::support::Era::Modern, crate::support::Era::Handshake] {
                    let client = crate::support::Client::connect(transport, era, $guest).await;
                    let body: fn(crate::support::Client) -> std::pin::Pin<Box<dyn Future<Output = ()>>> = |client| Box::pin($body(client));
                    body(client).await;
                }
            }

            #[tokio::test]
            async fn over_http() {
                check(crate::support::Transport::Http).await;
            }

            #[tokio::test]
            async fn over_stdio() {
                check(crate::support::Transport::Stdio).await;
            }

            #[tokio::test]
            async fn in_process() {
                check(crate::support::Transport::Memory).await;
            }
        }
    };
}
pub(crate) use over_all_transports;
