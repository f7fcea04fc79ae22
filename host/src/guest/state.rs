//! What a store holds for its guest while one call runs, and what the caller of a call provides.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::allowance::Allowance;
use super::bindings::context::{LogLevel, ProgressError, RequestInfo};
use super::bindings::types::RpcError;
use super::limits::{CallLimits, Limiter};
use super::log::CallLog;
use super::version::Guest;
use crate::capability::changes::Changes;
use crate::capability::context::Progress;
use crate::capability::filesystem::FoldersView;
use crate::capability::http::Outgoing;
use crate::capability::keyvalue::{Bucket, Opens, Tx};
use crate::capability::wasi;
use crate::identity::Identity;
use crate::storage::Space;

/// What a guest can learn of its request, and send to the client, while its callback runs. Implemented by the
/// dispatcher; a call owns one, and drops it when it ends.
pub trait CallContext: Send + 'static {
    /// Everything about the request. Built only for guests that ask.
    fn request_info(&mut self) -> Option<RequestInfo>;

    /// Who asks, as the host knows; whose state a callback works on follows from it.
    fn identity(&self) -> Identity;

    /// The client's answer to a question of an earlier round.
    fn answer(&mut self, key: &str) -> Option<Result<String, RpcError>>;

    /// The state that the round before handed over.
    fn state(&mut self) -> Option<Vec<u8>>;

    /// Reports progress; ready when the report is on the wire. The value is finite, and the message within its limit.
    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>>;

    /// Sends a log message, unless it is below the level in force. The data is within its limit; whether it is
    /// JSON is for the implementer to see.
    fn log(&mut self, level: LogLevel, logger: Option<String>, data: String) -> BoxFuture<'_, ()>;

    /// Announces a change. Called after the callback has succeeded, once for each distinct change.
    fn change(&mut self, change: Change);

    /// What the callback migrates, if that is what it is for.
    fn migrating(&self) -> Option<&Migrating> {
        None
    }
}

/// The one space that a callback migrates, and where what it wrote is collected instead of being saved.
#[derive(Clone)]
pub struct Migrating {
    pub(crate) space: Space,
    pub(crate) bucket: Bucket,
    written: Arc<Mutex<Option<Tx>>>,
}

impl Migrating {
    pub(crate) fn new(space: Space, bucket: Bucket) -> Migrating {
        Migrating { space, bucket, written: Arc::default() }
    }

    pub(super) fn collect(&self, tx: Tx) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx);
    }

    /// What the callback has read and written.
    pub(crate) fn take(&self) -> Option<Tx> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Something that clients may be waiting for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The list of tools is a different one now.
    Tools,
    /// The list of prompts is a different one now.
    Prompts,
    /// The list of resources is a different one now.
    Resources,
    /// The resource of this URI has new contents.
    Resource(String),
}

/// What belongs to a call, and not to the instance that serves it: it goes on to the next run of the callback.
pub(crate) struct Visit {
    context: Option<Box<dyn CallContext>>,
    allowance: Allowance,
    progress: Progress,
    opens: Opens,
    /// Made with the first instance.
    log: Option<Arc<CallLog>>,
}

impl Visit {
    /// The beginning of a call.
    pub(crate) fn new(limits: &CallLimits, context: Option<Box<dyn CallContext>>, allowance: Allowance) -> Visit {
        Visit { context, allowance, progress: Progress::new(limits), opens: Opens::default(), log: None }
    }

    /// Whether the callback is there to migrate what is stored.
    pub(crate) fn migrates(&self) -> bool {
        self.context.as_deref().is_some_and(|context| context.migrating().is_some())
    }

    /// The callback begins again from the top. What it told of itself so far, it need not tell again.
    pub(crate) fn run_again(&mut self) {
        self.progress.run_again();
        if let Some(log) = &self.log {
            log.run_again();
        }
    }
}

/// A store's data: made for one call, dropped with it.
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) guest: Arc<Guest>,
    pub(crate) log: Arc<CallLog>,
    /// The caller's end, absent where no request is being served, as for lists that are asked once per version.
    pub(crate) context: Option<Box<dyn CallContext>>,
    /// Whether the callback runs, and not `init`: only then does the context speak.
    pub(crate) in_callback: bool,
    pub(crate) allowance: Allowance,
    pub(crate) changes: Changes,
    pub(crate) progress: Progress,
    /// What the callback reads and writes of its state, once it has touched any.
    pub(crate) tx: Option<Tx>,
    /// What was noted of the buckets that the call opened.
    pub(crate) opens: Opens,
    /// Made when the guest first touches a WASI function, since most guests never do.
    wasi: Option<Box<Wasi>>,
}

struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    outgoing: Outgoing,
}

impl State {
    pub(crate) fn new(guest: &Arc<Guest>, visit: Visit) -> State {
        let Visit { context, allowance, progress, opens, log } = visit;
        State {
            limiter: Limiter::new(&guest.limits, guest.figures.memory_bytes()),
            guest: Arc::clone(guest),
            log: log.unwrap_or_else(|| Arc::new(CallLog::new(&guest.log, &guest.limits))),
            context,
            in_callback: false,
            allowance,
            changes: Changes::default(),
            progress,
            tx: None,
            opens,
            wasi: None,
        }
    }

    /// `init` is over, and what it wrote is dropped; what it read counts as read by the callback.
    pub(crate) fn begin_callback(&mut self) {
        self.in_callback = true;
        if let Some(tx) = &mut self.tx {
            tx.drop_writes();
        }
    }

    /// Begins another visit, on an instance that was kept. Its memory stays counted.
    pub(crate) fn enter(&mut self, visit: Visit) {
        let Visit { context, allowance, progress, opens, log: _ } = visit;
        self.limiter.forget_refusal();
        self.log.renew(&self.guest.limits);
        (self.context, self.allowance, self.progress, self.opens) = (context, allowance, progress, opens);
        self.changes = Changes::default();
        self.tx = None;
        self.in_callback = true;
    }

    /// Gives back what belongs to the call. The callback is over, and its context speaks no more.
    pub(crate) fn leave(&mut self) -> Visit {
        self.in_callback = false;
        self.changes = Changes::default();
        self.tx = None;
        if let Some(wasi) = &mut self.wasi {
            wasi.outgoing.end_call();
        }
        let progress = std::mem::replace(&mut self.progress, Progress::new(&self.guest.limits));
        let opens = std::mem::take(&mut self.opens);
        Visit { context: self.context.take(), allowance: self.allowance.clone(), progress, opens, log: Some(Arc::clone(&self.log)) }
    }

    pub(crate) fn limits(&self) -> &CallLimits {
        &self.guest.limits
    }

    /// The caller's end and what it has been told of the progress, while the callback runs.
    pub(crate) fn reporting(&mut self) -> Option<(&mut (dyn CallContext + 'static), &mut Progress)> {
        let context = self.context.as_deref_mut().filter(|_| self.in_callback)?;
        Some((context, &mut self.progress))
    }

    /// The caller's end, while the callback runs.
    pub(crate) fn callback_context(&mut self) -> Option<&mut (dyn CallContext + 'static)> {
        if self.in_callback { self.context.as_deref_mut() } else { None }
    }

    /// What the callback migrates, while it runs.
    pub(crate) fn migrating(&self) -> Option<&Migrating> {
        self.context.as_deref().filter(|_| self.in_callback)?.migrating()
    }

    /// Whether the callback has sent a request to the world outside, or is about to. That cannot be taken back, so the callback is
    /// not run again.
    pub(crate) fn went_out(&self) -> bool {
        self.wasi.as_ref().is_some_and(|wasi| wasi.outgoing.went_out())
    }

    fn wasi(&mut self) -> (&mut Wasi, &Guest) {
        let State { wasi, log, guest, .. } = self;
        let wasi = wasi.get_or_insert_with(|| {
            let mut table = ResourceTable::new();
            table.set_max_capacity(guest.limits.handles);
            let outgoing = Outgoing::new(&guest.name, guest.room.http.as_ref(), &guest.room.audit, &guest.limits);
            Box::new(Wasi { ctx: wasi::context(log, &guest.room.env), table, http: WasiHttpCtx::new(), outgoing })
        });
        (wasi, guest)
    }

    /// What `wasi:filesystem/preopens` works on.
    pub(crate) fn folders(&mut self) -> FoldersView<'_> {
        let (wasi, guest) = self.wasi();
        FoldersView { folders: &guest.room.folders, table: &mut wasi.table }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (wasi, _) = self.wasi();
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let principal = self.context.as_ref().and_then(|context| context.identity().principal);
        let (wasi, _) = self.wasi();
        wasi.outgoing.set_principal(principal);
        WasiHttpCtxView { hooks: &mut wasi.outgoing, table: &mut wasi.table, ctx: &mut wasi.http }
    }
}
