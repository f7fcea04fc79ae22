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
use super::turns::run_in_turns;

/// The weakest claim to a processor: such a thread runs when nobody else wants to.
const LOWEST_PRIORITY: i32 = 19;

/// Runs calls. Short ones never leave the thread that they came from; long ones move, future and all, so that
/// guests that compute use only what the others leave.
pub(crate) struct Schedule {
    /// Present until drop.
    batch: Option<Runtime>,
    batch_threads: usize,
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
        let batch_threads = limits.batch_threads.max(1);
        let batch = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(batch_threads)
            .thread_name("guest-batch")
            .enable_time()
            .on_thread_start(|| {
                // On Linux this speaks of the calling thread alone. Where it is refused, long calls merely compete.
                if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                    tracing::warn!(%error, "cannot lower the priority of the threads for long calls");
                }
            })
            .build()?;
        Ok(Schedule { batch: Some(batch), batch_threads, interactive: Duration::from_millis(limits.interactive_cpu_ms) })
    }

    /// The turns of one guest on the threads for long calls. A guest's calls take them in order, so that of the threads'
    /// time each guest gets the same part, however many calls it has: there are only as many turns as threads.
    pub(crate) fn turns(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.batch_threads))
    }

    /// Runs a call to its end, its deadline, or the end of its budget of processor time. Dropping the returned
    /// future drops the call: at once where it waits, at the next tick of the epoch where it computes.
    pub(crate) async fn run<F, T>(&self, call: F, allowance: &Allowance, turns: &Arc<Semaphore>) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        tokio::select! {
            biased;
            outcome = self.drive(call, allowance, turns) => outcome,
            () = allowance.over() => Err(Failure::Deadline),
        }
    }

    async fn drive<F, T>(&self, call: F, allowance: &Allowance, turns: &Arc<Semaphore>) -> Result<T, Failure>
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
        let (allowance, turns) = (allowance.clone(), Arc::clone(turns));
        let moved = async move {
            match run_in_turns(&turns, |cx| call.poll_until(cx, allowance.cpu())).await {
                Some(Turn::Done(outcome)) => outcome,
                Some(Turn::Used) => Err(Failure::CpuBudget),
                None => Err(Failure::Busy),
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
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    const PLENTY: Duration = Duration::from_secs(60);

    /// A schedule with one thread for long calls.
    fn schedule(interactive_cpu_ms: u64) -> Schedule {
        let limits = EngineLimits { interactive_cpu_ms, batch_threads: 1, ..EngineLimits::default() };
        Schedule::start(&limits).unwrap()
    }

    async fn run<T: Send + 'static>(
        schedule: &Schedule,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
        allowance: &Allowance,
    ) -> Result<T, Failure> {
        schedule.run(call, allowance, &schedule.turns()).await
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
            // As wasmtime yields: back into the line at once.
            let mut yielded = false;
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    fn place() -> (String, i32) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        (name, rustix::process::getpriority_process(None).unwrap())
    }

    #[tokio::test]
    async fn short_calls_stay_and_long_ones_move_to_the_lowest_priority() {
        let schedule = schedule(5);
        let here = place();
        let stayed = run(&schedule, async { Ok(place()) }, &soon(PLENTY_MS)).await.unwrap();
        assert_eq!(stayed, here);
        let call = async {
            burn(Duration::from_millis(20)).await;
            Ok(place())
        };
        let (thread, priority) = run(&schedule, call, &soon(PLENTY_MS)).await.unwrap();
        assert_eq!((thread.as_str(), priority), ("guest-batch", LOWEST_PRIORITY));
    }

    #[tokio::test]
    async fn budget_holds_inline_and_after_the_move() {
        for (interactive_ms, cpu_ms) in [(50, 10), (5, 20)] {
            let schedule = schedule(interactive_ms);
            let endless = async {
                burn(PLENTY).await;
                Ok(())
            };
            let outcome = run(&schedule, endless, &soon(cpu_ms)).await;
            assert_eq!(outcome, Err(Failure::CpuBudget), "{interactive_ms} {cpu_ms}");
        }
    }

    #[tokio::test]
    async fn waiting_costs_no_budget_but_meets_the_deadline() {
        let schedule = schedule(5);
        let outcome = run(&schedule, std::future::pending::<Result<(), _>>(), &Allowance::new(20, 0)).await;
        // A budget of nothing is used up by the first poll, before any deadline.
        assert_eq!(outcome, Err(Failure::CpuBudget));
        let outcome = run(&schedule, std::future::pending::<Result<(), _>>(), &Allowance::new(20, PLENTY_MS)).await;
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
    async fn a_dropped_call_ends_on_its_thread_too() {
        let schedule = schedule(1);
        let dropped = Arc::new(AtomicBool::new(false));
        let witness = Witness(Arc::clone(&dropped));
        let turns = schedule.turns();
        let endless = async move {
            let _witness = witness;
            burn(PLENTY).await;
            Ok(())
        };
        let allowance = soon(2 * PLENTY_MS);
        let mut endless = Box::pin(schedule.run(endless, &allowance, &turns));
        // It has moved when its turn is taken.
        while turns.available_permits() > 0 {
            assert!(poll_fn(|cx| Poll::Ready(endless.as_mut().poll(cx).is_pending())).await);
            tokio::task::yield_now().await;
        }
        drop(endless);
        let start = std::time::Instant::now();
        while !dropped.load(Ordering::SeqCst) {
            assert!(start.elapsed() < PLENTY);
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.available_permits(), 1);
    }

    #[tokio::test]
    async fn each_guest_has_the_same_part_of_the_threads_for_long_calls() {
        let schedule = schedule(1);
        let (busy, other) = (schedule.turns(), schedule.turns());
        let polls = Arc::new(AtomicUsize::new(0));
        let allowance = soon(2 * PLENTY_MS);
        let mut loops = Vec::new();
        for _ in 0..64 {
            let polls = Arc::clone(&polls);
            let endless = async move {
                loop {
                    burn(Duration::from_millis(1)).await;
                    polls.fetch_add(1, Ordering::SeqCst);
                }
            };
            loops.push(Box::pin(schedule.run::<_, ()>(endless, &allowance, &busy)));
        }
        let mut all = Box::pin(futures_util::future::join_all(loops));
        // Every loop has moved once each has been polled for longer than it may stay here.
        while polls.load(Ordering::SeqCst) < 200 {
            assert!(poll_fn(|cx| Poll::Ready(all.as_mut().poll(cx).is_pending())).await);
            tokio::task::yield_now().await;
        }
        let counted = Arc::clone(&polls);
        let call = async move {
            let before = counted.load(Ordering::SeqCst);
            burn(Duration::from_millis(50)).await;
            Ok(counted.load(Ordering::SeqCst) - before)
        };
        let beside = schedule.run(call, &soon(PLENTY_MS), &other).await.unwrap();
        // Turn by turn with one of the loops, where it would have waited for 64 of them each time.
        assert!(beside < 500, "{beside} turns of the other guest during 50 of this one");
    }
}
