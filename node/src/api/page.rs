//! The page at `/`: one document, one style sheet and one script, which are part of the program. It
//! loads nothing from elsewhere. The script has three parts; `tests.js` tries them in Node.js.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::borrow::Cow;

const DOCUMENT: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/figures.js"),
    include_str!("page/chart.js"),
    include_str!("page/page.js"),
);
const ICON: &str = include_str!("page/icon.svg");

pub(super) fn routes() -> Router {
    with(DOCUMENT.to_owned())
}

/// The routes of the page for all daemons of a local swarm. The script asks each below `/daemons/N`.
pub(crate) fn page_of_local() -> Router {
    with(DOCUMENT.replacen("<body>", "<body data-swarm=\"local\">", 1))
}

fn with(document: String) -> Router {
    let file = |kind: &'static str, text: Cow<'static, str>| {
        get(move || async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                // Another version of the program may serve this address tomorrow.
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, text).into_response()
        })
    };
    let fixed = |kind, text| file(kind, Cow::Borrowed(text));
    Router::new()
        .route("/", file("text/html; charset=utf-8", Cow::Owned(document)))
        .route("/page.css", fixed("text/css; charset=utf-8", STYLE))
        .route("/page.js", fixed("text/javascript; charset=utf-8", SCRIPT))
        .route("/icon.svg", fixed("image/svg+xml", ICON))
}

pub(super) fn json(text: serde_json::Result<String>) -> Response {
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    /// Needs Node.js; without it there is nothing to run the script with.
    #[test]
    fn the_script_keeps_its_promises() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/page/tests.js");
        let Ok(output) = Command::new("node").arg(tests).output() else {
            println!("node is not installed: the script is not tried");
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
