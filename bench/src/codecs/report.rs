//! The speeds of codecs, as a table and as JSON.

use crate::codecs::measure::Times;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde::Serialize;

/// The speed of one codec. GB/s are 1e9 bytes of f32 a second on one core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodecSpeed {
    /// The codec with its parameters.
    pub codec: String,
    /// Bits of the encoding for each value.
    pub bits: f64,
    /// Encoding without a residual.
    pub encode_gb_s: Option<f64>,
    /// Encoding with a residual; `None` for codecs that have none.
    pub encode_residual_gb_s: Option<f64>,
    /// Decoding and adding to a sum.
    pub decode_add_gb_s: f64,
    /// Copying the same values, in the same runs.
    pub memcpy_gb_s: f64,
}

impl CodecSpeed {
    pub(super) fn new(codec: String, values: usize, times: &Times) -> Self {
        let speed = |seconds: f64| 4.0 * values as f64 / 1e9 / seconds;
        let some = |seconds: f64| seconds.is_finite().then(|| speed(seconds));
        Self {
            codec,
            bits: 8.0 * times.encoded as f64 / values as f64,
            encode_gb_s: some(times.encode),
            encode_residual_gb_s: some(times.encode_residual),
            decode_add_gb_s: speed(times.decode_add),
            memcpy_gb_s: speed(times.memcpy),
        }
    }
}

/// The speeds of all measured codecs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodecsReport {
    /// Values of a buffer.
    pub values: usize,
    /// Runs of each, of which the best counts.
    pub runs: u32,
    /// Vector instructions stayed unused.
    pub scalar: bool,
    /// The codecs.
    pub codecs: Vec<CodecSpeed>,
}

/// The report as a table for people.
pub fn table(report: &CodecsReport) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "codec",
        "bits/value",
        "encode GB/s",
        "with residual",
        "decode_add",
        "memcpy",
    ]);
    let cell = |speed: Option<f64>| speed.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
    for codec in &report.codecs {
        table.add_row([
            codec.codec.clone(),
            format!("{:.3}", codec.bits),
            cell(codec.encode_gb_s),
            cell(codec.encode_residual_gb_s),
            cell(Some(codec.decode_add_gb_s)),
            cell(Some(codec.memcpy_gb_s)),
        ]);
    }
    table
}
