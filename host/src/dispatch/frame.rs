//! Notifications on their way to a client, and how much may wait for a slow one.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// A notification on its way to the client, ahead of the response of the call that sent it.
pub struct Frame {
    /// One JSON-RPC message, unframed.
    pub message: Bytes,
    /// Told when the message is on the wire; dropped if it never gets there. A message that nobody waits for any more is
    /// not sent. None where nobody waits in the first place: such a message is always sent.
    pub written: Option<oneshot::Sender<()>>,
    /// The room that it takes up, where that is bounded; free once the frame is gone.
    pub share: Option<Share>,
}

impl Frame {
    /// Whether the message is still to be sent.
    pub fn is_wanted(&self) -> bool {
        self.written.as_ref().is_none_or(|written| !written.is_closed())
    }

    /// Tells whoever waits that the message is on the wire.
    pub fn written(self) {
        if let Some(written) = self.written {
            // Nobody waits any more if the call ended meanwhile.
            let _ = written.send(());
        }
    }
}

/// What a message takes of a [`Backlog`]; given back when dropped.
pub type Share = OwnedSemaphorePermit;

/// How much may wait for one client, in bytes.
#[derive(Clone)]
pub struct Backlog {
    room: Arc<Semaphore>,
    bytes_max: u32,
}

impl Backlog {
    /// Room for that many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        let permits = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(permits)), bytes_max }
    }

    /// What a message takes. One that is larger than all the room takes all of it, and so waits alone.
    fn share_bytes(&self, message: &Bytes) -> u32 {
        u32::try_from(message.len()).unwrap_or(u32::MAX).min(self.bytes_max)
    }

    /// Room for a message, if there is any now.
    pub fn try_take(&self, message: &Bytes) -> Option<Share> {
        self.room.clone().try_acquire_many_owned(self.share_bytes(message)).ok()
    }

    /// Waits until there is room for a message.
    pub async fn take(&self, message: &Bytes) -> Option<Share> {
        self.room.clone().acquire_many_owned(self.share_bytes(message)).await.ok()
    }
}

/// Where a call's notifications go. Bounded: a slow client slows its own call down, and nothing else.
#[derive(Clone)]
pub struct FrameSender {
    queue: mpsc::Sender<Frame>,
    /// Where the frames of several calls wait for one client. A call itself has no more than one on its way.
    backlog: Option<Backlog>,
}

impl From<mpsc::Sender<Frame>> for FrameSender {
    fn from(queue: mpsc::Sender<Frame>) -> Self {
        Self { queue, backlog: None }
    }
}

/// A place that is kept for one frame.
pub struct Place<'a> {
    slot: mpsc::Permit<'a, Frame>,
    share: Option<Share>,
}

impl FrameSender {
    /// A sender whose frames, together with those of its clones, take up no more than `backlog`.
    pub fn within(queue: mpsc::Sender<Frame>, backlog: Backlog) -> Self {
        Self { queue, backlog: Some(backlog) }
    }

    /// Waits for a place for the message. Errs if the client is gone.
    pub async fn place(&self, message: &Bytes) -> Result<Place<'_>, ()> {
        let share = match &self.backlog {
            Some(backlog) => tokio::select! {
                biased;
                () = self.queue.closed() => return Err(()),
                share = backlog.take(message) => share,
            },
            None => None,
        };
        let slot = self.queue.reserve().await.map_err(|_| ())?;
        Ok(Place { slot, share })
    }

    /// Sends a message and waits until it is written. Errs if the client is gone.
    pub async fn deliver(&self, message: Bytes) -> Result<(), ()> {
        let place = self.place(&message).await?;
        place.send(message).await.map_err(|_| ())
    }
}

impl Place<'_> {
    /// Sends the message; what is returned tells when it is on the wire.
    pub fn send(self, message: Bytes) -> oneshot::Receiver<()> {
        let (written, on_the_wire) = oneshot::channel();
        self.slot.send(Frame { message, written: Some(written), share: self.share });
        on_the_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn frames_wait_for_room_in_bytes() {
        let (queue, mut waiting) = mpsc::channel(8);
        let sender = FrameSender::within(queue, Backlog::new(10));
        let place = |len: usize| sender.place(&Bytes::from(vec![b'x'; len])).now_or_never();
        drop(place(6).unwrap().unwrap().send("123456".into()));
        assert!(place(5).is_none(), "there is room for 4 bytes more");
        drop(place(4).unwrap().unwrap().send("1234".into()));
        drop(waiting.try_recv().unwrap());
        assert!(place(100).is_none(), "a frame that is larger than all the room waits alone");
        drop(waiting.try_recv().unwrap());
        drop(place(100).unwrap().unwrap().send("all".into()));
        assert!(place(1).is_none());
        drop(waiting);
        assert!(place(1).unwrap().is_err(), "the client is gone");
    }
}
