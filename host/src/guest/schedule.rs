//! Where a call runs: on its caller's task at first, and, when it proves long, on threads of the lowest priority.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::allowance::Allowance;
use super::engine::EngineLimits;
use super::failure::Failure;

/// The weakest claim to a processor: such a thread runs when nobody else wants to.
const LOWEST_PRIORITY: i32 = 19;

/// Runs calls. Short ones never leave the thread that they came from; long ones move, future and all, so that
/// guests that compute use only what the others leave.
pub(crate) struct Schedule {
    /// Present until drop.
    batch: Option<Runtime>,
    batch_calls: Arc<Semaphore>,
    interactive: Duration,
}

/// Why a metered future came back.
enum Turn<T> {
    Done(T),
    /// It is not done, and has used as much processor time as was allowed for this turn.
    Used,
}

impl Schedule {
    pub(crate) fn start(limits: &EngineLimits) -> std::io::Result<Schedule> {
        let batch = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(limits.batch_threads.max(1))
            .thread_name("guest-batch")
            .enable_time()
            .on_thread_start(|| {
                // On Linux this speaks of the calling thread alone. Where it is refused, long calls merely compete.
                if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                    tracing::warn!(%error, "cannot lower the priority of the threads for long calls");
                }
            })
            .build()?;
        Ok(Schedule {
            batch: Some(batch),
            batch_calls: Arc::new(Semaphore::new(limits.batch_calls_max.max(1))),
            interactive: Duration::from_millis(limits.interactive_cpu_ms),
        })
    }

    /// Runs a call to its end, its deadline, or the end of its budget of processor time. Dropping the returned
    /// future drops the call: at once where it waits, at the next tick of the epoch where it computes.
    pub(crate) async fn run<F, T>(&self, call: F, allowance: &Allowance) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        tokio::select! {
            biased;
            outcome = self.drive(call, allowance) => outcome,
            () = allowance.over() => Err(Failure::Deadline),
        }
    }

    async fn drive<F, T>(&self, call: F, allowance: &Allowance) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        let mut call = Metered::new(call);
        if let Turn::Done(outcome) = poll_fn(|cx| call.poll_until(cx, allowance.cpu().min(self.interactive))).await {
            return outcome;
        }
        if call.used >= allowance.cpu() {
            return Err(Failure::CpuBudget);
        }
        let Some(batch) = &self.batch else { return Err(Failure::Busy) };
        // The call rests while it waits for a place; its deadline goes on.
        let Ok(place) = Arc::clone(&self.batch_calls).acquire_owned().await else { return Err(Failure::Busy) };
        let allowance = allowance.clone();
        let moved = async move {
            let _place = place;
            match poll_fn(|cx| call.poll_until(cx, allowance.cpu())).await {
                Turn::Done(outcome) => outcome,
                Turn::Used => Err(Failure::CpuBudget),
            }
        };
        AbortOnDrop(batch.spawn(moved.in_current_span())).await
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        // Waiting for the threads is not allowed where this may be dropped, inside a task.
        if let Some(batch) = self.batch.take() {
            batch.shutdown_background();
        }
    }
}

/// A future with the processor time that polling it has used.
struct Metered<F> {
    future: Pin<Box<F>>,
    used: Duration,
}

impl<F: Future> Metered<F> {
    fn new(future: F) -> Metered<F> {
        Metered { future: Box::pin(future), used: Duration::ZERO }
    }

