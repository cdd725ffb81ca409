//! What the classes of a port's scheduler do: [`counted`] turns a router into one that observes its queues.
//!
//! A class is a queue of a port, such as a priority. A router of the same scheme without it is another type, so counting costs
//! nothing unless it is asked for. Counting decides nothing, so results are the same with it.
//!
//! Each step of the scheme is observed from outside: a packet is offered or taken, and packets are dropped meanwhile. A
//! [`ClassOf`] tells the class of each. **Sums over the classes are the port's counters**, without the packets that were in no
//! queue when they were dropped: those lost on a link, and those offered to a link that is down.
//!
//! **Cost** for a watched port: a few additions per packet, and one step per class and slot. **Memory**: 100 bytes per class.

use thalweg_network::PortIndex;

use super::{Classify, Enqueue, Pattern, Plain, Schedule, Store};
use crate::packet::Packet;
use crate::ports::queue_span::QueueSpan;
use crate::ports::tally::Traffic;
use crate::queues::backlog::Backlog;
use crate::queues::port_set::PortSet;
use crate::redirection::Redirector;
use crate::router::context::Context;

/// A class of a port: its queue, and what it did since the last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// The number of the class, as the scheme knows it.
    pub class: u16,
    /// The queue.
    pub queue: Backlog,
    /// Looks at the queue, one per slot.
    pub span: QueueSpan,
    /// Traffic sent.
    pub sent: Traffic,
    /// Packets marked (ECN).
    pub marked: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// The counters of the classes of a router's ports.
pub trait PortClasses {
    /// Counts at a port from now on.
    ///
    /// # Panics
    /// If packets are queued there.
    fn watch(&mut self, port: PortIndex);

    /// Looks at the queues of a watched port.
    fn look(&mut self, port: PortIndex);

    /// Notes looks at empty queues.
    fn skip(&mut self, port: PortIndex, looks: u64);

    /// Appends the classes of a port that have had packets, in order, and starts anew.
    fn take(&mut self, port: PortIndex, into: &mut Vec<ClassCounts>);
}

/// Tells the class of a packet.
pub trait ClassOf<Q>: Send {
    /// What is known before the step in which a packet is offered, taken or dropped.
    type Before: Copy;

    /// Reads it.
    fn before(&self, queues: &Q, port: PortIndex) -> Self::Before;

    /// The class of a packet in the step that began with `before`.
    fn class(&self, packet: &Packet, port: PortIndex, before: Self::Before, queues: &Q) -> usize;
}

/// The class is the queue that this classifier chooses.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<K>(pub K);

impl<Q, K: Classify<()> + Clone> ClassOf<Q> for Fixed<K> {
    type Before = ();

    #[inline]
    fn before(&self, _: &Q, _: PortIndex) {}

    #[inline]
    fn class(&self, packet: &Packet, port: PortIndex, (): (), _: &Q) -> usize {
        self.0.clone().classify(packet, port)
    }
}

/// Queues with counters of the watched ports.
#[derive(Clone, Debug)]
pub struct CountedQueues<Q, O> {
    queues: Q,
    class_of: O,
    ports: Box<[Option<WatchedPort>]>,
}

#[derive(Clone, Debug, Default)]
struct WatchedPort {
    looks: u64,
    /// By class, up to the last one that had a packet.
    classes: Vec<Class>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    counts: ClassCounts,
    /// Whether it has had a packet.
    is_used: bool,
}

/// A router that counts by class.
pub type Counted<R, K, E, S, Q, O> = Pattern<R, K, Observed<E>, Observed<S>, CountedQueues<Q, O>>;

/// Makes a router of `ports` ports count by class.
pub fn counted<R, K, E, S, Q, O>(
    router: Pattern<R, K, E, S, Q>,
    class_of: O,
    ports: usize,
) -> Counted<R, K, E, S, Q, O> {
    let Pattern { route, classify, enqueue, schedule, store, headers: Plain } = router;
    Pattern {
        route,
        classify,
        enqueue: Observed(enqueue),
        schedule: Observed(schedule),
        store: CountedQueues { queues: store, class_of, ports: vec![None; ports].into_boxed_slice() },
        headers: Plain,
    }
}

