//! The names under which other programs keep a tensor.

/// Beginnings that files of a model without its output leave out.
const PREFIXES: [&str; 2] = ["model.", "transformer."];

/// The name of an adapter's tensor in PEFT's files; `None` for other tensors.
pub(crate) fn peft_name(name: &str) -> Option<String> {
    let factors = [(".lora_a.", ".lora_A."), (".lora_b.", ".lora_B.")];
    let (ours, theirs) = factors.into_iter().find(|(ours, _)| name.contains(ours))?;
    Some(format!("base_model.model.{}", name.replace(ours, theirs)))
}

/// Names under which a file may have a tensor of the model, the first one first.
pub(super) fn candidates(name: &str) -> impl Iterator<Item = String> {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let all = [
        Some(name.to_owned()),
        peft_name(name),
        short.map(str::to_owned),
    ];
    all.into_iter().flatten()
}

/// Whether a tensor that is not in the model may be in its file: tables that old versions of
/// `transformers` saved, the output of a model that uses its embeddings instead, and the statistics of
/// batch norm.
pub(super) fn is_derived(name: &str, tied: bool) -> bool {
    let tables = [
        ".attn.bias",
        ".attn.masked_bias",
        ".rotary_emb.inv_freq",
        ".running_mean",
        ".running_var",
        ".num_batches_tracked",
    ];
    tables.iter().any(|end| name.ends_with(end)) || (tied && name == "lm_head.weight")
}
