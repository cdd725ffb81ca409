//! PIE, the proportional integral controller enhanced (RFC 8033): drops arrivals with a probability that a controller
//! adapts until the queueing delay equals the target.
//!
//! Every `update` the probability changes by
//!
//! > step = alpha (delay - target) + beta (delay - old delay),
//!
//! scaled down while the probability is small (section 4.2). The delay is that of the packet sent last, by its
//! timestamp, or zero if the queue is empty. Timestamps are one of the RFC's two methods. The other one estimates the
//! delay from the departure rate; the emulator knows it exactly.
//!
//! Of the options of section 5, ECN (5.1) and the cap on a single step (5.5) are implemented; switching on and off
//! (5.3) and de-randomisation (5.4) are not. The RFC never drops at a queue of less than two mean packet
//! sizes; here that is two packets. Updates that fall between two packets are made at the next one, since nothing happens to the queue in
//! between. The result is the same, and an idle port costs nothing.

use thalweg_network::PortIndex;
use thalweg_wire::{BitRate, Nanos};

use super::error::{SchemeError, Settings};
use super::fifos_with::FifosWith;
use super::stamped::Stamped;
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::router::context::Context;
use crate::router::{Enqueue, OneQueue, Pattern, Plain, RouterPorts, Schedule};
use crate::slot::Slot;

/// Scale of a step while the drop probability is below a bound (RFC 8033, section 4.2).
const AUTO_TUNING: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2_048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

/// The largest step up, from a drop probability of 0.1 on (RFC 8033, section 5.5).
const STEP_CAP: f64 = 0.02;

/// Factor of the drop probability in an update without congestion (RFC 8033, section 4.2).
const DECAY: f64 = 0.98;

/// Nothing is dropped while the delay was below half the target and the drop probability is below this value (RFC 8033,
/// section 4.1).
const SAFEGUARD: f64 = 0.2;

/// The rate in bits per second above which settings depend on the link's rate, see [`PieConfig::for_rate`].
const WAN_RATE: f64 = 10e9 / 150.0;

/// The queue length in packets up to which nothing is dropped (RFC 8033, section 4.1: two of mean size).
const MIN_QUEUE_PACKETS: u32 = 2;

/// The drop probability of one queue and what it derives from (RFC 8033, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieState {
    /// `drop_prob_` of the RFC.
    pub drop_probability: f64,
    /// The delay of the packet sent last, in slots.
    pub delay: u64,
    /// The delay at the last update, in seconds.
    pub delay_before: f64,
    /// Slots without drops that remain for a burst.
    pub burst_allowance: u64,
    next_update: Slot,
}

/// Updates drop probabilities (RFC 8033, section 4.2). The settings, partly in slots.
#[derive(Clone, Copy, Debug)]
pub struct PieController {
    config: PieConfig,
    slot_seconds: f64,
    target_seconds: f64,
    update_slots: u64,
    burst_slots: u64,
}

impl PieController {
    /// Converts the settings for ports of this ports.
    pub fn new(ports: RouterPorts<'_>, config: &PieConfig) -> Self {
        PieController {
            config: *config,
            slot_seconds: ports.clock.seconds(),
            target_seconds: config.target.as_secs_f64(),
            update_slots: ports.clock.slots_in(config.update).max(1),
            burst_slots: ports.clock.slots_in(config.max_burst),
        }
    }

    /// The state of an empty queue.
    pub fn begin(&self) -> PieState {
        PieState {
            drop_probability: 0.0,
            delay: 0,
            delay_before: 0.0,
            burst_allowance: self.burst_slots,
            next_update: Slot(self.update_slots),
        }
    }

    /// Makes one update of the drop probability.
    pub fn update(&self, state: &mut PieState) {
        let PieConfig { alpha, beta, .. } = self.config;
        let delay = state.delay as f64 * self.slot_seconds;
        let before = state.delay_before;
        let probability = state.drop_probability;
        let scale =
            AUTO_TUNING.iter().find(|(bound, _)| probability < *bound).map_or(1.0, |(_, scale)| *scale);
        let mut step = (alpha * (delay - self.target_seconds) + beta * (delay - before)) * scale;
        if probability >= 0.1 {
            step = step.min(STEP_CAP);
        }
        let is_quiet = delay < self.target_seconds / 2.0 && before < self.target_seconds / 2.0;
        let kept = if is_quiet { DECAY } else { 1.0 };
        state.drop_probability = ((probability + step) * kept).clamp(0.0, 1.0);
        state.delay_before = delay;
        state.burst_allowance = if is_quiet && state.drop_probability == 0.0 {
            self.burst_slots
        } else {
            state.burst_allowance.saturating_sub(self.update_slots)
        };
    }

    /// Makes all updates that are due.
    #[inline]
    fn catch_up(&self, state: &mut PieState, now: Slot) {
        while now >= state.next_update {
            let before = *state;
            self.update(state);
            if *state == before {
                // More updates would change nothing.
                let missed = (now.0 - state.next_update.0) / self.update_slots;
                state.next_update = state.next_update + missed * self.update_slots;
            }
            state.next_update = state.next_update + self.update_slots;
        }
    }

    /// Whether an arrival that finds `waiting` packets is dropped or marked.
    #[inline]
    fn should_drop_or_mark(&self, state: &PieState, waiting: u32, context: &mut Context<'_>) -> bool {
        let probability = state.drop_probability;
        let is_short = state.delay_before < self.target_seconds / 2.0 && probability < SAFEGUARD;
        state.burst_allowance == 0
            && !is_short
            && waiting > MIN_QUEUE_PACKETS
            && context.chance() < probability
    }
}

