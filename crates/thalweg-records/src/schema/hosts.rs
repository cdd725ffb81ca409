//! The columns of `hosts`: parameters of transfer hosts that rarely change.

use super::dataset::stored;

stored! {
    /// The parameters of a transfer host, when its agent started and once a day.
    HostRow in HostBatch, "hosts", version 1;
    received_us "received" Timestamp "" "Time at which the server received the row. Files are partitioned by its hour." ("");
    reporter "reporter" Text "" "The host: the name of its agent's token." ("");
    time_us "time" Timestamp "" "Time of the observation, by the host's clock." ("");
    addresses "addresses" Text "" "Its IP addresses, separated by commas." ("");
    kernel "kernel" Text "" "Version of the kernel." ("");
    cpus "cpus" U16 "" "Processors." ("");
    memory_bytes "memory_bytes" U64 "bytes" "Memory." ("");
    interface "interface" Text "" "Interface of the default route, or the configured one." ("empty");
    interface_rate_bps "interface_rate_bps" U64 "bit/s" "Rate of the interface." ("0");
    mtu_bytes "mtu_bytes" U32 "bytes" "MTU of the interface." ("0");
    tcp_receive_buffer_max_bytes "tcp_receive_buffer_max_bytes" U64 "bytes" "Largest automatic receive buffer (`net.ipv4.tcp_rmem`)." ("0");
    tcp_send_buffer_max_bytes "tcp_send_buffer_max_bytes" U64 "bytes" "Largest automatic send buffer (`net.ipv4.tcp_wmem`)." ("0");
    socket_receive_buffer_max_bytes "socket_receive_buffer_max_bytes" U64 "bytes" "Largest receive buffer that a program may request (`net.core.rmem_max`)." ("0");
    socket_send_buffer_max_bytes "socket_send_buffer_max_bytes" U64 "bytes" "Largest send buffer that a program may request (`net.core.wmem_max`)." ("0");
    congestion_control "congestion_control" Text "" "Default congestion control." ("empty");
    data_directory "data_directory" Text "" "Directory of the data, as configured." ("empty");
    file_system "file_system" Text "" "Type of its file system." ("empty");
    disk "disk" Text "" "Its block device." ("empty");
    disk_read_bps "disk_read_bps" U64 "bit/s" "Read rate of the disk, as configured." ("0");
    disk_write_bps "disk_write_bps" U64 "bit/s" "Write rate of the disk, as configured." ("0");
    queue "queue" Text "" "Identifier of the agent's queue." ("");
    report "report" U64 "" "Number of the agent's report in its queue." ("");
}
