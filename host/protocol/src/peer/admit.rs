//! Decides about each request: run it, answer it at once, or refuse it.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::ask::Again;
use super::batch::Place;
use super::{InFlight, Peer};
use crate::effect::{Call, CallContext, CallId, Identity};
use crate::error::RpcError;
use crate::failure::{RETRY_AFTER_S, busy};
use crate::handshake::{Session, duplicate_id};
use crate::message::{RequestId, RequestMessage};
use crate::method::Method;
use crate::model::{Asked, Request, Retry, Rounds, TaskAsked, asked, retry, task_asked};
use crate::modern::{self, CommonMeta};
use crate::reporter::{Reporter, Threshold};
use crate::revision::{Era, Mode, Revision};

/// What becomes of a request that is sound.
pub(super) enum Admitted {
    /// The dispatcher answers it.
    Run(Box<Call>),
    /// It is answered, with nothing to say, in the form of this revision.
    Done(Revision),
}

/// What becomes of one that is not.
pub(super) struct Refused {
    pub(super) error: RpcError,
    pub(super) status: u16,
    pub(super) retry_after_s: Option<u32>,
}

/// Who calls: the same for all requests of a session, different for each modern one.
struct Caller {
    revision: Revision,
    client_info: Option<Arc<RawValue>>,
    client_capabilities: Arc<RawValue>,
    threshold: Threshold,
}

/// A request that may run, before it has a number.
struct Ready {
    id: RequestId,
    request: Request,
    meta: CommonMeta,
    retry: Option<Retry>,
    task: Option<TaskAsked>,
}

impl Refused {
    /// The request broke a rule of the protocol: HTTP 400.
    fn bad(error: RpcError) -> Refused {
        Refused { error, status: 400, retry_after_s: None }
    }

    /// The request is well-formed and cannot be served: HTTP 200.
    fn plain(error: RpcError) -> Refused {
        Refused { error, status: 200, retry_after_s: None }
    }

    /// There is no room now.
    fn busy() -> Refused {
        let (error, status) = busy(RETRY_AFTER_S);
        Refused { error, status, retry_after_s: Some(RETRY_AFTER_S) }
    }
}

impl Peer {
    /// Decides about a request. The era is chosen anew for each: a request that carries the modern metadata is
    /// modern, and so is `server/discover`, which exists in no other era.
    pub(super) fn admit(&mut self, message: RequestMessage<'_>, place: Option<Place>) -> Result<Admitted, Refused> {
        let mode = self.config.mode;
        let modern = modern::is_modern(&message.params) || message.method == "server/discover";
        match mode {
            Mode::Handshake => self.admit_handshake(message, place),
            Mode::Both if !modern => self.admit_handshake(message, place),
            Mode::Modern if !modern && message.method == "initialize" => {
                // A client of the handshake era has nothing but this error to learn what the server speaks.
                let requested = message.params.text("protocolVersion").unwrap_or_default();
                Err(Refused::bad(RpcError::unsupported_version(mode, &requested)))
            }
            Mode::Both | Mode::Modern => self.admit_modern(message, place),
        }
    }

    fn admit_modern(&mut self, message: RequestMessage<'_>, place: Option<Place>) -> Result<Admitted, Refused> {
        if place.is_some() {
            let text = "A modern request must not be part of a batch";
            return Err(Refused::bad(RpcError::invalid_request("batch_not_supported", text)));
        }
        let RequestMessage { id, method, params } = message;
        let meta = modern::check(&params, self.config.mode).map_err(Refused::bad)?;
        let common = modern::common(&params, &self.config.limits.parse).map_err(Refused::bad)?;
        let revision = meta.revision;
        let Some(method) = Method::find(&method, revision) else {
            let error = RpcError::method_not_found(&method, revision);
            return Err(Refused { error, status: 404, retry_after_s: None });
        };
        let asked = asked(method, &params).map_err(Refused::plain)?;
        let retry = retry(method, &params).map_err(Refused::plain)?;
        self.check_id(&id)?;
        self.check_room()?;
        let Asked::Run(request) = asked else {
            return Ok(Admitted::Done(revision));
        };
        if let Request::Listen(filter) = &request {
            filter.check(&self.config.limits).map_err(Refused::plain)?;
            self.check_subscriptions()?;
        }
        let caller = Caller {
            revision,
            client_info: meta.client_info.map(shared),
            client_capabilities: shared(meta.client_capabilities),
            threshold: meta.log_level.map_or(Threshold::Silent, Threshold::Fixed),
        };
        Ok(Admitted::Run(self.start(Ready { id, request, meta: common, retry, task: None }, caller, None)))
    }

