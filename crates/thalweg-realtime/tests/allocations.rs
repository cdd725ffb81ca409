//! In steady state, neither side allocates memory.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use thalweg_realtime::arbiter::BatchSocket;
use thalweg_realtime::protocol::{
    Arbiter, ArbiterOptions, ArbiterSession, Decision, Endpoint, EndpointOptions, ReleaseQueue, RequestId,
    Submission,
};
use thalweg_wire::emulation_protocol::{EmulatedDelay, Flow, SchemeBytes, Session, Verdict};
use thalweg_wire::{Nanos, Timestamp};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer is from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// More packets than tables have entries, flows that come and go, and lost datagrams.
#[test]
fn no_packet_causes_an_allocation() {
    let session = Session::new(1).unwrap();
    let options = EndpointOptions { max_packets: 512, max_flows: 32, ..EndpointOptions::default() };
    let mut endpoint = Endpoint::new(options, session).unwrap();
    let arbiter_options = ArbiterOptions { max_requests: 512, max_flows: 32, ..ArbiterOptions::default() };
    let mut arbiter = ArbiterSession::new(arbiter_options, session).unwrap();
    let mut buffer = vec![0; 1_472];
    let mut emulated: Vec<RequestId> = Vec::with_capacity(512);
    let (mut now, mut decided, mut datagrams) = (Timestamp(1_000_000_000), 0_u32, 0_u64);
    // So many packets wait that some are released early.
    let mut releases = ReleaseQueue::new(Some(Nanos::from_millis(2)), 64);
    let mut released = 0;
    let before = ALLOCATIONS.get();
    for packet in 0..50_000_u32 {
        let flow = Flow { source: 0, destination: 1, number: packet / 20 };
        let submission = Submission { flow, length: 1_500, traffic_class: 0, custom: SchemeBytes::NONE };
        // Refused while all slots wait for a retransmission.
        let _ = endpoint.submit(now, &submission);
        now = now + Nanos::from_micros(20);
        endpoint.tick(now, |_, _| decided += 1);
        while let Some(transmit) = endpoint.transmit(now, &mut buffer) {
            datagrams += 1;
            if datagrams % 7 != 0 {
                let _ = arbiter.receive(now, &buffer[..transmit.length], |id, _, _| emulated.push(id));
            }
        }
        emulated.drain(..).for_each(|id| arbiter.answer(now, id, Verdict::Send, EmulatedDelay(7)).unwrap());
        arbiter.tick(now);
        while let Some(length) = arbiter.transmit(now, &mut buffer) {
            datagrams += 1;
            if datagrams % 7 != 0 {
                let _ = endpoint.receive(now, Arbiter::Primary, &buffer[..length], |slot, decision| {
                    decided += 1;
                    if let Decision::Answered { emulated, .. } = decision {
                        let flow = Flow { source: 0, destination: 1, number: decided % 100 };
                        released +=
                            u32::from(releases.push(now, now + emulated.nanos(), flow, slot).is_some());
                    }
                });
            }
        }
        while releases.pop(now).is_some() {
            released += 1;
        }
    }
    let allocations = ALLOCATIONS.get() - before;
    assert!(decided > 40_000 && endpoint.counters().flows_evicted > 1_000, "{:?}", endpoint.counters());
    let early = releases.counters().released_early;
    assert!(released > 40_000 && early > 1_000, "{released} released, {early} early");
    assert_eq!(allocations, 0);
}

#[test]
fn no_datagram_of_an_arbiter_causes_an_allocation() {
    let [mut one, mut two] = [(); 2].map(|()| BatchSocket::bind(([127, 0, 0, 1], 0).into(), 100).unwrap());
    let to = two.local_addr().unwrap();
    let (mut sent, mut received) = (0, 0);
    let before = ALLOCATIONS.get();
    while received < 10_000 {
        (0..100).for_each(|number| one.send(to, &[number; 50]));
        one.flush();
        sent += 100;
        while received < sent {
            two.receive(|_, bytes| received += u64::from(bytes.len() == 50)).unwrap();
        }
    }
    assert_eq!((ALLOCATIONS.get() - before, one.send_errors), (0, 0));
}
