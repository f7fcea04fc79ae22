//! Calls as tasks: when a call becomes one, and what clients ask about theirs. What works on them is in `tasks/work.rs`.

mod jobs;
mod work;

use super::cursor::Position;
use super::questions::Turn;
use super::seat::Seat;
use super::tools::{Answered, answered, reply};
use super::{Line, Scope};
use crate::guest::{self, Allowance};
use crate::registry::{Tool, ViewTool};
use crate::tasks::{Full, Handover, Owner, Work};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use guesthouse_protocol::model::tasks::{EXTENSION, Live, Over, Stage};
use guesthouse_protocol::model::{InputRequired, Reply, Task, TaskPage, TaskSupport};
use guesthouse_protocol::{CallContext, Era, Failure, Identity, Json, NotFound, Outcome, RETRY_AFTER_S, RpcError};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tracing::Instrument as _;
pub(super) use work::Desk;

const TASKS: &str = "tasks/list";

/// What a tool answered, unchecked.
pub(super) type Answer = Result<guest::bindings::tools::ToolOutcome, guest::Failure>;

/// A call that runs, and can be handed on.
type Running = BoxFuture<'static, Answer>;

/// Whether a call is a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is not, and does not become one.
    Call,
    /// It becomes one if it takes long.
    Later,
    /// It is, to be kept for so long, if the client said so.
    Now { ttl_ms: Option<u64> },
}