/// The queues of PIE.
pub type PieStore<C> = FifosWith<Stamped<C>, PieState>;

/// Drops or marks early, as the controller decides.
#[derive(Clone, Copy, Debug)]
pub struct DropByDelay(pub PieController);

impl<C: Copy + Default> Enqueue<C, PieStore<C>> for DropByDelay {
    #[inline]
    fn enqueue(
        &mut self,
        mut packet: Packet<C>,
        port: PortIndex,
        _queue: usize,
        store: &mut PieStore<C>,
        context: &mut Context<'_>,
    ) {
        let waiting = store.fifos.packets(port);
        let state = &mut store.states[port.index()];
        if waiting == 0 {
            // The queue is empty, and has been since the first missed update.
            state.delay = 0;
        }
        self.0.catch_up(state, context.now);
        if waiting == store.fifos.capacity() {
            return context.drop(packet, port, Reason::Full);
        }
        if self.0.should_drop_or_mark(state, waiting, context) {
            let PieConfig { ecn, ecn_threshold, .. } = self.0.config;
            let may_mark = ecn && state.drop_probability <= ecn_threshold;
            if !(may_mark && context.try_mark(&mut packet, port)) {
                return context.drop(packet, port, Reason::Early);
            }
        }
        let _room = store.fifos.push(port, Stamped { packet, at: context.now });
    }
}

/// Sends in order, and measures the delay.
#[derive(Clone, Copy, Debug)]
pub struct FifoWithDelay(pub PieController);

impl<C: Copy + Default> Schedule<C, PieStore<C>> for FifoWithDelay {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut PieStore<C>,
        context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let state = &mut store.states[port.index()];
        self.0.catch_up(state, context.now);
        let stamped = store.fifos.pop(port)?;
        state.delay = stamped.sojourn(context.now);
        Some(stamped.packet)
    }
}

/// Settings of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// Target queueing delay: `QDELAY_REF`. 15 ms (RFC 8033, section 4.2).
    pub target: Nanos,
    /// Time between updates: `T_UPDATE`. 15 ms (RFC 8033, section 4.2).
    pub update: Nanos,
    /// Gain on the distance from the target, per second. 0.125 (RFC 8033, section 4.2).
    pub alpha: f64,
    /// Gain on the change of the delay, per second. 1.25 (RFC 8033, section 4.2).
    pub beta: f64,
    /// The length of a burst that passes without drops: `MAX_BURST`. 150 ms (RFC 8033, section 4.4).
    pub max_burst: Nanos,
    /// Whether ECN-capable packets are marked instead of dropped. False.
    pub ecn: bool,
    /// The drop probability above which packets are dropped even with ECN: `mark_ecnth`. 0.1 (RFC 8033, section 5.1).
    pub ecn_threshold: f64,
    /// The buffer of a port in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

/// The RFC's settings, for the Internet.
impl Default for PieConfig {
    fn default() -> Self {
        PieConfig {
            target: Nanos::from_millis(15),
            update: Nanos::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Nanos::from_millis(150),
            ecn: false,
            ecn_threshold: 0.1,
            buffer: 1_024,
        }
    }
}

impl PieConfig {
    /// The settings for links of `rate`. The RFC's values are for the Internet and apply up to 66 Mbit/s. Above, times
    /// shrink and gains grow in proportion to the rate, down to a target of 100 us and gains of 18.75 and 187.5 per
    /// second from 10 Gbit/s on. So the target is the time of about 80 full-size packets at any rate, and a buffer of
    /// 1,024 packets can reach it. The RFC has no values for data centres.
    pub fn for_rate(rate: BitRate) -> Self {
        let default = PieConfig::default();
        let scale = (rate.0 as f64 / WAN_RATE).clamp(1.0, 150.0);
        let shorter = |span: Nanos| Nanos((span.0 as f64 / scale).round() as u64);
        PieConfig {
            target: shorter(default.target),
            update: shorter(default.update),
            alpha: default.alpha * scale,
            beta: default.beta * scale,
            max_burst: shorter(default.max_burst),
            ..default
        }
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("pie");
        settings.expect_buffer(self.buffer)?;
        settings.expect("target", self.target, self.target > Nanos::ZERO, "more than 0")?;
        settings.expect("update", self.update, self.update > Nanos::ZERO, "more than 0")?;
        let is_gain = |gain: f64| gain.is_finite() && gain >= 0.0;
        settings.expect("alpha", self.alpha, is_gain(self.alpha), "a finite number of at least 0")?;
        settings.expect("beta", self.beta, is_gain(self.beta), "a finite number of at least 0")?;
        let holds = (0.0..=1.0).contains(&self.ecn_threshold);
        settings.expect("ecn_threshold", self.ecn_threshold, holds, "0 to 1")
    }
}

/// A router with PIE.
pub type Pie<R> = Pattern<R, OneQueue, DropByDelay, FifoWithDelay, PieStore<()>>;

/// Builds a router with PIE.
///
/// # Panics
/// If the settings are not [valid](PieConfig::validate).
pub fn pie<R>(route: R, ports: RouterPorts<'_>, config: &PieConfig) -> Pie<R> {
    let controller = PieController::new(ports, config);
    let store = FifosWith::new(ports.ports(), config.buffer, controller.begin());
    let (enqueue, schedule) = (DropByDelay(controller), FifoWithDelay(controller));
    Pattern { route, classify: OneQueue, enqueue, schedule, store, headers: Plain }
}

#[cfg(test)]
mod tests;
