//! Whether a stream already waits for a point.

use super::{Exec, Point, StreamId};
use std::collections::BTreeMap;

impl Exec {
    /// Whether all that will be queued on a stream runs after a point because of what is queued there
    /// now: it is the stream's own, or something in the queue waits for it, through other streams too.
    pub fn is_behind(&self, stream: StreamId, point: Point) -> bool {
        let number = u64::MAX;
        let mut todo = vec![Point { stream, number }];
        // How far each stream was looked through.
        let mut seen: BTreeMap<StreamId, u64> = BTreeMap::new();
        while let Some(at) = todo.pop() {
            if at.stream == point.stream && at.number >= point.number {
                return true;
            }
            let Some(stream) = self.streams.get(&at.stream) else {
                continue;
            };
            let (first, last) = (stream.completed + 1, at.number.min(stream.queued));
            let from = seen
                .get(&at.stream)
                .map_or(first, |seen| (seen + 1).max(first));
            if from > last {
                continue;
            }
            seen.insert(at.stream, last);
            let (skipped, count) = (from - first, last + 1 - from);
            let waiting = stream.queue.iter().skip(skipped as usize);
            for operation in waiting.take(count as usize) {
                todo.extend(&operation.after);
            }
        }
        false
    }
}
