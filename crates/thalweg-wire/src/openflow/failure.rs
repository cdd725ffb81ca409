//! Error messages (section "Error Message").

use std::fmt;

layout! {
    /// An error. Its xid is that of the message that caused it.
    pub struct ErrorMessage {
        /// The type of the error.
        error_type: ErrorType,
        /// The code of the error within its type.
        code: u16,
        /// The start of the message that caused the error (at least 64 bytes), or a text for `HELLO_FAILED`.
        data: Vec<u8>,
    }
}

numbers! {
    /// The type of the error.
    ErrorType(u16) {
        /// The two sides have no common version.
        HELLO_FAILED = 0, "hello failed";
        /// The message was not understood.
        BAD_REQUEST = 1, "bad request";
        /// An action is invalid.
        BAD_ACTION = 2, "bad action";
        /// An instruction is invalid.
        BAD_INSTRUCTION = 3, "bad instruction";
        /// A match is invalid.
        BAD_MATCH = 4, "bad match";
        /// A flow entry could not be changed.
        FLOW_MOD_FAILED = 5, "flow-mod failed";
        /// A group could not be changed.
        GROUP_MOD_FAILED = 6, "group-mod failed";
        /// A port could not be changed.
        PORT_MOD_FAILED = 7, "port-mod failed";
        /// A table could not be changed.
        TABLE_MOD_FAILED = 8, "table-mod failed";
        /// A queue request failed.
        QUEUE_OP_FAILED = 9, "queue operation failed";
        /// The configuration of the switch could not be set.
        SWITCH_CONFIG_FAILED = 10, "switch config failed";
        /// The role could not be assigned.
        ROLE_REQUEST_FAILED = 11, "role request failed";
        /// A meter could not be changed.
        METER_MOD_FAILED = 12, "meter-mod failed";
        /// Table features could not be set.
        TABLE_FEATURES_FAILED = 13, "table features failed";
        /// An experimenter-defined error.
        EXPERIMENTER = 0xffff, "experimenter's error";
    }
}

/// The names of the codes by type, in lower case (`OFPBMC_BAD_FIELD` is "bad field").
const CODES: [&[&str]; 14] = [
    &["incompatible", "eperm"],
    &[
        "bad version",
        "bad type",
        "bad multipart",
        "bad experimenter",
        "bad experimenter type",
        "eperm",
        "bad length",
        "buffer empty",
        "buffer unknown",
        "bad table id",
        "is slave",
        "bad port",
        "bad packet",
        "multipart buffer overflow",
    ],
    &[
        "bad type",
        "bad length",
        "bad experimenter",
        "bad experimenter type",
        "bad out port",
        "bad argument",
        "eperm",
        "too many",
        "bad queue",
        "bad out group",
        "match inconsistent",
        "unsupported order",
        "bad tag",
        "bad set type",
        "bad set length",
        "bad set argument",
    ],
    &[
        "unknown instruction",
        "unsupported instruction",
        "bad table id",
        "unsupported metadata",
        "unsupported metadata mask",
        "bad experimenter",
        "bad experimenter type",
        "bad length",
        "eperm",
    ],
    &[
        "bad type",
        "bad length",
        "bad tag",
        "bad data link address mask",
        "bad network address mask",
        "bad wildcards",
        "bad field",
        "bad value",
        "bad mask",
        "bad prerequisite",
        "duplicate field",
        "eperm",
    ],
    &["unknown", "table full", "bad table id", "overlap", "eperm", "bad timeout", "bad command", "bad flags"],
    &[
        "group exists",
        "invalid group",
        "weight unsupported",
        "out of groups",
        "out of buckets",
        "chaining unsupported",
        "watch unsupported",
        "loop",
        "unknown group",
        "chained group",
        "bad type",
        "bad command",
        "bad bucket",
        "bad watch",
        "eperm",
    ],
    &["bad port", "bad hardware address", "bad config", "bad advertise", "eperm"],
    &["bad table", "bad config", "eperm"],
    &["bad port", "bad queue", "eperm"],
    &["bad flags", "bad length", "eperm"],
    &["stale", "unsupported", "bad role"],
    &[
        "unknown",
        "meter exists",
        "invalid meter",
        "unknown meter",
        "bad command",
        "bad flags",
        "bad rate",
        "bad burst",
        "bad band",
        "bad band value",
        "out of meters",
        "out of bands",
    ],
    &["bad table", "bad metadata", "bad type", "bad length", "bad argument", "eperm"],
];

impl ErrorMessage {
    /// Returns the name of the code, if it has one.
    pub fn code_name(&self) -> Option<&'static str> {
        CODES.get(usize::from(self.error_type.0))?.get(usize::from(self.code)).copied()
    }
}

/// Formats type and code, e.g. "bad match: bad field (type 4, code 6)".
impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.error_type, self.code);
        write!(f, "{kind}: {} (type {}, code {code})", self.code_name().unwrap_or("unknown code"), kind.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_displayed_with_type_and_code() {
        let display =
            |number, code| ErrorMessage { error_type: ErrorType(number), code, data: vec![] }.to_string();
        assert_eq!(display(4, 6), "bad match: bad field (type 4, code 6)");
        assert_eq!(display(5, 1), "flow-mod failed: table full (type 5, code 1)");
        assert_eq!(display(6, 14), "group-mod failed: eperm (type 6, code 14)");
        assert_eq!(display(13, 6), "table features failed: unknown code (type 13, code 6)");
        assert_eq!(display(77, 0), "77: unknown code (type 77, code 0)");
    }
}