    /// Polls once; ends the turn when the future is not done and `allowed` is used up.
    fn poll_until(&mut self, cx: &mut Context<'_>, allowed: Duration) -> Poll<Turn<F::Output>> {
        let before = thread_cpu_time();
        let polled = self.future.as_mut().poll(cx);
        self.used += thread_cpu_time().saturating_sub(before);
        match polled {
            Poll::Ready(output) => Poll::Ready(Turn::Done(output)),
            Poll::Pending if self.used >= allowed => Poll::Ready(Turn::Used),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Processor time of the calling thread: time in which it did not run, for whatever reason, does not count.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A moved call that ends with the future that waits for it.
struct AbortOnDrop<T>(JoinHandle<Result<T, Failure>>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|joined| match joined {
            Ok(outcome) => outcome,
            Err(error) => Err(Failure::Trap(format!("the host failed while it ran the call: {error}"))),
        })
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const PLENTY: Duration = Duration::from_secs(60);

    fn schedule(interactive_cpu_ms: u64, batch_calls_max: usize) -> Schedule {
        let limits = EngineLimits { interactive_cpu_ms, batch_calls_max, batch_threads: 1, ..EngineLimits::default() };
        Schedule::start(&limits).unwrap()
    }

    const PLENTY_MS: u64 = 60_000;

    fn soon(cpu_ms: u64) -> Allowance {
        Allowance::new(PLENTY_MS, cpu_ms)
    }

    /// Uses processor time in small turns, as a guest does that yields with the epoch.
    async fn burn(total: Duration) {
        let mut used = Duration::ZERO;
        while used < total {
            let start = thread_cpu_time();
            while thread_cpu_time() - start < Duration::from_millis(1) {}
            used += Duration::from_millis(1);
            tokio::task::yield_now().await;
        }
    }

    fn place() -> (String, i32) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        (name, rustix::process::getpriority_process(None).unwrap())
    }

    #[tokio::test]
    async fn short_calls_stay_and_long_ones_move_to_the_lowest_priority() {
        let schedule = schedule(5, 1);
        let here = place();
        let stayed = schedule.run(async { Ok(place()) }, &soon(PLENTY_MS)).await.unwrap();
        assert_eq!(stayed, here);
        let call = async {
            burn(Duration::from_millis(20)).await;
            Ok(place())
        };
        let (thread, priority) = schedule.run(call, &soon(PLENTY_MS)).await.unwrap();
        assert_eq!((thread.as_str(), priority), ("guest-batch", LOWEST_PRIORITY));
    }

    #[tokio::test]
    async fn budget_holds_inline_and_after_the_move() {
        for (interactive_ms, cpu_ms) in [(50, 10), (5, 20)] {
            let schedule = schedule(interactive_ms, 1);
            let endless = async {
                burn(PLENTY).await;
                Ok(())
            };
            let outcome = schedule.run(endless, &soon(cpu_ms)).await;
            assert_eq!(outcome, Err(Failure::CpuBudget), "{interactive_ms} {cpu_ms}");
        }
    }

    #[tokio::test]
    async fn waiting_costs_no_budget_but_meets_the_deadline() {
        let schedule = schedule(5, 1);
        let outcome = schedule.run(std::future::pending::<Result<(), _>>(), &Allowance::new(20, 0)).await;
        // A budget of nothing is used up by the first poll, before any deadline.
        assert_eq!(outcome, Err(Failure::CpuBudget));
        let outcome = schedule.run(std::future::pending::<Result<(), _>>(), &Allowance::new(20, PLENTY_MS)).await;
        assert_eq!(outcome, Err(Failure::Deadline));
    }

    /// Sets its flag when it is dropped.
    struct Witness(Arc<AtomicBool>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn long_calls_beyond_the_bound_wait_and_dropped_ones_make_room() {
        let schedule = schedule(1, 1);
        let dropped = Arc::new(AtomicBool::new(false));
        let witness = Witness(Arc::clone(&dropped));
        let allowance = soon(2 * PLENTY_MS);
        let first = schedule.run(
            async move {
                let _witness = witness;
                burn(PLENTY).await;
                Ok(())
            },
            &allowance,
        );
        let mut first = Box::pin(first);
        // Let the first one move, then give the second one a deadline that it cannot meet while it waits.
        while schedule.batch_calls.available_permits() > 0 {
            assert!(poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await);
            tokio::task::yield_now().await;
        }
        let long = || async {
            burn(Duration::from_millis(5)).await;
            Ok(place().0)
        };
        let impatient = schedule.run(long(), &Allowance::new(30, PLENTY_MS)).await;
        assert_eq!(impatient, Err(Failure::Deadline));
        drop(first);
        let patient = schedule.run(long(), &soon(PLENTY_MS)).await;
        assert_eq!(patient.as_deref(), Ok("guest-batch"));
        assert!(dropped.load(Ordering::SeqCst));
    }
}
