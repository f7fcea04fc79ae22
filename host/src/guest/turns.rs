//! Turns on the threads for long calls: each guest has only a few at a time, so that each gets the same part of the threads.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt as _;
use futures_util::task::AtomicWaker;
use tokio::sync::Semaphore;

/// What a future is after one poll.
enum Polled<T> {
    Ready(T),
    /// It has asked to be polled again: it computes, and only let others have the thread.
    Computes,
    /// It waits for something.
    Waits,
}

/// Notes whether a future wakes itself while it is polled, and passes on what wakes it later.
#[derive(Default)]
struct Bell {
    task: AtomicWaker,
    polling: AtomicBool,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    // In sequentially consistent order with `Bell::polled`: either the poll sees the bell, or the bell the poll's end.
    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl Bell {
    fn polled<T>(&self, task: &Waker, bell: &Waker, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Polled<T> {
        self.task.register(task);
        self.rung.store(false, Ordering::SeqCst);
        self.polling.store(true, Ordering::SeqCst);
        let polled = poll(&mut Context::from_waker(bell));
        self.polling.store(false, Ordering::SeqCst);
        match polled {
            Poll::Ready(output) => Polled::Ready(output),
            Poll::Pending if self.rung.load(Ordering::SeqCst) => Polled::Computes,
            Poll::Pending => Polled::Waits,
        }
    }
}

/// Polls until it is ready, and takes a turn for each poll; None if the turns are no more.
///
/// Calls of a guest that compute wait for their turns in a line of their own, and not in the line at the threads: there,
/// the guest has as many places as it has turns. A call that waits for something has no turn.
pub(crate) async fn run_in_turns<T>(turns: &Semaphore, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut turn = turns.acquire().await.ok()?;
    loop {
        let polled = poll_fn(|cx| Poll::Ready(bell.polled(cx.waker(), &waker, &mut poll))).await;
        match polled {
            Polled::Ready(output) => return Some(output),
            Polled::Computes => {
                // Into the line first, and then the turn goes to who has waited for longest.
                let mut next = pin!(turns.acquire());
                let early = next.as_mut().now_or_never();
                drop(turn);
                // Where nobody is before this call in the guest's line, those of other guests still go first.
                match early.or_else(|| next.as_mut().now_or_never()) {
                    Some(another) => {
                        turn = another.ok()?;
                        let_others().await;
                    }
                    None => turn = next.await.ok()?,
                }
            }
            Polled::Waits => {
                drop(turn);
                poll_fn(|cx| {
                    bell.task.register(cx.waker());
                    if bell.rung.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                turn = turns.acquire().await.ok()?;
            }
        }
    }
}

/// Goes to the end of the line at the threads. The runtime's own way to yield lets dozens of others go first.
async fn let_others() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_call_that_waits_holds_no_turn_and_is_woken() {
        let turns = Arc::new(Semaphore::new(1));
        let outside: Arc<Mutex<Option<Waker>>> = Arc::default();
        let mut call = {
            let (turns, outside) = (Arc::clone(&turns), Arc::clone(&outside));
            Box::pin(async move {
                run_in_turns(&turns, |cx| match outside.lock().unwrap().replace(cx.waker().clone()) {
                    None => Poll::Pending,
                    Some(_) => Poll::Ready("woken"),
                })
                .await
            })
        };
        assert_eq!(call.as_mut().now_or_never(), None);
        assert_eq!(turns.available_permits(), 1);
        assert_eq!(call.as_mut().now_or_never(), None, "it is not polled unless it is woken");
        let waker = outside.lock().unwrap().clone().unwrap();
        waker.wake();
        assert_eq!(call.await, Some("woken"));
        assert_eq!(turns.available_permits(), 1);
    }

    #[tokio::test]
    async fn calls_that_compute_alternate() {
        let turns = Semaphore::new(1);
        let order = Mutex::new(String::new());
        let computing = |name| {
            let (turns, order) = (&turns, &order);
            let mut left = 3;
            async move {
                run_in_turns(turns, |cx| {
                    order.lock().unwrap().push(name);
                    cx.waker().wake_by_ref();
                    left -= 1;
                    if left == 0 { Poll::Ready(()) } else { Poll::Pending }
                })
                .await
            }
        };
        let ended = tokio::join!(computing('a'), computing('b'));
        assert_eq!(ended, (Some(()), Some(())));
        // The second one is in line from the moment when the first one lets it.
        assert_eq!(*order.lock().unwrap(), "aababb");
    }
}