    fn admit_handshake(&mut self, message: RequestMessage<'_>, place: Option<Place>) -> Result<Admitted, Refused> {
        if message.method == "initialize" {
            return self.admit_initialize(message, place);
        }
        let RequestMessage { id, method, params } = message;
        self.check_id(&id)?;
        let room = self.check_room();
        let Some(session) = self.session.as_mut().filter(|session| session.opening.is_none()) else {
            return match (&self.session, method.as_ref()) {
                (_, "ping") => Ok(Admitted::Done(Revision::LATEST_HANDSHAKE)),
                (None, _) => Err(not_open("session_not_initialized", "The client must send initialize first")),
                (Some(_), _) => Err(not_open("initialization_in_progress", "initialize has not been answered yet")),
            };
        };
        let meta = modern::common(&params, &self.config.limits.parse).map_err(Refused::bad)?;
        let revision = session.revision;
        let known = Method::find(&method, revision);
        let asked = known.map(|known| asked(known, &params)).transpose().map_err(Refused::plain)?;
        let task = known.map(|known| task_asked(known, revision, &params)).transpose().map_err(Refused::plain)?.flatten();
        if matches!(asked, Some(Asked::Run(_))) {
            room?;
        }
        session.use_id(&id).map_err(Refused::bad)?;
        let request = match asked {
            None => {
                return Err(Refused::plain(RpcError::method_not_found(&method, revision)));
            }
            Some(Asked::Ping) => return Ok(Admitted::Done(revision)),
            Some(Asked::SetLevel(level)) => {
                session.level.set(level);
                return Ok(Admitted::Done(revision));
            }
            Some(Asked::Run(request)) => request,
        };
        let caller = Caller::of_session(session);
        Ok(Admitted::Run(self.start(Ready { id, request, meta, retry: None, task }, caller, place)))
    }

    fn admit_initialize(&mut self, message: RequestMessage<'_>, place: Option<Place>) -> Result<Admitted, Refused> {
        if place.is_some() {
            return Err(not_open("initialize_in_batch", "initialize must not be part of a batch"));
        }
        match &self.session {
            Some(session) if session.opening.is_some() => {
                return Err(not_open("initialization_in_progress", "initialize has not been answered yet"));
            }
            Some(_) => {
                return Err(not_open("session_already_initialized", "The session is already initialized"));
            }
            None => {}
        }
        let RequestMessage { id, params, .. } = message;
        let meta = modern::common(&params, &self.config.limits.parse).map_err(Refused::bad)?;
        let Asked::Run(Request::Initialize(asked)) = asked(Method::Initialize, &params).map_err(Refused::plain)? else {
            return Err(not_open("invalid_message", "The message is no initialize request"));
        };
        self.check_id(&id)?;
        self.check_room()?;
        let call = CallId(self.count.wrapping_add(1));
        let mut session = Session::open(&asked, call, self.config.limits.request_ids_max).map_err(Refused::plain)?;
        session.use_id(&id).map_err(Refused::bad)?;
        let caller = Caller::of_session(&session);
        self.session = Some(Box::new(session));
        let request = Request::Initialize(asked);
        Ok(Admitted::Run(self.start(Ready { id, request, meta, retry: None, task: None }, caller, None)))
    }

    /// An id of a call that runs is taken, whatever the era.
    fn check_id(&self, id: &RequestId) -> Result<(), Refused> {
        if self.in_flight.iter().any(|running| running.id == *id) {
            return Err(Refused::bad(duplicate_id(id)));
        }
        Ok(())
    }

    /// Only so many calls run at a time. What needs no call (`ping`) is answered all the same.
    fn check_room(&self) -> Result<(), Refused> {
        if self.in_flight.len().saturating_sub(self.waiting()) < self.config.limits.in_flight_max {
            return Ok(());
        }
        Err(Refused::busy())
    }

    fn check_subscriptions(&self) -> Result<(), Refused> {
        let open = self.in_flight.iter().filter(|running| running.method == Method::Listen).count();
        if open < self.config.limits.subscriptions_max {
            return Ok(());
        }
        Err(Refused::busy())
    }

    fn start(&mut self, ready: Ready, caller: Caller, place: Option<Place>) -> Box<Call> {
        let Ready { id, request, meta, retry, task } = ready;
        let call = CallId(self.next_number());
        let reporter = Reporter::new(caller.revision, meta.progress_token, caller.threshold);
        if let Some(batch) = place.and_then(|place| self.find_batch(place.batch)) {
            batch.open();
        }
        let context = CallContext {
            request_id: id,
            revision: caller.revision,
            transport: self.config.transport,
            client_info: caller.client_info,
            client_capabilities: caller.client_capabilities,
            meta: meta.rest,
            traceparent: meta.traceparent,
            retry,
            task,
            identity: Identity::default(),
            rounds: Rounds::default(),
        };
        let method = request.method();
        // A client that can be asked nothing never makes a call run again.
        let asks = method.may_ask() && context.revision.era() == Era::Handshake && context.client_capabilities.get() != "{}";
        let again = (asks && !self.one_way).then(|| Box::new(Again::new(&request, &context, &reporter)));
        self.in_flight.push(InFlight {
            call,
            id: context.request_id.clone(),
            method,
            revision: context.revision,
            place,
            line: reporter.line(),
            capabilities: Arc::clone(&context.client_capabilities),
            again,
        });
        Box::new(Call { id: call, request, context, reporter })
    }
}

impl Caller {
    fn of_session(session: &Session) -> Caller {
        Caller {
            revision: session.revision,
            client_info: Some(Arc::clone(&session.client_info)),
            client_capabilities: Arc::clone(&session.client_capabilities),
            threshold: Threshold::Session(session.level.clone()),
        }
    }
}

fn not_open(kind: &str, text: &str) -> Refused {
    Refused::bad(RpcError::invalid_request(kind, text))
}

fn shared(value: &RawValue) -> Arc<RawValue> {
    Arc::from(value.to_owned())
}