impl Scope<'_> {
    /// What a client may have of a tool, and wants.
    pub(super) fn plan(&self, tool: &Tool, name: &str, context: &CallContext) -> Result<Plan, Failure> {
        let support = tool.listed.task_support;
        if context.revision.era() == Era::Modern {
            return match support {
                TaskSupport::Forbidden => Ok(Plan::Call),
                TaskSupport::Optional if follows_tasks(context) => Ok(Plan::Later),
                TaskSupport::Optional => Ok(Plan::Call),
                TaskSupport::Required if follows_tasks(context) => Ok(Plan::Now { ttl_ms: None }),
                TaskSupport::Required => Err(extension_missing()),
            };
        }
        // Where no tool at all runs as a task, what a client says about tasks is to be ignored.
        let served = context.revision.has_task_param() && self.view.profile.capabilities.tasks;
        match (support, context.task.filter(|_| served)) {
            (TaskSupport::Forbidden, Some(_)) => Err(Failure::WrongTaskMode(format!("The tool `{name}` does not run as a task"))),
            (TaskSupport::Required, None) if served => Err(Failure::WrongTaskMode(format!("The tool `{name}` runs only as a task"))),
            (_, None) => Ok(Plan::Call),
            (TaskSupport::Optional | TaskSupport::Required, Some(asked)) => Ok(Plan::Now { ttl_ms: asked.ttl_ms }),
        }
    }

    /// Calls a tool as a task, or as what may become one.
    pub(super) async fn call_as_task(
        &self,
        plan: Plan,
        named: &ViewTool,
        turn: &Turn<'_>,
        mut seat: Seat,
        arguments: String,
        line: &Line,
    ) -> Outcome {
        let (name, guest) = (turn.name(), &named.guest);
        let limits = guest.version.limits();
        let own_name = named.tool().map(|tool| tool.listed.name.clone()).unwrap_or_default();
        // A task outlives the session that it was asked for in, so it is of none from its first run on.
        seat.context_mut().identity.session = None;
        let context = seat.context_mut().clone();
        let (handover, allowance) = (Handover::of_call(), Allowance::of_call(limits));
        let caller = seat.handed(handover.clone()).of(self.voice(guest));
        let mut running: Running =
            guest.version.clone().call_tool_within(caller, allowance.clone(), own_name, arguments.clone()).in_current_span().boxed();
        let mut job = None;
        if plan == Plan::Later
            && let Ok(answer) = timeout(self.dispatcher.task_after, &mut running).await
        {
            match answered(named, name, answer).await {
                Ok(Answered::Job(own)) => job = Some(own),
                answered => return reply(answered, named, turn),
            }
        }
        let work = Work { guest: guest.name.clone(), tool: name.into(), arguments, context, job: job.clone() };
        let desk = &self.dispatcher.desk;
        let ttl_ms = if let Plan::Now { ttl_ms } = plan { ttl_ms } else { None };
        // Half of the guest's places stay for calls that are no tasks.
        let place = job.is_some() || desk.tasks.has_place(&guest.name, (limits.concurrency / 2).max(1));
        let created = if place { desk.tasks.create(self.owner(&work.context), work.clone(), ttl_ms) } else { Err(Full) };
        let created = match created {
            Ok(task) => desk.tasks.saved(&task.id).await.map(|()| task),
            Err(full) => Err(full),
        };
        match (created, job, plan) {
            (Ok(task), job, _) => {
                let id: Arc<str> = task.id.as_str().into();
                if let Some(session) = &line.session {
                    // One that follows too many tasks already has to ask about this one.
                    let _ = session.follow(&task.id);
                }
                if job.is_none() {
                    allowance.become_task(limits);
                    handover.turn(&desk.tasks, &id);
                    desk.begin(&id, guest.name.clone(), Some(running));
                }
                let now = desk.tasks.task(&id, &self.owner(&work.context));
                Ok(Reply::TaskCreated(Box::new(now.unwrap_or(task))))
            }
            (Err(Full), Some(job), _) => {
                self.end_job(guest, work.context, job).await;
                Err(Failure::Busy { retry_after_s: RETRY_AFTER_S })
            }
            // It goes on as a call, for as long as a call may.
            (Err(Full), None, Plan::Later) => reply(answered(named, name, running.await).await, named, turn),
            (Err(Full), None, Plan::Call | Plan::Now { .. }) => Err(Failure::Busy { retry_after_s: RETRY_AFTER_S }),
        }
    }

    /// Whose the tasks are that this caller makes, and may see.
    pub(super) fn owner(&self, context: &CallContext) -> Owner {
        let Identity { principal, tenant, .. } = context.identity.clone();
        Owner { principal, tenant, endpoint: self.endpoint.clone() }
    }

    /// Whether a list of tasks shows a caller its own alone.
    pub(super) fn lists_tasks(&self, context: &CallContext) -> bool {
        context.identity.principal.is_some()
    }

    pub(super) async fn get_task(&self, context: CallContext, id: &str) -> Outcome {
        check_extension(&context)?;
        let owner = self.owner(&context);
        self.refresh_job(&context, id, &owner).await?;
        let tasks = &self.dispatcher.desk.tasks;
        let task = tasks.task(id, &owner).ok_or_else(|| not_found(id))?;
        Ok(Reply::Task(Box::new(tasks.settle(task).await)))
    }

    pub(super) async fn update_task(&self, context: CallContext, id: &str, answers: &Json) -> Outcome {
        check_extension(&context)?;
        let owner = self.owner(&context);
        let answers: HashMap<String, Json> = serde_json::from_str(answers.get()).unwrap_or_default();
        let answers: Vec<_> = answers.into_iter().map(|(key, answer)| (key, Ok(answer))).collect();
        self.take_answers(&context, id, &owner, &answers).await?;
        Ok(Reply::Empty)
    }

    /// Takes in answers; if they were the last that were open, work goes on.
    async fn take_answers(
        &self,
        context: &CallContext,
        id: &str,
        owner: &Owner,
        answers: &[(String, Result<Json, RpcError>)],
    ) -> Result<(), Failure> {
        let desk = &self.dispatcher.desk;
        let answered = desk.tasks.answer(id, owner, answers).ok_or_else(|| not_found(id))?;
        let answered = answered.map_err(|Full| Failure::Busy { retry_after_s: RETRY_AFTER_S })?;
        if answered.own_keys.is_empty() {
            return Ok(());
        }
        let work = desk.tasks.record(id, Some(owner), |record| (record.work.guest.clone(), record.work.job.is_some()));
        match work {
            Some((_, true)) => self.tell_job(context, id, owner, answered.own_keys).await,
            Some((guest, false)) if answered.goes_on => {
                desk.begin(&id.into(), guest, None);
                Ok(())
            }
            Some((_, false)) | None => Ok(()),
        }
    }

    pub(super) async fn cancel_task(&self, context: CallContext, id: &str) -> Outcome {
        check_extension(&context)?;
        let owner = self.owner(&context);
        self.cancel_job(&context, id, &owner).await?;
        let (task, was_over) = self.dispatcher.desk.tasks.cancel(id, &owner).ok_or_else(|| not_found(id))?;
        if was_over && context.revision.era() == Era::Handshake {
            return Err(Failure::InvalidParams("The task cannot be cancelled: it is over already".into()));
        }
        Ok(Reply::TaskCancelled(Box::new(self.dispatcher.desk.tasks.settle(task).await)))
    }

    pub(super) fn list_tasks(&self, context: &CallContext, cursor: Option<&str>) -> Outcome {
        if !self.lists_tasks(context) {
            return Err(Failure::MethodNotFound);
        }
        let after = match cursor.map(|cursor| self.open_cursor(TASKS, cursor)).transpose()? {
            None => 0,
            Some(Position::Offset(position)) => position as u64,
            Some(Position::Guest { .. }) => return Err(Failure::InvalidParams("Invalid cursor: it belongs to another list".into())),
        };
        let len = self.dispatcher.page_len;
        let mut listed = self.dispatcher.desk.tasks.list(&self.owner(context), after, len.saturating_add(1));
        let more = listed.len() > len;
        listed.truncate(len);
        let last = listed.last().filter(|_| more).and_then(|(position, _)| usize::try_from(*position).ok());
        let next_cursor = last.and_then(|last| self.seal_cursor(TASKS, &Position::Offset(last)));
        Ok(Reply::Tasks(TaskPage { tasks: listed.into_iter().map(|(_, task)| task).collect(), next_cursor }))
    }

    /// `tasks/result`: waits for the result. What the task asks meanwhile goes out on this request's stream, and the request
    /// then runs again with the answers.
    pub(super) async fn task_result(&self, context: CallContext, id: &str) -> Outcome {
        let owner = self.owner(&context);
        if context.rounds.round > 0 {
            self.take_answers(&context, id, &owner, &context.rounds.answers).await?;
        }
        let task = self.settled(&context, id, &owner).await?;
        match task.stage() {
            Stage::Live(Live::Waiting(waiting)) => {
                let asked = InputRequired { questions: waiting.open().to_vec(), task: Some(task.id.clone()), ..InputRequired::default() };
                Ok(Reply::InputRequired(Box::new(asked)))
            }
            Stage::Live(Live::Working(_)) => Err(not_found(id)),
            Stage::Over(Over::Completed(finished)) => Ok(Reply::TaskResult(Box::new(finished.clone()), task.id)),
            Stage::Over(Over::Failed(error)) => Err(Failure::TaskFailed(error.clone())),
            Stage::Over(Over::Cancelled) => Err(Failure::InvalidParams("The task was cancelled, and has no result".into())),
        }
    }

    /// Waits until a task needs answers or is over.
    async fn settled(&self, context: &CallContext, id: &str, owner: &Owner) -> Result<Task, Failure> {
        let tasks = &self.dispatcher.desk.tasks;
        loop {
            self.refresh_job(context, id, owner).await?;
            let look = tasks.record(id, Some(owner), |record| (record.work.job.is_some(), record.task.poll_interval_ms));
            let (is_job, poll_interval_ms) = look.ok_or_else(|| not_found(id))?;
            // A guest says how its job is only when it is asked.
            let patience = if is_job { Duration::from_millis(poll_interval_ms) } else { FOREVER };
            match timeout(patience, tasks.settled(id, owner)).await {
                Ok(task) => return task.ok_or_else(|| not_found(id)),
                Err(_) => continue,
            }
        }
    }
}

/// Longer than any task is kept.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Whether the client says that it can follow tasks.
fn follows_tasks(context: &CallContext) -> bool {
    let capabilities: Value = serde_json::from_str(context.client_capabilities.get()).unwrap_or_default();
    capabilities.get("extensions").and_then(|extensions| extensions.get(EXTENSION)).is_some_and(Value::is_object)
}

/// In the modern era, tasks are for those who say with each request that they know them.
pub(super) fn check_extension(context: &CallContext) -> Result<(), Failure> {
    if context.revision.era() == Era::Handshake || follows_tasks(context) { Ok(()) } else { Err(extension_missing()) }
}

fn extension_missing() -> Failure {
    let required = json!({ "extensions": { EXTENSION: {} } });
    serde_json::value::to_raw_value(&required).map_or(Failure::MethodNotFound, Failure::MissingClientCapability)
}

/// There is no such task, or it is another's: nobody can tell which.
fn not_found(id: &str) -> Failure {
    Failure::NotFound { kind: NotFound::Task, name: id.into() }
}