impl<Q: Store, O: ClassOf<Q>> CountedQueues<Q, O> {
    /// Runs a step of the scheme at a port. It returns the packet that it was about, which `note` counts.
    #[inline]
    fn observe(
        &mut self,
        port: PortIndex,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut Q, &mut Context<'_>) -> Option<Packet>,
        note: impl FnOnce(&mut ClassCounts, &Packet),
    ) -> Option<Packet> {
        let CountedQueues { queues, class_of, ports } = self;
        let Some(watched) = &mut ports[port.index()] else { return step(queues, context) };
        let before = class_of.before(queues, port);
        let (drops, marks) = (context.dropped.len(), context.verdicts[port.index()].marked);
        let packet = step(queues, context);
        if let Some(packet) = &packet {
            let counts = watched.class(class_of.class(packet, port, before, queues));
            note(counts, packet);
            // Schemes mark the packet that the step is about.
            counts.marked += context.verdicts[port.index()].marked - marks;
        }
        for dropped in &context.dropped[drops..] {
            watched.class(class_of.class(&dropped.packet, port, before, queues)).drop(&dropped.packet);
        }
        packet
    }
}

impl ClassCounts {
    fn queue(&mut self, packet: &Packet) {
        self.queue.packets += 1;
        self.queue.bytes += u64::from(packet.length());
    }

    fn send(&mut self, packet: &Packet) {
        self.take_out(packet);
        self.sent += Traffic { packets: 1, bytes: u64::from(packet.length()) };
    }

    fn drop(&mut self, packet: &Packet) {
        self.take_out(packet);
        self.dropped += 1;
    }

    fn take_out(&mut self, packet: &Packet) {
        self.queue.packets -= 1;
        self.queue.bytes -= u64::from(packet.length());
    }
}

impl WatchedPort {
    #[inline]
    fn class(&mut self, class: usize) -> &mut ClassCounts {
        if class >= self.classes.len() {
            self.classes.resize(class + 1, Class::default());
        }
        let Class { counts, is_used } = &mut self.classes[class];
        *is_used = true;
        counts
    }
}

/// A decision of a scheme, observed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<T>(T);

impl<E, Q, O> Enqueue<(), CountedQueues<Q, O>> for Observed<E>
where
    E: Enqueue<(), Q>,
    Q: Store,
    O: ClassOf<Q>,
{
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet,
        port: PortIndex,
        queue: usize,
        store: &mut CountedQueues<Q, O>,
        context: &mut Context<'_>,
    ) {
        let step = |queues: &mut Q, context: &mut Context<'_>| {
            self.0.enqueue(packet, port, queue, queues, context);
            Some(packet)
        };
        store.observe(port, context, step, ClassCounts::queue);
    }
}

impl<S, Q, O> Schedule<(), CountedQueues<Q, O>> for Observed<S>
where
    S: Schedule<(), Q>,
    Q: Store,
    O: ClassOf<Q>,
{
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut CountedQueues<Q, O>,
        context: &mut Context<'_>,
    ) -> Option<Packet> {
        let step = |queues: &mut Q, context: &mut Context<'_>| self.0.schedule(port, queues, context);
        store.observe(port, context, step, ClassCounts::send)
    }
}

impl<Q: Store, O: ClassOf<Q>> Store for CountedQueues<Q, O> {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        self.queues.backlogged()
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        self.queues.backlog(port)
    }

    /// The caller drops the packet.
    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        let CountedQueues { queues, class_of, ports } = self;
        let before = class_of.before(queues, port);
        let packet = queues.take_any(port)?;
        if let Some(watched) = &mut ports[port.index()] {
            watched.class(class_of.class(&packet, port, before, queues)).drop(&packet);
        }
        Some(packet)
    }

    fn redirector(&mut self) -> Option<&mut dyn Redirector> {
        self.queues.redirector()
    }

    fn classes(&mut self) -> Option<&mut dyn PortClasses> {
        Some(self)
    }
}

impl<Q: Store, O: ClassOf<Q>> PortClasses for CountedQueues<Q, O> {
    fn watch(&mut self, port: PortIndex) {
        assert_eq!(self.queues.backlog(port), Backlog::default(), "classes are counted from empty queues on");
        self.ports[port.index()].get_or_insert_default();
    }

    fn look(&mut self, port: PortIndex) {
        let Some(watched) = &mut self.ports[port.index()] else { return };
        watched.looks += 1;
        for Class { counts, .. } in &mut watched.classes {
            counts.span.add(counts.queue);
        }
    }

    fn skip(&mut self, port: PortIndex, looks: u64) {
        if let Some(watched) = &mut self.ports[port.index()] {
            watched.looks += looks;
        }
    }

    fn take(&mut self, port: PortIndex, into: &mut Vec<ClassCounts>) {
        let Some(WatchedPort { looks, classes }) = &mut self.ports[port.index()] else { return };
        let looks = std::mem::take(looks);
        for (class, Class { counts, is_used }) in classes.iter_mut().enumerate() {
            let queue = counts.queue;
            let taken = std::mem::replace(counts, ClassCounts { queue, ..ClassCounts::default() });
            if *is_used {
                let span = QueueSpan { looks, ..taken.span };
                into.push(ClassCounts { class: class as u16, span, ..taken });
            }
        }
    }
}
