//! Jobs that guests run elsewhere and report on through `tasks`: the host keeps the list, and asks the guest.

use super::work::guest_gone;
use super::{extension_missing, not_found};
use crate::convert;
use crate::dispatch::seat::Seat;
use crate::dispatch::tools::checked;
use crate::dispatch::trace::Subject;
use crate::dispatch::{Scope, bad_output, failed};
use crate::guest;
use crate::guest::bindings::tasks as wit;
use crate::registry::{Loaded, ViewTool};
use crate::tasks::{Owner, Report, ReportedState};
use guesthouse_protocol::model::tasks::Over;
use guesthouse_protocol::model::{InputRequired, Reply, Rounds, TaskSupport};
use guesthouse_protocol::{CallContext, Failure, RpcError};
use std::sync::Arc;
use tracing::{Instrument as _, Span};

/// A job of a task that is not over.
struct Job {
    guest: Arc<str>,
    tool: String,
    own: String,
    rounds: Rounds,
    /// Of the request that made the task.
    context: CallContext,
}

impl Scope<'_> {
    /// The job behind a task, if there is one and something will still happen to it.
    fn job(&self, id: &str, owner: &Owner) -> Result<Option<Job>, Failure> {
        let found = self.dispatcher.desk.tasks.record(id, Some(owner), |record| {
            let work = &record.work;
            let own = work.job.clone().filter(|_| record.task.live().is_some());
            own.map(|own| Job {
                guest: work.guest.clone(),
                tool: work.tool.clone(),
                own,
                rounds: work.context.rounds.clone(),
                context: work.context.clone(),
            })
        });
        found.ok_or_else(|| not_found(id))
    }

    fn guest_of(&self, job: &Job) -> Result<&Arc<Loaded>, Failure> {
        self.view.guests().iter().find(|guest| guest.name == job.guest).ok_or_else(|| guest_gone(&job.guest))
    }

    /// A seat for a callback about a job: whoever asks now, with the answers so far.
    fn seat_about(&self, context: &CallContext, job: &Job, guest: &Arc<Loaded>) -> (guest::Caller, Span) {
        self.seated(Seat::silent(CallContext { rounds: job.rounds.clone(), ..context.clone() }), &job.own, guest)
    }

    fn seated(&self, seat: Seat, job: &str, guest: &Arc<Loaded>) -> (guest::Caller, Span) {
        let span = seat.span(Subject::Task(job));
        (span.in_scope(|| seat.of(self.voice(guest))), span)
    }

    /// Asks the guest how a job is, if the task is one.
    pub(super) async fn refresh_job(&self, context: &CallContext, id: &str, owner: &Owner) -> Result<(), Failure> {
        let Some(job) = self.job(id, owner)? else { return Ok(()) };
        let guest = self.guest_of(&job)?;
        let (caller, span) = self.seat_about(context, &job, guest);
        let asked = async { guest.version.get_task(caller, job.own.clone()).await.map_err(|failure| failed(guest, "task", id, failure)) };
        let task = asked.instrument(span).await?;
        let named = self.view.tool(&job.tool).ok_or_else(|| guest_gone(&job.guest))?;
        self.dispatcher.desk.tasks.report(id, report(named, &job, task).await?);
        Ok(())
    }

    /// Tells the guest that questions of its job are answered, if the task is one.
    pub(super) async fn tell_job(&self, context: &CallContext, id: &str, owner: &Owner, keys: Vec<String>) -> Result<(), Failure> {
        let Some(job) = self.job(id, owner)? else { return Ok(()) };
        let guest = self.guest_of(&job)?;
        let (caller, span) = self.seat_about(context, &job, guest);
        let told = async { guest.version.update_task(caller, job.own, keys).await.map_err(|failure| failed(guest, "task", id, failure)) };
        told.instrument(span).await
    }

    /// Tells the guest that its job is cancelled, if the task is one.
    pub(super) async fn cancel_job(&self, context: &CallContext, id: &str, owner: &Owner) -> Result<(), Failure> {
        let Some(job) = self.job(id, owner)? else { return Ok(()) };
        let guest = self.guest_of(&job)?;
        let (caller, span) = self.seat_about(context, &job, guest);
        let told = async { guest.version.cancel_task(caller, job.own).await.map_err(|failure| failed(guest, "task", id, failure)) };
        told.instrument(span).await
    }

    /// Ends a job that nobody will ask about.
    pub(super) async fn end_job(&self, guest: &Arc<Loaded>, context: CallContext, job: String) {
        let (caller, span) = self.seated(Seat::silent(context), &job, guest);
        if let Err(failure) = guest.version.cancel_task(caller, job).instrument(span).await {
            guest.version.report(&format!("a job that no client can follow cannot be cancelled: {failure}"));
        }
    }

    /// A tool answered with a job where the client cannot follow one, or the tool must not have one.
    pub(in crate::dispatch) async fn refuse_job(&self, named: &ViewTool, name: &str, context: CallContext, job: String) -> Failure {
        let revision = context.revision;
        self.end_job(&named.guest, context, job).await;
        if named.listed.task_support == TaskSupport::Forbidden {
            return bad_output(&named.guest, "tool", name, "it answered with a task, and says that it does not run as one");
        }
        if revision.has_task_param() {
            return Failure::WrongTaskMode(format!("The tool `{name}` runs only as a task"));
        }
        extension_missing()
    }
}

/// What a guest says of its job, checked.
async fn report(named: &ViewTool, job: &Job, task: wit::Task) -> Result<Report, Failure> {
    let guest = &named.guest;
    let revision = job.context.revision;
    let bad = |problem: String| bad_output(guest, "task", &job.own, &problem);
    let state = match task.status {
        wit::TaskStatus::Working => ReportedState::Working,
        wit::TaskStatus::InputRequired(asked) => {
            let questions = convert::questions(asked).map_err(|error| bad(error.to_string()))?;
            let mut asked = InputRequired { questions, ..InputRequired::default() };
            asked.fit(revision, &job.context.client_capabilities)?;
            ReportedState::Asks(asked.questions)
        }
        wit::TaskStatus::Completed(result) => {
            let tool = named.tool().ok_or_else(|| guest_gone(&job.guest))?;
            let result = checked(named, tool, &job.tool, result).await;
            ReportedState::Over(Over::of(result.map(Reply::Tool), revision))
        }
        wit::TaskStatus::Failed(error) => {
            let data = error.data.map(|data| convert::json(data, "failed.data")).transpose().map_err(|error| bad(error.to_string()))?;
            let error = RpcError { code: error.code, message: error.message, data };
            ReportedState::Over(Over::of(Err(Failure::Rpc(error)), revision))
        }
        wit::TaskStatus::Cancelled => ReportedState::Over(Over::Cancelled),
    };
    Ok(Report { state, message: task.message, poll_interval_ms: task.poll_interval_ms })
}
