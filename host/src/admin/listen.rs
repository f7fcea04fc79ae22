//! Where the admin socket is: a Unix socket in a folder of this user's own, and TCP where the operator wants it.

use crate::config::admin::{AdminConfig, Socket};
use crate::config::paths;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Permissions of the socket: this user alone.
const SOCKET_MODE: u32 = 0o600;

/// The open sockets.
#[derive(Default)]
pub struct Listeners {
    pub(super) unix: Option<OwnSocket>,
    /// With the hash of the token that is asked for there.
    pub(super) tcp: Option<(TcpListener, [u8; 32])>,
}

/// A Unix socket that is removed from its folder when it is dropped.
pub(super) struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that nobody else's socket of that name is removed.
    made: (u64, u64),
}

/// The path of the socket of the host that listens at that address.
pub fn socket_for(address: SocketAddr) -> Result<PathBuf> {
    paths::runtime().map(|folder| folder.join(format!("{}.sock", address.port())))
}

impl Listeners {
    /// Opens what the configuration asks for, for a host that serves at that address. A socket that nobody asked for by name
    /// and that cannot be opened is no reason not to serve.
    pub fn open(config: &AdminConfig, address: SocketAddr) -> Result<Listeners> {
        let unix = match config.socket() {
            Socket::Off => None,
            Socket::At(path) => Some(OwnSocket::bind(&path)?),
            Socket::Auto => socket_for(address)
                .and_then(|path| OwnSocket::bind(&path))
                .inspect_err(|error| tracing::warn!("there is no admin socket, so `guesthouse status` finds nothing here: {error:#}"))
                .ok(),
        };
        let tcp = match (config.listen, config.token_hash()) {
            (Some(address), Some(hash)) => {
                let listener =
                    std::net::TcpListener::bind(address).with_context(|| format!("cannot listen on {address} (`admin.listen`)"))?;
                listener.set_nonblocking(true).context("cannot use the admin socket")?;
                Some((TcpListener::from_std(listener).context("cannot use the admin socket")?, hash))
            }
            _ => None,
        };
        Ok(Listeners { unix, tcp })
    }

    /// Where the Unix socket is.
    pub fn path(&self) -> Option<&Path> {
        self.unix.as_ref().map(|socket| socket.path.as_path())
    }

    /// Where TCP is answered.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }
}

impl OwnSocket {
    fn bind(path: &Path) -> Result<OwnSocket> {
        let shown = path.display();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .with_context(|| format!("cannot make the folder of the admin socket {shown}"))?;
        }
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => bail!("{shown} is there and is no socket; name another with `admin.socket`"),
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                bail!("another host answers at the admin socket {shown}; name another with `admin.socket`")
            }
            // Left behind by a host that was killed.
            Ok(_) => std::fs::remove_file(path).with_context(|| format!("cannot replace the old admin socket {shown}"))?,
            Err(_) => {}
        }
        let listener = bind_in_private(path).with_context(|| format!("cannot open the admin socket {shown}"))?;
        let made = std::fs::symlink_metadata(path).map(|made| (made.dev(), made.ino())).with_context(|| format!("cannot read {shown}"))?;
        Ok(OwnSocket { listener, path: path.to_owned(), made })
    }
}

/// Opens a socket at the path that was this user's alone from the beginning: whatever the process leaves to others by default,
/// it is made in a folder that nobody else can enter, and moved from there once its own mode is set.
fn bind_in_private(path: &Path) -> std::io::Result<UnixListener> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let private = tempfile::Builder::new().prefix(".").permissions(std::fs::Permissions::from_mode(0o700)).tempdir_in(folder)?;
    let inside = private.path().join("s");
    let listener = UnixListener::bind(&inside)?;
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    std::fs::rename(&inside, path)?;
    Ok(listener)
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let found = std::fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == self.made) {
            // Whoever starts next replaces a socket that stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

pub(super) async fn accept_unix<F>(socket: &OwnSocket, serve: impl Fn(UnixStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    accept(|| async { socket.listener.accept().await.map(|(stream, _)| stream) }, serve).await;
}

pub(super) async fn accept_tcp<F>(listener: &TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    accept(|| async { listener.accept().await.map(|(stream, _)| stream) }, serve).await;
}

/// Accepts connections for ever, a few at a time; others wait in the system's queue.
async fn accept<S, A, F>(mut next: impl FnMut() -> A, serve: impl Fn(S) -> F)
where
    A: Future<Output = std::io::Result<S>>,
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match next().await {
            Ok(stream) => {
                let connection = serve(stream);
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection on the admin socket: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_this_users_alone_and_goes_with_its_host() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/1.sock");
        let socket = OwnSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, SOCKET_MODE);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
        let said = OwnSocket::bind(&path).err().map(|error| format!("{error:#}")).unwrap();
        assert!(said.contains("another host answers"), "{said}");
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_killed_host_left_is_replaced_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(OwnSocket::bind(&path).unwrap());
        std::fs::write(&path, "precious").unwrap();
        let said = OwnSocket::bind(&path).err().map(|error| format!("{error:#}")).unwrap();
        assert!(said.contains("is no socket"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
