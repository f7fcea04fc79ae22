//! How much time a running call has: by the clock and on the processor. It can be given more while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::limits::CallLimits;

/// What one call may use of time. Clones speak of the same call.
#[derive(Clone, Debug)]
pub struct Allowance(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Since `start`. Only ever becomes more.
    wall_ms: AtomicU64,
    /// Only ever becomes more.
    cpu_ms: AtomicU64,
}

impl Allowance {
    /// What a call has that begins now.
    pub fn of_call(limits: &CallLimits) -> Allowance {
        Allowance::new(limits.wall_ms, limits.cpu_ms)
    }

    /// From `start` on, so much.
    pub(crate) fn new(wall_ms: u64, cpu_ms: u64) -> Allowance {
        Allowance(Arc::new(Inner { start: Instant::now(), wall_ms: AtomicU64::new(wall_ms), cpu_ms: AtomicU64::new(cpu_ms) }))
    }

    /// The call goes on as a task: it has a task's time, counted from its start, and processor time in proportion.
    pub fn become_task(&self, limits: &CallLimits) {
        self.0.wall_ms.fetch_max(limits.task_wall_ms, Ordering::Relaxed);
        self.0.cpu_ms.fetch_max(limits.task_cpu_ms(), Ordering::Relaxed);
    }

    /// When the call has to be over, as things stand.
    pub(crate) fn deadline(&self) -> Instant {
        let wall = Duration::from_millis(self.0.wall_ms.load(Ordering::Relaxed));
        // A time that no clock shows is as good as one far away.
        self.0.start.checked_add(wall).unwrap_or_else(|| self.0.start + FAR)
    }

    /// Resolves when the time by the clock is over.
    pub(crate) async fn over(&self) {
        while Instant::now() < self.deadline() {
            sleep_until(self.deadline()).await;
        }
    }

    /// How much processor time the call may use in all, as things stand.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_millis(self.0.cpu_ms.load(Ordering::Relaxed))
    }
}

/// A century or so.
const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_becomes_a_task_has_the_time_of_one_from_its_start() {
        let limits = CallLimits { wall_ms: 1_000, cpu_ms: 100, task_wall_ms: 60_000, ..CallLimits::default() };
        let call = Allowance::of_call(&limits);
        let before = call.deadline();
        call.clone().become_task(&limits);
        assert_eq!(call.deadline() - before, Duration::from_secs(59));
        assert_eq!(call.cpu(), Duration::from_secs(6));
    }

    #[tokio::test]
    async fn time_that_is_given_can_be_waited_for_again() {
        async fn is_over(call: &Allowance) -> bool {
            let mut over = Box::pin(call.over());
            std::future::poll_fn(|context| std::task::Poll::Ready(over.as_mut().poll(context).is_ready())).await
        }
        let limits = CallLimits { task_wall_ms: 3_600_000, ..CallLimits::default() };
        let spent = Allowance::new(0, 1);
        assert!(is_over(&spent).await);
        spent.become_task(&limits);
        assert!(!is_over(&spent).await);
    }

    #[test]
    fn time_is_only_ever_given() {
        let limits = CallLimits { wall_ms: 1_000, cpu_ms: 100, task_wall_ms: 10, ..CallLimits::default() };
        let call = Allowance::of_call(&limits);
        let deadline = call.deadline();
        call.become_task(&limits);
        assert_eq!((call.deadline(), call.cpu()), (deadline, Duration::from_millis(100)));
        assert!(Allowance::new(u64::MAX, 1).deadline() > deadline);
    }
}
