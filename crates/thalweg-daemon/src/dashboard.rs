//! The dashboard: a page that shows the network in a browser. Its source is in the folder `dashboard`, and its built files are
//! committed, so that a build of the daemon needs neither Node.js nor a network.

use thalweg_http::asset::Asset;

/// Includes a built file.
macro_rules! built {
    ($file:literal) => {
        include_bytes!(concat!("../../../dashboard/dist/", $file))
    };
}

/// The files of the page.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { path: "/", media_type: "text/html; charset=utf-8", bytes: built!("index.html") },
    Asset {
        path: "/dashboard/app.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: built!("app.js"),
    },
    Asset {
        path: "/dashboard/worker.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: built!("worker.js"),
    },
    Asset { path: "/dashboard/app.css", media_type: "text/css; charset=utf-8", bytes: built!("app.css") },
    Asset { path: "/dashboard/icon.svg", media_type: "image/svg+xml", bytes: built!("icon.svg") },
];
