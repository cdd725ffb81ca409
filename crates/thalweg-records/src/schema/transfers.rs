//! The columns of `transfers`: what the logs of transfer programs say.

use super::dataset::stored;

stored! {
    /// A data transfer, as one host's log describes it.
    TransferRow in TransferBatch, "transfers", version 1;
    received_us "received" Timestamp "" "Time at which the server received the row. Files are partitioned by its hour." ("");
    reporter "reporter" Text "" "Host whose agent read the log: the name of its token." ("");
    transfer "transfer" Text "" "Identifier, unique: a digest of host, log and position." ("");
    application "application" Text "" "Program, or name of the mapping: `gridftp`, `xrootd`, `rsync`, `sftp`, `iperf3` and so on." ("");
    direction "direction" Text "" "What the reporter did: `send` or `receive`." ("");
    user "user" Text "" "User, by default as a salted hash." ("empty");
    file "file" Text "" "File, by default as a salted hash." ("empty");
    source_address "src" Address "" "Host that sent the data." ("empty");
    destination_address "dst" Address "" "Host that received the data." ("empty");
    source_port "src_port" U16 "" "Port of the sender." ("0");
    destination_port "dst_port" U16 "" "Port of the receiver." ("0");
    start_us "start" Timestamp "" "Start, by the reporter's clock." ("");
    end_us "end" Timestamp "" "End, by the reporter's clock." ("");
    octets "bytes" U64 "bytes" "Payload." ("");
    streams "streams" U16 "" "Parallel TCP connections." ("0");
    send_buffer_bytes "send_buffer_bytes" U64 "bytes" "TCP send buffer." ("0");
    receive_buffer_bytes "receive_buffer_bytes" U64 "bytes" "TCP receive buffer." ("0");
    congestion_control "congestion_control" Text "" "Congestion control." ("empty");
    error "error" Text "" "Why the transfer failed." ("empty: it succeeded");
    queue "queue" Text "" "Identifier of the agent's queue." ("");
    report "report" U64 "" "Number of the agent's report in its queue." ("");
}
