//! The page at `/`: one document, one style sheet and one script, which are part of the program. It
//! loads nothing from elsewhere.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const DOCUMENT: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const ICON: &str = include_str!("page/icon.svg");

/// The routes.
pub(super) fn routes() -> Router {
    let file = |kind: &'static str, text: &'static str| {
        get(move || async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                // Another version of the program may serve this address tomorrow.
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, text).into_response()
        })
    };
    Router::new()
        .route("/", file("text/html; charset=utf-8", DOCUMENT))
        .route("/page.css", file("text/css; charset=utf-8", STYLE))
        .route("/page.js", file("text/javascript; charset=utf-8", SCRIPT))
        .route("/icon.svg", file("image/svg+xml", ICON))
}
