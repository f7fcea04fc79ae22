//! What works on a task: the run that became it, and each run after its questions were answered.

use super::{Answer, Running};
use crate::dispatch::news::News;
use crate::dispatch::questions::Asking;
use crate::dispatch::seat::Seat;
use crate::dispatch::tools::{Answered, answered, not_found};
use crate::dispatch::trace::Subject;
use crate::guest::{self, Allowance};
use crate::registry::{View, ViewTool};
use crate::tasks::{self, Handover, Tasks};
use futures_util::FutureExt;
use guesthouse_protocol::model::Reply;
use guesthouse_protocol::model::tasks::Over;
use guesthouse_protocol::{CallContext, Failure, InternalKind, Outcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tracing::{Instrument as _, Span};

/// How long a task waits for a guest that is busy, before it tries again.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// All that work on tasks needs, so that it can go on without the request.
#[derive(Clone)]
pub(in crate::dispatch) struct Desk {
    pub(in crate::dispatch) news: Arc<News>,
    pub(in crate::dispatch) tasks: Arc<Tasks>,
    pub(in crate::dispatch) rounds_max: u32,
}

/// One run.
struct Run {
    view: Arc<View>,
    tool: String,
    context: CallContext,
    answer: Running,
    /// Of the call that the run is.
    span: Span,
}

/// What follows a run.
enum Next {
    /// Nothing.
    Done,
    /// Another one, at once.
    Again,
    /// Another one, when there may be room.
    Later,
}

impl Desk {
    /// Works on a task: goes on with a run that began as a call, or begins one.
    pub(super) fn begin(&self, id: &Arc<str>, guest: Arc<str>, running: Option<Running>) {
        // The task does not keep alive what it belongs to.
        let (news, tasks) = (self.news.clone(), Arc::downgrade(&self.tasks));
        let (rounds_max, of) = (self.rounds_max, id.clone());
        let mut running = running;
        let work = async move {
            loop {
                let run = match tasks.upgrade() {
                    Some(tasks) => Desk { news: news.clone(), tasks, rounds_max }.run(&of, running.take()),
                    None => return,
                };
                let Some(Run { view, tool, context, answer, span }) = run else { return };
                let answer = answer.await;
                let Some(tasks) = tasks.upgrade() else { return };
                let desk = Desk { news: news.clone(), tasks, rounds_max };
                match desk.conclude(&of, &view, &tool, &context, answer).instrument(span).await {
                    Next::Done => return,
                    Next::Again => {}
                    Next::Later => {
                        drop(desk);
                        sleep(BUSY_PAUSE).await;
                    }
                }
            }
        };
        self.tasks.work_on(id, guest, work.in_current_span());
    }

    /// Goes on with what another process left: a tool that may be run twice runs again, any other task has failed.
    pub(in crate::dispatch) fn take_up(&self) {
        for (id, endpoint, guest, name) in self.tasks.left() {
            let view = self.news.registry.load().view(&endpoint).cloned();
            let Some(named) = view.as_ref().and_then(|view| named_of(view, &name, &guest).ok()) else {
                let text = format!("The server was restarted while `{name}` ran, which is no tool of the guest `{guest}` any more");
                self.tasks.end(&id, tasks::internal(InternalKind::HandlerError, &text));
                continue;
            };
            let annotations = named.tool().and_then(|tool| tool.listed.annotations.as_ref());
            if annotations.is_some_and(|said| said.idempotent == Some(true) || said.read_only == Some(true)) {
                self.begin(&id, guest, None);
            } else {
                let text = format!("The server was restarted while `{name}` ran, and the tool does not say that it may be run again");
                self.tasks.end(&id, tasks::internal(InternalKind::HandlerError, &text));
            }
        }
    }

    /// The next run of a task, on what is served now; `None` if the task is over by now.
    fn run(&self, id: &Arc<str>, running: Option<Running>) -> Option<Run> {
        let record = self.tasks.record(id, None, |record| {
            let arguments = if running.is_some() { String::new() } else { record.work.arguments.clone() };
            let context = record.work.context.clone();
            let (endpoint, work) = (record.owner.endpoint.clone(), &record.work);
            record.task.live().is_some().then(|| (endpoint, work.guest.clone(), work.tool.clone(), context, arguments))
        });
        let (endpoint, guest, tool, context, arguments) = record.flatten()?;
        let Some(view) = self.news.registry.load().view(&endpoint).cloned() else {
            self.end(id, &context, Err(not_found(&tool)));
            return None;
        };
        let (answer, span) = match running {
            Some(running) => (running, Span::current()),
            None => match named_of(&view, &tool, &guest).and_then(|named| self.start(id, named, &context, arguments)) {
                Ok(started) => started,
                Err(failure) => {
                    self.end(id, &context, Err(failure));
                    return None;
                }
            },
        };
        Some(Run { view, tool, context, answer, span })
    }

    fn start(&self, id: &Arc<str>, named: &ViewTool, context: &CallContext, arguments: String) -> Result<(Running, Span), Failure> {
        let own_name = named.tool().ok_or_else(|| guest_gone(&named.guest.name))?.listed.name.clone();
        let version = named.guest.version.clone();
        let allowance = Allowance::of_call(version.limits());
        allowance.become_task(version.limits());
        let seat = Seat::silent(context.clone()).handed(Handover::of_task(&self.tasks, id));
        let span = seat.span(Subject::Tool(&own_name));
        let caller = span.in_scope(|| seat.of(self.news.voice(&named.guest)));
        let running = version.call_tool_within(caller, allowance, own_name, arguments).instrument(span.clone()).boxed();
        Ok((running, span))
    }

    /// Takes in how a run ended.
    async fn conclude(&self, id: &str, view: &View, tool: &str, context: &CallContext, answer: Answer) -> Next {
        let Some(named) = view.tool(tool) else {
            self.end(id, context, Err(not_found(tool)));
            return Next::Done;
        };
        if matches!(answer, Err(guest::Failure::Busy | guest::Failure::TooMany)) {
            return Next::Later;
        }
        match answered(named, tool, answer).await {
            Ok(Answered::Result(result)) => self.end(id, context, Ok(Reply::Tool(result))),
            Ok(Answered::Job(job)) => self.tasks.is_job(id, job),
            Ok(Answered::Asks(required)) => {
                let round = self.tasks.record(id, None, |record| record.work.context.rounds.round).unwrap_or_default();
                let round = round.saturating_add(1);
                let asking = Asking {
                    guest: &named.guest,
                    kind: "tool",
                    name: tool,
                    revision: context.revision,
                    round,
                    rounds_max: self.rounds_max,
                };
                let asked = asking.checked(required).and_then(|mut asked| {
                    asked.fit(context.revision, &context.client_capabilities)?;
                    Ok(asked)
                });
                match asked.map(|asked| self.tasks.ask(id, asked)) {
                    Ok(tasks::Asking::Again) => return Next::Again,
                    Ok(tasks::Asking::Waiting | tasks::Asking::Over) => {}
                    Err(failure) => self.end(id, context, Err(failure)),
                }
            }
            Err(failure) => self.end(id, context, Err(failure)),
        }
        Next::Done
    }

    /// Ends a task as the call would have ended.
    pub(super) fn end(&self, id: &str, context: &CallContext, outcome: Outcome) {
        self.tasks.end(id, Over::of(outcome, context.revision));
    }
}

/// The tool that a task goes on with. It must be the guest's that the task is of: under its name there may be another's by now, which
/// has no business with the arguments and answers.
fn named_of<'a>(view: &'a View, tool: &str, guest: &str) -> Result<&'a ViewTool, Failure> {
    let named = view.tool(tool).ok_or_else(|| not_found(tool))?;
    if *named.guest.name == *guest { Ok(named) } else { Err(guest_gone(guest)) }
}

/// What a guest that is not there (any more) makes of a task.
pub(super) fn guest_gone(guest: &str) -> Failure {
    Failure::InvalidParams(format!("The guest `{guest}`, which works on the task, is not served any more"))
}
