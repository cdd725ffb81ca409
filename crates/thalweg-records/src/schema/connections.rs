//! The columns of `connections`: the TCP connections of transfers, each second.

use super::dataset::stored;

stored! {
    /// A TCP connection during an interval, as one of its hosts sees it. Both may report it.
    ConnectionRow in ConnectionBatch, "connections", version 1;
    received_us "received" Timestamp "" "Time at which the server received the row. Files are partitioned by its hour." ("");
    reporter "reporter" Text "" "The host: the name of its agent's token." ("");
    time_us "time" Timestamp "" "End of the interval, by the host's clock." ("");
    interval_us "interval_us" U32 "µs" "Length of the interval." ("");
    source_address "src" Address "" "The side that sends the data." ("");
    destination_address "dst" Address "" "The side that receives the data." ("");
    source_port "src_port" U16 "" "Port of the sender." ("");
    destination_port "dst_port" U16 "" "Port of the receiver." ("");
    direction "direction" Text "" "What the reporter does: `send` or `receive`." ("");
    pid "pid" U32 "" "Process." ("0");
    process "process" Text "" "Name of the process." ("empty");
    process_cpu_us "process_cpu_us" U64 "µs" "Time that the threads of the process used a processor." ("0");
    process_wait_us "process_wait_us" U64 "µs" "Time that its threads were runnable and waited for a processor." ("0");
    process_throttled_us "process_throttled_us" U64 "µs" "Time that its control group had used up its quota of processor time." ("0");
    process_blocked_us "process_blocked_us" U64 "µs" "Time in uninterruptible sleep, as of a disk: a sampled estimate." ("0");
    process_read_bytes "process_read_bytes" U64 "bytes" "Read from a disk by the process." ("0");
    process_write_bytes "process_write_bytes" U64 "bytes" "Written by the process, for a disk." ("0");
    rtt_us "rtt_us" U32 "µs" "Smoothed round-trip time." ("0");
    rtt_variation_us "rtt_variation_us" U32 "µs" "Mean deviation of the round-trip time." ("0");
    min_rtt_us "min_rtt_us" U32 "µs" "Minimum round-trip time of the connection so far." ("0");
    cwnd_segments "cwnd_segments" U32 "segments" "Congestion window." ("0");
    mss_bytes "mss_bytes" U32 "bytes" "Maximum segment size." ("0");
    sent_bytes "sent_bytes" U64 "bytes" "Payload sent, retransmissions included." ("0");
    acked_bytes "acked_bytes" U64 "bytes" "Payload that the peer acknowledged." ("0");
    received_bytes "received_bytes" U64 "bytes" "Payload that arrived in order." ("0");
    retransmitted_bytes "retransmitted_bytes" U64 "bytes" "Payload retransmitted." ("0");
    sent_segments "sent_segments" U32 "segments" "Segments sent with payload." ("0");
    retransmitted_segments "retransmitted_segments" U32 "segments" "Segments retransmitted." ("0");
    delivery_rate_bps "delivery_rate_bps" U64 "bit/s" "Latest sample of the delivery rate." ("0");
    busy_us "busy_us" U64 "µs" "Time with data to send." ("0");
    receive_window_limited_us "receive_window_limited_us" U64 "µs" "Time limited by the receive window of the peer." ("0");
    send_buffer_limited_us "send_buffer_limited_us" U64 "µs" "Time limited by the send buffer." ("0");
    application_limited "application_limited" U8 "" "1 if the latest sample of the delivery rate was limited by the application." ("0");
    send_queue_bytes "send_queue_bytes" U64 "bytes" "Written by the application, not acknowledged yet." ("0");
    receive_queue_bytes "receive_queue_bytes" U64 "bytes" "Arrived, not read by the application yet." ("0");
    send_buffer_bytes "send_buffer_bytes" U64 "bytes" "Size of the send buffer." ("0");
    receive_buffer_bytes "receive_buffer_bytes" U64 "bytes" "Size of the receive buffer." ("0");
    congestion_control "congestion_control" Text "" "Congestion control." ("empty");
    queue "queue" Text "" "Identifier of the agent's queue." ("");
    report "report" U64 "" "Number of the agent's report in its queue." ("");
}
