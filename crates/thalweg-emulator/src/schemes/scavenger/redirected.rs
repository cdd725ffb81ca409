//! The flows that a router redirects, with counters.

use crate::packet::Packet;
use crate::redirection::{FlowDirection, MAX_REDIRECTED, RedirectError, Redirected};
use crate::slot::Slot;
use crate::ticks::Ticks;

/// The redirected flows of a router, sorted by [`Packet::who`].
///
/// **Cost**: without redirected flows, a comparison per packet. Otherwise a binary search.
#[derive(Clone, Debug, Default)]
pub(super) struct RedirectedFlows(Vec<(u64, Redirected)>);

impl RedirectedFlows {
    /// Whether the packet belongs to a redirected flow. Then counts it. `now` is the slot that processes it.
    #[inline(always)]
    pub(super) fn count(&mut self, packet: &Packet, now: Slot) -> bool {
        !self.0.is_empty() && self.find_and_count(packet, now)
    }

    #[inline(never)]
    fn find_and_count(&mut self, packet: &Packet, now: Slot) -> bool {
        let Ok(index) = self.find(packet.who()) else { return false };
        let Redirected { traffic, first } = &mut self.0[index].1;
        traffic.packets += 1;
        traffic.bytes += u64::from(packet.length());
        first.get_or_insert(Ticks::start_of(now).before(packet.lag()));
        true
    }

    /// The index of a flow, or else the index at which it would be.
    fn find(&self, who: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&who, |(who, _)| *who)
    }

    /// See [`Redirector::redirect`](crate::redirection::Redirector::redirect).
    pub(super) fn insert(&mut self, flow: FlowDirection) -> Result<(), RedirectError> {
        match self.find(flow.who()) {
            Ok(_) => Ok(()),
            Err(_) if self.0.len() >= MAX_REDIRECTED => Err(RedirectError::Full),
            Err(index) => {
                self.0.insert(index, (flow.who(), Redirected::default()));
                Ok(())
            }
        }
    }

    /// See [`Redirector::release`](crate::redirection::Redirector::release).
    pub(super) fn remove(&mut self, flow: FlowDirection) {
        if let Ok(index) = self.find(flow.who()) {
            self.0.remove(index);
        }
    }

    /// See [`Redirector::redirected`](crate::redirection::Redirector::redirected).
    pub(super) fn get(&self, flow: FlowDirection) -> Option<Redirected> {
        self.find(flow.who()).ok().map(|index| self.0[index].1)
    }
}
