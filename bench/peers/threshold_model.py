"""A plain model of the simulation that finds a rate threshold: one port, bursts, and an H-TCP flow in rounds.

    python3 threshold_model.py SECONDS FLOW_MBPS ROUND_TRIP_MS

Prints packets, background packets, dropped background packets and the time in seconds. It computes what one lane of
`thalweg_emulator::bottleneck` computes, packet by packet, with heaps and deques, as such a program is written first.
"""

import heapq
import random
import sys
import time
from collections import deque

PORT = 1e9
BUFFER = 5_000_000
PACKET = 1_500
BURSTS_PER_SECOND = 15.0
MEAN_RATE = 200e6


def bursts(seconds, generator):
    """Yields the times of background packets: Poisson starts, Pareto durations of 100 ms on average."""
    rate = MEAN_RATE / (BURSTS_PER_SECOND * 0.1)
    gap = 8 * PACKET / rate
    active = []
    start = generator.expovariate(BURSTS_PER_SECOND)
    while True:
        while not active or start <= active[0][0]:
            packets = int(generator.paretovariate(2.0) * 0.05 / gap) + 1
            heapq.heappush(active, (start, packets))
            start += generator.expovariate(BURSTS_PER_SECOND)
        now, left = heapq.heappop(active)
        if now > seconds:
            return
        yield now
        if left > 1:
            heapq.heappush(active, (now + gap, left - 1))


class Port:
    """A first-in, first-out queue."""

    def __init__(self):
        self.queue = deque()
        self.bytes = 0
        self.free = 0.0

    def arrive(self, now):
        while self.queue and self.free <= now:
            self.bytes -= self.queue.popleft()
            self.free += 8 * PACKET / PORT
        if not self.queue:
            self.free = max(self.free, now)
        if self.bytes + PACKET > BUFFER:
            return False
        self.queue.append(PACKET)
        self.bytes += PACKET
        return True


class Flow:
    """H-TCP in rounds."""

    def __init__(self, rate, round_trip):
        self.rate, self.round_trip = rate, round_trip
        self.gap = 8 * PACKET / rate
        self.window, self.threshold, self.last_loss = 1, 100_000, 0.0
        self.next, self.left, self.lost, self.end = 0.0, 0, 0, 0.0

    def begin(self, now, queued):
        length = self.round_trip + 8 * queued / PORT
        self.window = max(1, min(self.window, int(self.rate / (8 * PACKET) * length)))
        self.left, self.lost, self.end = self.window, 0, now + length

    def finish(self, now):
        if self.lost:
            self.last_loss = now
            self.window //= 2
            self.threshold = self.window
        if self.window < self.threshold:
            self.window *= 2
        else:
            beyond = max(0.0, now - self.last_loss - 1.0)
            self.window += int(max(1.0, 1 + 10 * beyond + beyond * beyond / 4))


def main():
    seconds, mbps, milliseconds = (float(argument) for argument in sys.argv[1:4])
    port, flow = Port(), Flow(mbps * 1e6, milliseconds / 1e3)
    offered = dropped = packets = 0
    began = time.perf_counter()
    for now in bursts(seconds, random.Random(1)):
        while flow.next <= now:
            if flow.left == 0:
                if flow.end > 0.0:
                    flow.finish(flow.next)
                flow.begin(flow.next, port.bytes)
            packets += 1
            flow.lost += not port.arrive(flow.next)
            flow.left -= 1
            flow.next += flow.gap
            if flow.left == 0:
                flow.next = max(flow.next, flow.end)
        offered += 1
        packets += 1
        dropped += not port.arrive(now)
    print(packets, offered, dropped, time.perf_counter() - began)


main()
