//! Builds the hostile guest, loads it, and records what it does to its caller.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use guesthouse::config::grants::Grants;
use guesthouse::guest::bindings::context::{LogLevel, ProgressError, RequestInfo};
use guesthouse::guest::bindings::tools::ToolOutcome;
use guesthouse::guest::bindings::types::{Content, RpcError};
use guesthouse::guest::{
    CallContext, CallLimits, Change, CodeCache, EngineLimits, Engines, Failure, Keeping, Room, Settings, Version, load_bytes,
};
use guesthouse::telemetry::GuestFigures;
use guesthouse_protocol::Identity;

/// The hostile guest for wasm32-unknown-unknown, as a component.
pub fn hostile() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let module = build("hostile", "wasm32-unknown-unknown");
        wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
    })
}

/// The same guest for wasm32-wasip2, which importing WASI makes a component by itself.
pub fn hostile_on_wasi() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| build("hostile", "wasm32-wasip2"))
}

/// The guest that sends HTTP requests.
pub fn outgoing() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| build("outgoing", "wasm32-wasip2"))
}

/// The guest that counts in its memory.
pub fn keeper() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let module = build("keeper", "wasm32-unknown-unknown");
        wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
    })
}

fn build(guest: &str, target: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests").join(guest);
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--target", target]).current_dir(folder);
    cargo.env("CARGO_TARGET_DIR", &built).env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS");
    if let Some(rustc) = fallback_rustc() {
        cargo.env("RUSTC", rustc);
    }
    let status = cargo.status().unwrap();
    assert!(status.success(), "the guest `{guest}` does not build for {target}");
    std::fs::read(built.join(target).join("release").join(guest).with_extension("wasm")).unwrap()
}

/// The compiler with wasm targets that the guests' build keeps, where rustup's has none.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read")]
fn fallback_rustc() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let rustc = home.join(".cache/guesthouse/rust-wasm/bin/rustc");
    rustc.exists().then_some(rustc)
}

/// Engines that all tests share.
pub fn engines() -> &'static Engines {
    static ENGINES: OnceLock<Engines> = OnceLock::new();
    ENGINES.get_or_init(|| Engines::new(EngineLimits::default()).unwrap())
}

/// A cache that all tests share, so that the guest is compiled once.
pub fn cache() -> CodeCache {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    CodeCache::open(&folder.path().join("cache"), 1 << 30).unwrap()
}

pub fn limits() -> CallLimits {
    CallLimits { wall_ms: 20_000, cpu_ms: 300, memory_bytes: 16 << 20, output_bytes: 1 << 20, ..CallLimits::default() }
}

pub fn settings(limits: CallLimits) -> Settings {
    Settings {
        name: "hostile".into(),
        config_json: "{}".into(),
        limits,
        keeping: Keeping::default(),
        grants: Grants::default(),
        room: Room::default(),
        figures: GuestFigures::default(),
        commit_lock: Default::default(),
        cache: Some(cache()),
    }
}

/// The hostile guest, loaded with these limits.
pub fn version(limits: CallLimits) -> Version {
    load_bytes(engines(), "hostile.wasm", hostile(), settings(limits)).unwrap()
}

/// The hostile guest with this configuration.
pub fn configured(config_json: &str) -> Version {
    let settings = Settings { config_json: config_json.into(), ..settings(limits()) };
    load_bytes(engines(), "hostile.wasm", hostile(), settings).unwrap()
}

/// Calls a tool without a caller.
pub async fn call(version: &Version, tool: &str, arguments: &str) -> Result<ToolOutcome, Failure> {
    version.call_tool(None, tool.into(), arguments.into()).await
}

/// The text of a result that is one text.
pub fn text(outcome: Result<ToolOutcome, Failure>) -> String {
    match outcome.unwrap() {
        ToolOutcome::Complete(result) => match result.content.as_slice() {
            [Content::Text(content)] => content.text.clone(),
            other => panic!("not one text: {other:?}"),
        },
        other => panic!("not a result: {other:?}"),
    }
}

/// What a guest did to its caller.
#[derive(Debug, Default)]
pub struct Record {
    pub progress: Vec<(f64, Option<f64>, Option<String>)>,
    pub logs: Vec<(LogLevel, Option<String>, String)>,
    pub changes: Vec<Change>,
    pub ended: bool,
}

/// A caller that remembers everything, and optionally never takes a progress report.
pub struct Recorder {
    record: Arc<Mutex<Record>>,
    stalled: bool,
    session: Option<Arc<str>>,
}

impl Recorder {
    pub fn new() -> (Box<Recorder>, Arc<Mutex<Record>>) {
        Recorder::with(false)
    }

    /// A caller whose connection takes nothing any more.
    pub fn stalled() -> (Box<Recorder>, Arc<Mutex<Record>>) {
        Recorder::with(true)
    }

    fn with(stalled: bool) -> (Box<Recorder>, Arc<Mutex<Record>>) {
        let record = Arc::new(Mutex::new(Record::default()));
        (Box::new(Recorder { record: Arc::clone(&record), stalled, session: None }), record)
    }

    /// The same caller in a session of that name.
    pub fn of_session(mut self: Box<Recorder>, name: &str) -> Box<Recorder> {
        self.session = Some(name.into());
        self
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.record.lock().unwrap().ended = true;
    }
}

impl CallContext for Recorder {
    fn request_info(&mut self) -> Option<RequestInfo> {
        Some(RequestInfo {
            id: "call-1".into(),
            protocol_version: "2026-07-28".into(),
            client_info: None,
            client_capabilities: "{}".into(),
            meta: None,
            traceparent: None,
            principal: None,
            tenant: None,
            session: None,
            wants_progress: true,
            retry: false,
            more: None,
        })
    }

    fn identity(&self) -> Identity {
        Identity { session: self.session.clone(), ..Identity::default() }
    }

    fn answer(&mut self, key: &str) -> Option<Result<String, RpcError>> {
        Some(Ok(format!("\"answer to {key}\"")))
    }

    fn state(&mut self) -> Option<Vec<u8>> {
        Some(vec![4, 2])
    }

    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>> {
        if self.stalled {
            return std::future::pending().boxed();
        }
        let mut record = self.record.lock().unwrap();
        if record.progress.last().is_some_and(|(last, ..)| *last >= progress) {
            return std::future::ready(Err(ProgressError::NotIncreasing)).boxed();
        }
        record.progress.push((progress, total, message));
        std::future::ready(Ok(())).boxed()
    }

    fn log(&mut self, level: LogLevel, logger: Option<String>, data: String) -> BoxFuture<'_, ()> {
        self.record.lock().unwrap().logs.push((level, logger, data));
        std::future::ready(()).boxed()
    }

    fn change(&mut self, change: Change) {
        self.record.lock().unwrap().changes.push(change);
    }
}

/// Polls once, and says whether the future is still pending.
pub async fn is_pending<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}
