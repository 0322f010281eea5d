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
