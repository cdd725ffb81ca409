//! The thread of an arbiter: it alternates between the socket and slots, or the rings to threads that run slots.
//!
//! While packets are in the network, it blocks only to [rest](super::Options::rest_every), and makes a system call for the socket every 5 us at
//! most; slots themselves make none. While the network is empty and no protocol timer is due within a millisecond, it sleeps until a datagram arrives, or for a millisecond. So an idle arbiter
//! takes little of its core.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_wire::{Nanos, Timestamp};

use super::watchdog::{ANSWER, QUESTION, Watchdog};
use super::{Arbiter, BatchSocket, Report, live_status};

/// The time between two looks at the socket while packets are in the network.
const LOOK: Nanos = Nanos::from_micros(5);

/// System calls in a row that receive datagrams.
const RECEIVES: usize = 4;

/// A shorter time is waited for without sleeping: the kernel rounds it up to milliseconds, and acknowledgements would be late.
const MIN_SLEEP: Nanos = Nanos::from_millis(1);

/// How long a rest takes, besides the kernel's time to wake the thread up.
const REST: Duration = Duration::from_micros(10);

/// A monotonic clock of the time since `start`, when slot 0 starts.
pub fn monotonic_clock(start: Instant) -> impl FnMut() -> Timestamp {
    move || Timestamp(start.elapsed().as_nanos() as u64)
}

/// Runs an arbiter until `stop` is set, or until the time `until` since slot 0, by a `clock` that starts at slot 0. With a watchdog it is
/// a secondary.
///
/// # Errors
/// If the socket fails, or a thread of the network.
pub fn serve(
    arbiter: &mut Arbiter,
    socket: &mut BatchSocket,
    mut watchdog: Option<Watchdog>,
    clock: &mut dyn FnMut() -> Timestamp,
    until: Option<Timestamp>,
    stop: &AtomicBool,
) -> io::Result<Report> {
    let (mut next_look, mut rested_at) = (Timestamp(0), Timestamp(0));
    let rest_every = arbiter.options().rest_every;
    let mut now = clock();
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| now < until) {
        let mut received = 0;
        if now >= next_look {
            received = receive(arbiter, socket, &mut watchdog, now)?;
            if let Some(primary) = watchdog.as_mut().and_then(|watchdog| watchdog.tick(now)) {
                socket.send(primary, QUESTION);
            }
            next_look = now + LOOK;
        }
        let has_run = arbiter.turn(clock);
        now = clock();
        arbiter.transmit(now, |to, datagram| socket.send(to, datagram));
        socket.flush();
        if arbiter.has_failed() {
            return Err(io::Error::other("a thread of the emulated network has failed"));
        }
        if received == 0 && !arbiter.is_busy() {
            let wait = arbiter.next_event(now).since(now);
            if wait >= MIN_SLEEP {
                socket.wait(wait)?;
                next_look = Timestamp(0);
            }
        }
        // Right after a slot, most time is left until the next one.
        if has_run && arbiter.is_busy() && rest_every.is_some_and(|every| now.since(rested_at) >= every) {
            thread::sleep(REST);
            rested_at = now;
        }
        now = clock();
    }
    arbiter.end();
    Ok(Report {
        send_errors: socket.send_errors,
        took_over_at: watchdog.as_ref().and_then(Watchdog::took_over_at).map(|at| Nanos(at.0)),
        ignored_on_standby: watchdog.map_or(0, |watchdog| watchdog.ignored),
        ..arbiter.report(now)
    })
}

/// Receives what has arrived, within bounds. Returns the number of datagrams.
fn receive(
    arbiter: &mut Arbiter,
    socket: &mut BatchSocket,
    watchdog: &mut Option<Watchdog>,
    now: Timestamp,
) -> io::Result<usize> {
    let mut received = 0;
    let (mut questions, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..RECEIVES {
        let count = socket.receive(|from, bytes| {
            if bytes == live_status::QUESTION {
                return asked.push(from);
            }
            let is_active = watchdog.as_mut().is_none_or(|watchdog| watchdog.receive(now, from, bytes));
            match is_active {
                true if bytes == QUESTION => questions.push(from),
                true => arbiter.receive(now, from, bytes),
                false => {}
            }
        })?;
        received += count;
        if count == 0 {
            break;
        }
    }
    questions.into_iter().for_each(|from| socket.send(from, ANSWER));
    if !asked.is_empty() {
        let is_active = watchdog.as_ref().is_none_or(|watchdog| watchdog.took_over_at().is_some());
        let answer = arbiter.live_status(now, is_active).encode();
        asked.into_iter().for_each(|from| socket.send(from, &answer));
    }
    Ok(received)
}
