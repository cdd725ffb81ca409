//! The columns of `host-metrics`: the load of transfer hosts, each second of a transfer.

use super::dataset::stored;

stored! {
    /// The load of a host during an interval.
    HostMetricRow in HostMetricBatch, "host-metrics", version 1;
    received_us "received" Timestamp "" "Time at which the server received the row. Files are partitioned by its hour." ("");
    reporter "reporter" Text "" "The host: the name of its agent's token." ("");
    time_us "time" Timestamp "" "End of the interval, by the host's clock." ("");
    interval_us "interval_us" U32 "µs" "Length of the interval." ("");
    cpus "cpus" U16 "" "Processors." ("");
    cpu_busy_us "cpu_busy_us" U64 "µs" "Time of all processors together that they were busy." ("");
    cpu_busiest_us "cpu_busiest_us" U64 "µs" "Time that the busiest processor was busy." ("");
    cpu_iowait_us "cpu_iowait_us" U64 "µs" "Time of all processors together that they were idle and waited for a disk." ("");
    cpu_steal_us "cpu_steal_us" U64 "µs" "Time of all processors together that the hypervisor took." ("");
    memory_available_bytes "memory_available_bytes" U64 "bytes" "Memory that programs can get." ("");
    memory_dirty_bytes "memory_dirty_bytes" U64 "bytes" "Written data that is not on the disk yet." ("");
    disk "disk" Text "" "The busiest disk, or that of the configured directory." ("empty");
    disk_busy_us "disk_busy_us" U64 "µs" "Time that the disk had requests." ("");
    disk_read_bytes "disk_read_bytes" U64 "bytes" "Read from the disk." ("");
    disk_write_bytes "disk_write_bytes" U64 "bytes" "Written to the disk." ("");
    interface "interface" Text "" "The interface." ("empty");
    interface_in_bytes "interface_in_bytes" U64 "bytes" "Received." ("");
    interface_out_bytes "interface_out_bytes" U64 "bytes" "Sent." ("");
    interface_in_drops "interface_in_drops" U64 "packets" "Dropped on reception." ("");
    interface_out_drops "interface_out_drops" U64 "packets" "Dropped before they were sent." ("");
    queue "queue" Text "" "Identifier of the agent's queue." ("");
    report "report" U64 "" "Number of the agent's report in its queue." ("");
}
