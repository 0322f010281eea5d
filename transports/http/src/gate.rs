//! Back-pressure for any driver: it goes on only while the task's log has room.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::ready,
};

use capsule_api::Events;

/// Runs `work`, but never before `events` are ready again. So a fast provider cannot outrun a slow reader, although a driver hands over
/// its items without waiting.
pub(crate) async fn gated<T>(events: &Events, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut room: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    poll_fn(|context| {
        let waiting = room.get_or_insert_with(|| {
            let events = events.clone();
            Box::pin(async move { events.ready().await })
        });
        ready!(waiting.as_mut().poll(context));
        room = None;
        work.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use capsule_transport_kit::Recorder;
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_driver_waits_while_the_log_has_no_room() {
        let log = std::sync::Arc::new(Recorder::new());
        let events = Events::new(log.clone());
        log.stall(true);
        let mut polled = 0;
        let mut work = Box::pin(gated(
            &events,
            poll_fn(|_| {
                polled += 1;
                std::task::Poll::Ready(())
            }),
        ));
        assert_eq!(work.as_mut().now_or_never(), None);
        log.stall(false);
        work.await;
        assert_eq!(polled, 1);
    }
}
